#include "dynamo/error.hpp"

#include <array>

namespace sluice::dynamo {

std::string_view to_string(ErrorKind kind) {
  constexpr std::array<std::string_view, 11> kNames{
      "transport",          "timeout",       "throttled",      "server",     "conditional_check_failed",
      "resource_not_found", "access_denied", "no_credentials", "validation", "malformed_response",
      "cancelled"};
  return kNames.at(static_cast<std::size_t>(kind));
}

}  // namespace sluice::dynamo
