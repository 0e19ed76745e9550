#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/exit.hpp"

namespace sluice::cli {

/// The flag that every command with a host file has.
struct Flag;
Flag config_flag();

/// The host file's path: --config, else SLUICE_CONFIG, else ./host.toml, else /etc/sluice/host.toml. Exit 78 with what
/// was looked for when there is none.
OrExit<std::string> find_host_file(const Arguments& arguments);

/// Finds and reads it. Exit 78 with every error, one a line.
OrExit<config::HostConfig> load_host_file(const Arguments& arguments);

/// Errors as lines.
Exit configuration_exit(const std::vector<config::ConfigError>& errors);

}  // namespace sluice::cli
