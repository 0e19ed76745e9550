#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace sluice {

/// A file descriptor that is closed with it: a file, a socket, the end of a pipe. A resource that can be moved; -1 is
/// none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = other.release();
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  /// The number, which is the caller's to close from now on.
  int release() { return std::exchange(number_, -1); }
  /// Leaves errno alone, so that it may be called between a failure and its text.
  void close();

 private:
  int number_;
};

/// Writes all of the text. False, with errno, when something stops it.
bool write_all(int descriptor, std::string_view text);

/// Whether the file of this name is the one behind the descriptor.
bool is_file_at(const std::string& file, int descriptor);

/// A name by which this process opens what is behind the descriptor, and so does a debugger of it, as long as it is
/// open.
std::string path_of(int descriptor);

}  // namespace sluice
