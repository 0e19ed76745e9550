#include "base/descriptor.hpp"

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

}  // namespace sluice
