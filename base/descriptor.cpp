#include "base/descriptor.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sluice {

void Descriptor::close() {
  if (number_ >= 0) {
    const int before = errno;
    ::close(release());
    errno = before;
  }
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return true;
}

bool is_file_at(const std::string& file, int descriptor) {
  struct stat named {};
  struct stat opened {};
  return ::stat(file.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

std::string path_of(int descriptor) {
  const std::string entry = "/fd/" + std::to_string(descriptor);
  const std::string numbered = "/proc/" + std::to_string(::getpid()) + entry;
  // The folder may be that of another namespace, where this process has another number.
  return is_file_at(numbered, descriptor) ? numbered : "/proc/self" + entry;
}

}  // namespace sluice
