#pragma once

#include <cstddef>
#include <string>

/// A regular file open for reading. A resource.
class File {
 public:
  File() = default;
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// Opens `path`; with a `root`, as a process would see it whose root folder that is: no "..", no link leads out of
  /// it. 0, or the errno that says why not; EISDIR for a folder, EINVAL for anything else that is no regular file.
  int open(const std::string& root, const std::string& path);

  /// Reads on; `*size` is 0 at the end. 0, or an errno.
  int read(char* buffer, std::size_t capacity, std::size_t* size);

 private:
  int fd_ = -1;
};
