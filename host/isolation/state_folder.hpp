#pragma once

#include <vector>

#include "base/error.hpp"

namespace sluice::isolation {

/// Why something below a host's state folder cannot be: `what`, the system's words for its error number, and what
/// mends that. ErrorCode::full where room is missing, `unavailable` where it may pass by itself, otherwise `denied`.
Error state_file_error(const std::string& what, int number);

/// Makes a folder for its owner alone (0700), and those above it as they come. One that is there is left as it is.
/// An Error that names the folder, the cause and its mend when it cannot be made.
Result<void> make_private_folder(const std::string& folder);

/// The same for files that get their names once they are finished, and are called ".new" before: those that are an hour
/// old are removed, for hosts have died while they made them.
Result<void> make_state_folder(const std::string& folder);

/// The files of a folder that have this extension, by name; none where there is no folder.
std::vector<std::string> files_in(const std::string& folder, const std::string& extension);

}  // namespace sluice::isolation
