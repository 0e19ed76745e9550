#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace sluice::config {

/// The text of a configuration file, or the one error that says why it cannot be read: absent, a folder, not permitted,
/// too big. Never blocks on what is no regular file.
Parsed<std::string> read_config_file(const std::string& file);

/// The job files of a host, in name order, each once, and what is wrong with how they are named.
struct MatchedFiles {
  std::vector<std::string> files;
  std::vector<ConfigError> errors;  ///< placed at the pattern, or at the host file as a whole
};

/// A pattern with '*' or '?' in its last component may match nothing; one without names a file that must exist. Hidden
/// files match only a pattern that begins with a dot.
MatchedFiles match_files(const HostConfig& host);

/// `lib/sluice/plugins` beside the `bin` of this program; empty where there is none.
std::string installed_plugin_dir();
/// Where plugins are looked for: not in a default folder that nobody named and that is not there, if there is
/// another one.
std::vector<std::string> plugin_folders(const HostConfig& host);

/// `path` as seen from the folder of `file`, when it is relative; an empty one stays empty.
std::string resolve_path(const std::string& path, const std::string& file);

/// What keeps a host from trusting a file whose content decides what it does: somebody besides root and this user may
/// write it, or put another in its place. Nothing when only they may; otherwise what is wrong and the mend, as text
/// that follows the file's name.
///
/// Looks at the file, at every folder in which its name and the names of symbolic links on the way are looked up, and
/// at the links. A folder with the sticky bit may be written by all. What lies on a file system that is mounted
/// read-only may have any mode and owner, as ConfigMaps and Docker's `:ro` have; a group that has its owner's number
/// or this user's, and no other members, is nobody else. A file that is not there, or cannot be seen, is left to
/// whoever opens it.
std::optional<std::string> distrust(const std::string& file);

}  // namespace sluice::config
