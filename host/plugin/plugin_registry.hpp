#pragma once

#include <sys/types.h>

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <memory>
#include <set>
#include <span>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "config/config.hpp"
#include "sluice/abi.h"
#include "sluice/detail/words.hpp"

namespace sluice::plugin {

/// What the dynamic linker said about `file`, as one line: what is missing and the mend, without the file's name.
std::string explain_load_error(const std::string& file, std::string_view said);

/// Limits of one plugin.
inline constexpr std::size_t kHandlerLimit = 64;
inline constexpr std::size_t kOptionLimit = 256;
inline constexpr std::size_t kNameLimit = detail::kWordLimit;
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

  int descriptor() const { return descriptor_.get(); }
  std::string path() const { return path_of(descriptor()); }
  /// SHA-256, 64 lower-case hexadecimal digits.
  const std::string& sha256() const { return sha256_; }

 private:
  SealedFile(Descriptor descriptor, std::string sha256)
      : descriptor_(std::move(descriptor)), sha256_(std::move(sha256)) {}

  const Descriptor descriptor_;
  const std::string sha256_;
};

/// What became of a file. Value.
struct LibraryResult {
  const sluice_plugin* plugin = nullptr;      ///< null when it cannot be used
  std::string why{};                          ///< then: one line with the mend, which follows the file's name
  bool loaded = false;                        ///< the dynamic linker has it, and will keep it until the process ends
  std::shared_ptr<const SealedFile> bytes{};  ///< what was loaded, when it had to have a digest
};

/// Looks at the file, loads it, finds its symbol and checks it. Nothing of the plugin is called, though its static
/// initialisers run. A loaded file is never unloaded: thread-locals and threads of a plugin may outlive any use of it.
/// `generation`: how many files of this name this process has loaded before, which all stay loaded.
LibraryResult load_library(const std::string& file, std::size_t generation = 0);

inline std::span<const sluice_handler* const> handlers_in(const sluice_plugin& plugin) {
  return {plugin.handlers, plugin.handler_count};
}
/// The handler of that name; null: the plugin has none.
const sluice_handler* find_handler(const sluice_plugin& plugin, const std::string& name);

/// A loaded plugin. Its pointers live as long as the process: plugins are never unloaded.
struct LoadedPlugin {
  std::string file;
  const sluice_plugin* plugin = nullptr;
  std::shared_ptr<const SealedFile> bytes;     ///< what was loaded, when a job pinned it; else null
  std::shared_ptr<const Descriptor> opened{};  ///< the file as it was, whatever lies under its name by now
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
  /// From now on those files alone of this folder are loaded that offer one of these handlers, or may for all that they
  /// tell, or are pinned.
  void need_only(std::string folder, std::set<std::string> handlers) {
    sparing_folder_ = std::move(folder);
    needed_ = std::move(handlers);
    told_.clear();
  }

  /// Loads every `*.so` in the folders that is not loaded yet, in name order. A file whose bytes have changed is loaded
  /// beside what it was, which keeps its handlers and offers none any more; where it cannot be used, what was loaded
  /// stays in use and the file is reported as rejected. So is one that was written into instead of being replaced, and
  /// a folder that does not exist; the name of a file stands for that file alone. Two plugins that offer one handler
  /// name: both are kept, but the name is ambiguous (see `handler`).
  void scan(const std::vector<std::string>& folders);

  /// The files that a scan of these folders would look at now: not loaded yet nor refused as they are.
  std::vector<std::string> unseen(const std::vector<std::string>& folders);
  /// Never loads the file as it was when `unseen` named it, but reports it as rejected for this reason.
  void refuse(const std::string& file, const std::string& why) {
    reject(file, why);
    KnownFile& known = known_[file];
    known.identity = looked_at_.at(file);
    known.why = rejected_.back().why;
    rejected_.pop_back();  // the scan says it
  }
  /// What was refused was not for what it is: the next scan looks at it again, though it is as it was.
  void look_again(const std::string& file) {
    known_[file].identity = {};
    known_[file].why.clear();
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
  /// The plugin that offers this very handler, or did before its file changed; null: none.
  const LoadedPlugin* owner_of(const sluice_handler* handler) const;
  /// A scan would look at the handler's file again, or its plugin offers it no more.
  bool is_stale(const sluice_handler* handler) const;
  /// Those that were not needed too.
  std::vector<std::string> handler_names() const;

 private:
  /// A file that the dynamic linker has, usable or not, or that it must not get as it is.
  struct KnownFile {
    FileIdentity identity;
    std::string why;      ///< empty: usable
    bool loaded = false;  ///< as it is, or as it was before
    std::size_t generation = 0;
    std::string sha256{};  ///< of what was loaded last
  };

  std::vector<std::string> files_of(const std::string& folder);
  bool is_needed(const std::string& file);
  bool is_due(const std::string& file, const FileIdentity& identity) const;
  bool lacks_pin(const LoadedPlugin* loaded, const std::string& name) const;
  bool is_new(const std::string& file, const FileIdentity& identity, const std::string& digest);
  void take(LoadedPlugin plugin);
  void reject(const std::string& file, const std::string& why);
  const LoadedPlugin* loaded_from(const std::string& file) const;
  Error no_such_handler(const std::string& name) const;

  std::vector<LoadedPlugin> plugins_;
  std::vector<LoadedPlugin> replaced_;  ///< by newer ones of the same file; jobs may still run them
  std::vector<RejectedPlugin> rejected_;
  PluginPins pins_;
  std::string sparing_folder_;    ///< empty: none
  std::set<std::string> needed_;  ///< handlers, of what lies there
  std::set<std::string> told_;    ///< handlers that files there offer, by what they tell unloaded
  std::vector<std::string> folders_;
  std::map<std::string, KnownFile> known_;
  std::map<std::string, FileIdentity> looked_at_;  ///< what `unseen` named, as it was then
};

}  // namespace sluice::plugin
