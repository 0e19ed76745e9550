#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "base/descriptor.hpp"

namespace sluice {

/// Makes a descriptor readable, for a thread that waits in poll(2), until somebody hushes it. Thread-safe.
class Bell {
 public:
  int descriptor() const { return event_.get(); }
  void ring() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(event_.get(), &one, sizeof(one)) < 0);
  }
  void hush() const {
    std::uint64_t rings = 0;
    static_cast<void>(::read(event_.get(), &rings, sizeof(rings)) < 0);
  }

 private:
  Descriptor event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

}  // namespace sluice
