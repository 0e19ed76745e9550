#pragma once

#include <string>

#include "base/error.hpp"

namespace sluice::cli {

/// What a person types to mend a failure of a store, to follow its message: "; make it with: sluice table create ...".
/// Empty where no command mends it. `options` are those with which a command finds the queue.
std::string mend_of(const Error& error, const std::string& options);

}  // namespace sluice::cli
