#pragma once

#include <chrono>
#include <string>

#include "base/error.hpp"

namespace sluice::observe {

/// What a host answered. A value.
struct ProbeAnswer {
  int status = 0;    ///< of HTTP
  std::string text;  ///< the body
};

/// Asks the host that listens on `listen`, written as in `[http] listen`, for `path`. An address that means every
/// interface is asked on the loopback. An error, `unavailable`, when nobody answers within `patience`. From any thread.
Result<ProbeAnswer> probe(const std::string& listen, const std::string& path, std::chrono::milliseconds patience);

}  // namespace sluice::observe
