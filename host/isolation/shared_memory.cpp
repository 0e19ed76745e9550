#include "host/isolation/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

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

}  // namespace sluice::isolation
