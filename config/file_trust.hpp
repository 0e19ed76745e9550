#pragma once

#include <optional>
#include <string>

namespace sluice::config {

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
