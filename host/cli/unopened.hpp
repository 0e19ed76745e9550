#pragma once

#include <string>

#include "host/cli/exit.hpp"

namespace sluice::cli {

/// How a command ends whose store cannot be opened: no region, a path that is a folder and the like are configuration.
inline Exit unopened(const Error& error, const std::string& remark = {}) {
  return {error.code() == ErrorCode::invalid ? kExitConfiguration : kExitFailure, error.message() + remark};
}

}  // namespace sluice::cli
