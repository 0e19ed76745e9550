#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/error.hpp"

namespace sluice::isolation {

/// Memory that a host and its Runner both see. Sealed against shrinking, so that nothing either of them does makes the
/// other's reads a fault. A resource; not thread-safe.
class SharedMemory {
 public:
  /// A new piece of `size` bytes, all zero.
  static Result<std::unique_ptr<SharedMemory>> create(const char* name, std::size_t size);
  /// The piece behind a descriptor that this process was given, which is closed.
  static Result<std::unique_ptr<SharedMemory>> attach(int descriptor);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  char* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// -1 for one that was attached.
  int descriptor() const { return descriptor_; }

  /// Makes room for `size` bytes; `data` may be another place afterwards. For the one who created it.
  Result<void> grow(std::size_t size);
  /// Sees what the other has grown.
  Result<void> follow(std::size_t size);
  /// Gives the memory beyond the first `kept` bytes back to the system; it reads as zero then.
  void forget_beyond(std::size_t kept);

 private:
  SharedMemory(int descriptor, char* data, std::size_t size) : descriptor_(descriptor), data_(data), size_(size) {}

  const int descriptor_;
  char* data_;
  std::size_t size_;
};

}  // namespace sluice::isolation
