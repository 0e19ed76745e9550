#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace sluice::config {

inline Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

/// One error a line; empty when the text was good.
template <typename T>
std::string errors_text(const Parsed<T>& parsed) {
  std::string text;
  for (const ConfigError& error : parsed ? std::vector<ConfigError>() : parsed.error()) {
    text += error.text() + "\n";
  }
  return text;
}

/// A host's jobs, or what is wrong with their files.
inline Parsed<std::vector<JobConfig>> load_jobs(const HostConfig& host) {
  JobFiles files = load_job_files(host, [](const std::string&) { return std::nullopt; });
  if (!files.errors.empty()) {
    return std::move(files.errors);
  }
  return std::move(files.jobs);
}

/// The value; a failed test and a default one when there are errors.
template <typename T>
T value_of(Parsed<T> parsed) {
  if (parsed) {
    return std::move(*parsed);
  }
  ADD_FAILURE() << errors_text(parsed);
  return T{};
}

/// What a host file says that is in order.
inline HostConfig host_of(const std::string& text, std::map<std::string, std::string> variables = {}) {
  return value_of(parse_host_config(text, "/etc/sluice/host.toml", environment_of(std::move(variables))));
}

inline std::string file_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// A folder that is gone at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-config-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      ADD_FAILURE() << "no temporary folder";
    }
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

  /// Writes a file in it, with the folders it needs; returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

}  // namespace sluice::config
