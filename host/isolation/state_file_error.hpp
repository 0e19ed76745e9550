#pragma once

#include <string>

#include "base/error.hpp"

namespace sluice::isolation {

/// Why something below a host's state folder cannot be: `what`, the system's words for its error number, and what
/// mends that. ErrorCode::full where room is missing, `unavailable` where it may pass by itself, otherwise `denied`.
Error state_file_error(const std::string& what, int number);

}  // namespace sluice::isolation
