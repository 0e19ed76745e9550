#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// A loaded plugin. Its pointers live as long as the process: plugins are never unloaded.
struct LoadedPlugin {
  std::string file;
  const sluice_plugin* plugin = nullptr;
};

/// A file in a plugin folder that could not be used.
struct RejectedPlugin {
  std::string file;
  std::string why;  ///< one line: what it has, what the host has, and the mend
};

/// The plugins of the plugin folders, and which handler is whose. Used by one thread at a time.
class PluginRegistry {
 public:
  PluginRegistry();
  ~PluginRegistry();
  PluginRegistry(const PluginRegistry&) = delete;
  PluginRegistry& operator=(const PluginRegistry&) = delete;

  /// Loads every `*.so` in the folders that is not loaded yet, in name order; files that changed on disk since they
  /// were loaded are reported as rejected ("restart the host"). A folder that does not exist is reported as rejected
  /// too. Two plugins that offer one handler name: both are kept, but the name is ambiguous (see `handler`).
  void scan(const std::vector<std::string>& folders);

  /// The files that a scan of these folders would load now: not loaded yet, nor refused as they are.
  std::vector<std::string> unseen(const std::vector<std::string>& folders);
  /// Never loads the file as it was when `unseen` named it, but reports it as rejected for this reason.
  void refuse(const std::string& file, const std::string& why);
  /// As a scan does for one file.
  void load(const std::string& file);

  /// In the order of loading.
  const std::vector<LoadedPlugin>& plugins() const;
  /// Of the last scan.
  const std::vector<RejectedPlugin>& rejected() const;

  /// The handler of that name. An Error (invalid) naming the nearest known name and the folders looked in when there is
  /// none, or both files when two plugins offer it.
  Result<const sluice_handler*> handler(const std::string& name) const;
  std::vector<std::string> handler_names() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::plugin
