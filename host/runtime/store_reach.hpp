#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "config/config.hpp"

namespace sluice::runtime {

/// Why a message cannot be sent to a queue in one transaction with the end of another queue's message: it lies in
/// another store. Nothing: it can.
std::optional<Error> beyond_store(const config::HostConfig& config, const std::string& from, const std::string& to);

}  // namespace sluice::runtime
