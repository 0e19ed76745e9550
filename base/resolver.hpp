#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"

namespace sluice {

/// The addresses of a machine as numbers, in the order in which they are to be tried. The system's resolver heeds no
/// deadline: where it hangs over a name, a thread is left behind with it.
Result<std::vector<std::string>> addresses_of(const std::string& host, const Clock& clock, Deadline deadline);

}  // namespace sluice
