#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "config/config.hpp"
#include "host/plugin/plugin_library.hpp"

namespace sluice::plugin {

/// A loaded plugin. Its pointers live as long as the process: plugins are never unloaded.
struct LoadedPlugin {
  std::string file;
  const sluice_plugin* plugin = nullptr;
  std::shared_ptr<const SealedFile> bytes;  ///< what was loaded, when a job pinned it; else null
};

/// A file in a plugin folder that could not be used.
struct RejectedPlugin {
  std::string file;
  std::string why;  ///< one line: what it has, what the host has, and the mend
};

/// SHA-256 digests (64 lower-case digits) that files have to have, by the name of the file in its folder.
using PluginPins = std::map<std::string, std::string>;
/// What these jobs pin. Of two digests for one file the first holds, and the other job finds its plugin missing.
PluginPins pins_of(const std::vector<config::JobConfig>& jobs);

/// Tells whether a file is the one it was. A value.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  std::int64_t modified_ns = 0;

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

/// The plugins of the plugin folders, and which handler is whose. Used by one thread at a time.
class PluginRegistry {
 public:
  PluginRegistry() = default;
  PluginRegistry(const PluginRegistry&) = delete;
  PluginRegistry& operator=(const PluginRegistry&) = delete;

  /// From now on a file of one of these names, in whichever folder, is loaded only when it has the digest.
  void pin(PluginPins pins) { pins_ = std::move(pins); }
  const PluginPins& pins() const { return pins_; }

  /// Loads every `*.so` in the folders that is not loaded yet, in name order; files that changed on disk since they
  /// were loaded are reported as rejected ("restart the host"). A folder that does not exist is reported as rejected
  /// too. Two plugins that offer one handler name: both are kept, but the name is ambiguous (see `handler`).
  void scan(const std::vector<std::string>& folders);

  /// The files that a scan of these folders would load now: not loaded yet, nor refused as they are.
  std::vector<std::string> unseen(const std::vector<std::string>& folders);
  /// Never loads the file as it was when `unseen` named it, but reports it as rejected for this reason.
  void refuse(const std::string& file, const std::string& why) {
    known_[file] = {looked_at_.at(file), file + " " + why, false};
  }
  /// As a scan does for one file.
  void load(const std::string& file);

  /// In the order of loading.
  const std::vector<LoadedPlugin>& plugins() const { return plugins_; }
  /// Of the last scan.
  const std::vector<RejectedPlugin>& rejected() const { return rejected_; }

  /// The handler of that name. An Error (invalid) naming the nearest known name and the folders looked in when there is
  /// none, or both files when two plugins offer it.
  Result<const sluice_handler*> handler(const std::string& name) const;
  /// The handler of that name in the plugin that is pinned, and in no other. An Error (invalid) when that plugin is not
  /// there, was refused, or was loaded as something else.
  Result<const sluice_handler*> handler(const std::string& name, const config::PluginPin& pin) const;
  /// The plugin that offers this very handler; null: none.
  const LoadedPlugin* owner_of(const sluice_handler* handler) const {
    const auto offers = [handler](const LoadedPlugin& loaded) {
      const auto* const end = loaded.plugin->handlers + loaded.plugin->handler_count;
      return std::find(loaded.plugin->handlers, end, handler) != end;
    };
    const auto owner = std::find_if(plugins_.begin(), plugins_.end(), offers);
    return owner == plugins_.end() ? nullptr : &*owner;
  }
  std::vector<std::string> handler_names() const;

 private:
  /// A file that the dynamic linker has, usable or not, or that it must not get as it is.
  struct KnownFile {
    FileIdentity identity;
    std::string why;  ///< empty: usable
    bool loaded = true;
  };

  std::vector<std::string> files_of(const std::string& folder);
  Error no_such_handler(const std::string& name) const;

  std::vector<LoadedPlugin> plugins_;
  std::vector<RejectedPlugin> rejected_;
  PluginPins pins_;
  std::vector<std::string> folders_;
  std::map<std::string, KnownFile> known_;
  std::map<std::string, FileIdentity> looked_at_;  ///< what `unseen` named, as it was then
};

}  // namespace sluice::plugin
