#include "host/cli/host_file.hpp"

#include <array>
#include <filesystem>
#include <utility>
#include <variant>

#include "host/cli/command.hpp"

namespace sluice::cli {

namespace {

constexpr std::array<const char*, 2> kDefaultPlaces{"host.toml", "/etc/sluice/host.toml"};
constexpr const char* kVariable = "SLUICE_CONFIG";

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

OrExit<std::string> named(const std::string& path, const std::string& by) {
  if (!exists(path)) {
    return Exit(kExitConfiguration, "there is no host file " + path + ", which " + by + " names; mend the name");
  }
  return path;
}

}  // namespace

Flag config_flag() {
  return {.name = "config", .value = "FILE", .help = "host file [default: host.toml, else /etc/sluice/host.toml]"};
}

Flag allow_insecure_files_flag() {
  return {.name = kAllowInsecureFiles,
          .value = {},
          .help = "use plugins and configuration that other users may write; for laptops"};
}

OrExit<std::string> find_host_file(const Arguments& arguments) {
  if (arguments.has("config")) {
    return named(arguments.get("config"), "--config");
  }
  const auto variable = config::process_environment()(kVariable);
  if (variable && !variable->empty()) {
    return named(*variable, kVariable);
  }
  if (auto place = default_host_file()) {
    return std::move(*place);
  }
  return Exit(kExitConfiguration,
              "no host file: there is neither host.toml in this folder nor /etc/sluice/host.toml; name one with "
              "--config FILE or the variable SLUICE_CONFIG");
}

bool names_host_file(const Arguments& arguments) {
  return arguments.has("config") || !config::process_environment()(kVariable).value_or("").empty();
}

std::optional<std::string> default_host_file() {
  for (const char* place : kDefaultPlaces) {
    if (exists(place)) {
      return place;
    }
  }
  return std::nullopt;
}

OrExit<config::HostConfig> load_host_file(const Arguments& arguments) {
  SLUICE_TRY(path, find_host_file(arguments));
  auto parsed = config::load_host_config(*path, config::process_environment());
  if (const auto* errors = std::get_if<std::vector<config::ConfigError>>(&parsed)) {
    return configuration_exit(*errors);
  }
  return std::get<config::HostConfig>(std::move(parsed));
}

Exit check_job_files(const config::HostConfig& host) {
  const auto jobs = config::load_job_files(host, config::process_environment());
  return jobs.errors.empty() ? Exit::ok() : configuration_exit(jobs.errors);
}

Exit configuration_exit(const std::vector<config::ConfigError>& errors) {
  std::vector<std::string> lines;
  lines.reserve(errors.size());
  for (const auto& error : errors) {
    lines.push_back(error.text());
  }
  return {kExitConfiguration, std::move(lines)};
}

}  // namespace sluice::cli
