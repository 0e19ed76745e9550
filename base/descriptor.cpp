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

}  // namespace sluice
