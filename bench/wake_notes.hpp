#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace sluice::bench {

/// The machine's monotonic clock, which all its processes read alike, in nanoseconds.
inline std::int64_t monotonic_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Times that one process notes and another reads, in a file that both have mapped. Thread-safe. A resource.
class WakeNotes {
 public:
  /// Makes the file, with room for `capacity` of them. Throws std::runtime_error.
  static WakeNotes make(const std::string& path, std::size_t capacity) { return WakeNotes(path, capacity, O_CREAT); }
  /// Opens one that was made. Throws std::runtime_error.
  static WakeNotes open(const std::string& path) { return WakeNotes(path, 0, 0); }
  ~WakeNotes() { ::munmap(page_, length_); }
  WakeNotes(const WakeNotes&) = delete;
  WakeNotes& operator=(const WakeNotes&) = delete;

  /// Beyond the capacity they are counted only.
  void add(std::int64_t nanoseconds) {
    const std::size_t place = page_->begun.fetch_add(1);
    if (place < capacity_) {
      times()[place] = nanoseconds;
    }
    page_->count.fetch_add(1);
  }
  std::size_t count() const { return page_->count.load(); }
  /// Once all of them were added.
  std::span<const std::int64_t> all() const { return {times(), std::min(count(), capacity_)}; }

 private:
  struct Page {
    std::atomic<std::size_t> begun;
    std::atomic<std::size_t> count;
  };

  WakeNotes(const std::string& path, std::size_t capacity, int flags) {
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
    const bool made = file >= 0 && (capacity == 0 || ::ftruncate(file, length_of(capacity)) == 0);
    const off_t length = made ? ::lseek(file, 0, SEEK_END) : 0;
    length_ = static_cast<std::size_t>(length);
    void* page = length > 0 ? ::mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    ::close(file);
    if (page == MAP_FAILED) {
      throw std::runtime_error("cannot map " + path);
    }
    page_ = static_cast<Page*>(page);
    capacity_ = (length_ - sizeof(Page)) / sizeof(std::int64_t);
  }

  static off_t length_of(std::size_t capacity) {
    return static_cast<off_t>(sizeof(Page) + capacity * sizeof(std::int64_t));
  }
  std::int64_t* times() const { return reinterpret_cast<std::int64_t*>(page_ + 1); }

  std::size_t length_ = 0;
  std::size_t capacity_ = 0;
  Page* page_ = nullptr;
};

}  // namespace sluice::bench
