#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/config.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/runtime/plugin_trial.hpp"

namespace sluice::runtime {

/// Decides which plugin files a process lets in: those that only it and root may write, and that do no harm to a
/// process that tries them first. Used by one thread at a time, which waits for the trial.
class PluginGate {
 public:
  /// `host` and `registry` outlive it.
  PluginGate(const config::HostConfig& host, plugin::PluginRegistry& registry, PluginTrial trial = PluginTrial())
      : host_(host), registry_(registry), trial_(std::move(trial)) {}

  /// What the registry has pinned holds here and in the trial.
  /// Loads what is new in the host's plugin folders and may come in; the rest is among the registry's rejected. Also
  /// tries to make the handlers of `jobs`: an error for each one that must not be made here, at the handler's place.
  /// Fails when no trial is to be had; nothing has been loaded then.
  Result<std::vector<config::ConfigError>> admit(const std::vector<config::JobConfig>& jobs);

 private:
  const config::HostConfig& host_;
  plugin::PluginRegistry& registry_;
  const PluginTrial trial_;
};

}  // namespace sluice::runtime
