#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/cli/arguments.hpp"

namespace sluice::cli {

/// A line for the user when --queue names a queue that neither the host file nor its jobs know, and a known one is
/// spelt much like it. Nothing when all is well, or when it cannot be told.
std::optional<std::string> misspelt_queue(const Arguments& arguments);

/// "mail, orders".
std::string listed(const std::vector<std::string>& names);

}  // namespace sluice::cli
