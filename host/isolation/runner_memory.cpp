#include "host/isolation/runner_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace sluice::isolation {

namespace {

Error no_memory(std::size_t size, int code) {
  return Error(ErrorCode::full, "no shared memory of " + std::to_string(size) +
                                    " bytes for a handler's process: " + std::strerror(code));
}

char* map(int descriptor, std::size_t size) {
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
}

constexpr std::uint32_t kRoom = RunnerControl::kRoom;
constexpr Duration kRoomLook = std::chrono::milliseconds(50);

std::uint32_t padded(std::uint32_t size) { return (size + 7U) & ~7U; }

/// Copies over the ring's end, where it must.
void copy_in(RunnerControl& control, std::uint32_t at, const char* data, std::uint32_t size) {
  const std::uint32_t offset = at % kRoom;
  const std::uint32_t first = std::min(size, kRoom - offset);
  std::copy_n(data, first, control.room.data() + offset);
  std::copy_n(data + first, size - first, control.room.data());
}

void copy_out(const RunnerControl& control, std::uint32_t at, char* data, std::uint32_t size) {
  const std::uint32_t offset = at % kRoom;
  const std::uint32_t first = std::min(size, kRoom - offset);
  std::copy_n(control.room.data() + offset, first, data);
  std::copy_n(control.room.data(), size - first, data + first);
}

}  // namespace

Result<std::unique_ptr<SharedMemory>> SharedMemory::create(const char* name, std::size_t size) {
  const int descriptor = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) {
    return no_memory(size, errno);
  }
  char* const data =
      ::ftruncate(descriptor, static_cast<off_t>(size)) == 0 && ::fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK) == 0
          ? map(descriptor, size)
          : nullptr;
  if (data == nullptr) {
    const int code = errno;
    ::close(descriptor);
    return no_memory(size, code);
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(descriptor, data, size));
}

Result<std::unique_ptr<SharedMemory>> SharedMemory::attach(int descriptor) {
  struct stat status {};
  char* data = nullptr;
  if (::fstat(descriptor, &status) == 0 && status.st_size > 0) {
    data = map(descriptor, static_cast<std::size_t>(status.st_size));
  }
  const int code = errno;
  ::close(descriptor);
  if (data == nullptr) {
    return no_memory(0, code);
  }
  return std::unique_ptr<SharedMemory>(new SharedMemory(-1, data, static_cast<std::size_t>(status.st_size)));
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, size_);
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

Result<void> SharedMemory::grow(std::size_t size) {
  if (size <= size_) {
    return {};
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
    return no_memory(size, errno);
  }
  return follow(size);
}

Result<void> SharedMemory::follow(std::size_t size) {
  if (size <= size_) {
    return {};
  }
  void* const moved = ::mremap(data_, size_, size, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) {
    return no_memory(size, errno);
  }
  data_ = static_cast<char*>(moved);
  size_ = size;
  return {};
}

void SharedMemory::forget_beyond(std::size_t kept) {
  if (size_ > kept) {
    ::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(kept),
                static_cast<off_t>(size_ - kept));
  }
}

bool EventWriter::write(RunnerEvent kind, std::int16_t level, std::int64_t number, std::string_view text) noexcept {
  const EventHead head{static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), kEventTextLimit)), kind, level,
                       number};
  const std::uint32_t size = sizeof(head) + padded(head.size);
  const std::uint32_t at = control_.produced.load(std::memory_order_relaxed);
  if (size > kRoom - (at - control_.consumed.load(std::memory_order_acquire))) {
    return false;
  }
  copy_in(control_, at, reinterpret_cast<const char*>(&head), sizeof(head));
  copy_in(control_, at + sizeof(head), text.data(), head.size);
  control_.produced.store(at + size, std::memory_order_release);
  control_.events.fetch_add(1);
  if (control_.host_sleeps.load() != 0) {
    futex_wake(control_.events);
  }
  return true;
}

void EventWriter::wait_for_room() noexcept {
  const std::uint32_t seen = control_.consumed.load();
  control_.room_wanted.store(1);
  if (control_.produced.load() - seen > kRoom / 2) {
    futex_wait(control_.consumed, seen, kRoomLook);
  }
  control_.room_wanted.store(0);
}

EventReader::Found EventReader::read(EventHead& head, std::string& text) {
  const std::uint32_t at = control_.consumed.load(std::memory_order_relaxed);
  const std::uint32_t there = control_.produced.load(std::memory_order_acquire) - at;
  if (there == 0) {
    return Found::nothing;
  }
  if (there > kRoom || there < sizeof(head)) {
    return Found::nonsense;
  }
  copy_out(control_, at, reinterpret_cast<char*>(&head), sizeof(head));
  if (head.size > kEventTextLimit || sizeof(head) + padded(head.size) > there) {
    return Found::nonsense;
  }
  text.resize(head.size);
  copy_out(control_, at + sizeof(head), text.data(), head.size);
  control_.consumed.store(at + static_cast<std::uint32_t>(sizeof(head)) + padded(head.size));
  if (control_.room_wanted.load() != 0) {
    futex_wake(control_.consumed);
  }
  return Found::event;
}

}  // namespace sluice::isolation
