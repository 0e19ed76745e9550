#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace sluice::dynamo {

/// What AWS's tools read from around a process: its environment variables and the user's home folder. A value, injected
/// so that tests never touch the real ones.
class AwsEnvironment {
 public:
  using Lookup = std::function<std::optional<std::string>(const std::string&)>;

  /// `lookup` must be thread-safe. An empty `home` means that there is none.
  AwsEnvironment(Lookup lookup, std::filesystem::path home) : lookup_(std::move(lookup)), home_(std::move(home)) {}

  /// This process's environment and $HOME.
  static AwsEnvironment of_process();

  /// The variable's text; nothing when it is not set or empty, which AWS treats alike.
  std::optional<std::string> get(const std::string& name) const;
  /// True for "true" in any case.
  bool is_true(const std::string& name) const;
  const std::filesystem::path& home() const { return home_; }
  /// `path` with a leading "~" as the home folder.
  std::filesystem::path expand(const std::string& path) const;

 private:
  Lookup lookup_;
  std::filesystem::path home_;
};

}  // namespace sluice::dynamo
