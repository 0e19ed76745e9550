#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "host/cli/arguments.hpp"
#include "host/cli/exit.hpp"

namespace sluice::cli {

/// The flag that every command with a host file has.
struct Flag;
Flag config_flag();
/// The flag of commands that load plugins.
inline constexpr const char* kAllowInsecureFiles = "allow-insecure-files";
Flag allow_insecure_files_flag();

/// The host file's path: --config, else SLUICE_CONFIG, else ./host.toml, else /etc/sluice/host.toml. Exit 78 with what
/// was looked for when there is none.
OrExit<std::string> find_host_file(const Arguments& arguments);

/// True when --config or SLUICE_CONFIG names a host file, whether or not there is one.
bool names_host_file(const Arguments& arguments);
/// The host file that lies at a default place.
std::optional<std::string> default_host_file();

/// Finds and reads it. Exit 78 with every error, one a line.
OrExit<config::HostConfig> load_host_file(const Arguments& arguments);

/// Exit 78 with every error of the host's job files, one a line.
Exit check_job_files(const config::HostConfig& host);

/// Errors as lines.
Exit configuration_exit(const std::vector<config::ConfigError>& errors);

}  // namespace sluice::cli
