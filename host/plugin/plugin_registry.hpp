#pragma once

#include <sys/types.h>

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <memory>

#include "base/error.hpp"
#include "config/config.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// "shape(int)" of "_Z5shapei"; the same text when it is no mangled name.
std::string demangled(const std::string& symbol);

/// What the dynamic linker said about `file`, as one line: what is missing and the mend, without the file's name.
std::string explain_load_error(const std::string& file, std::string_view said);

/// Limits of one plugin.
inline constexpr std::size_t kHandlerLimit = 64;
inline constexpr std::size_t kOptionLimit = 256;
inline constexpr std::size_t kNameLimit = 64;
inline constexpr std::size_t kHelpLimit = 4096;

/// Checks everything that the host relies on later, without calling anything of the plugin. Nothing when it may be
/// used; otherwise what it has, what the host has, and the mend, without the file's name. `symbol_size`: the bytes the
/// file says its symbol has; 0 when it does not say.
std::optional<std::string> refuse_plugin(const sluice_plugin& plugin, std::size_t symbol_size);

/// The bytes of a file as they were when it was read, in memory that nobody can change any more, and their digest. What
/// was compared is what is loaded, whatever becomes of the file meanwhile. Immutable; closed with its last owner.
class SealedFile : boost::noncopyable {
 public:
  /// Fails with a text that follows the file's name.
  static Result<std::shared_ptr<const SealedFile>> copy_of(const std::string& file);
  ~SealedFile();

  int descriptor() const { return descriptor_; }
  /// By which this process, and no other, can open it.
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  /// SHA-256, 64 lower-case hexadecimal digits.
  const std::string& sha256() const { return sha256_; }

 private:
  SealedFile(int descriptor, std::string sha256) : descriptor_(descriptor), sha256_(std::move(sha256)) {}

  const int descriptor_;
  const std::string sha256_;
};

/// What became of a file. Value.
struct LibraryResult {
  const sluice_plugin* plugin = nullptr;    ///< null when it cannot be used
  std::string why;                          ///< then: one line with the file's name and the mend
  bool loaded = false;                      ///< the dynamic linker has it, and will keep it until the process ends
  std::shared_ptr<const SealedFile> bytes;  ///< what was loaded, when it had to have a digest
};

/// Looks at the file, loads it, finds its symbol and checks it. Nothing of the plugin is called, though its static
/// initialisers run. A loaded file is never unloaded: thread-locals and threads of a plugin may outlive any use of it.
LibraryResult load_library(const std::string& file);

/// The handler of that name; null: the plugin has none.
const sluice_handler* find_handler(const sluice_plugin& plugin, const std::string& name);

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
class PluginRegistry : boost::noncopyable {
 public:
  /// From now on a file of one of these names, in whichever folder, is loaded only when it has the digest.
  void pin(PluginPins pins) { pins_ = std::move(pins); }
  const PluginPins& pins() const { return pins_; }

  /// Loads every `*.so` in the folders that is not loaded yet, in name order; files that changed on disk since they
  /// were loaded are reported as rejected ("restart the host"). A folder that does not exist is reported as rejected
  /// too; the name of a file stands for that file alone. Two plugins that offer one handler name: both are kept, but the
  /// name is ambiguous (see `handler`).
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
