#include "host/runtime/host_name.hpp"

#include <unistd.h>

#include <array>

namespace sluice::runtime {

std::string host_name(const config::HostConfig& config) {
  if (!config.name.empty()) {
    return config.name;
  }
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string("host");
}

}  // namespace sluice::runtime
