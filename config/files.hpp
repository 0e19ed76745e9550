#pragma once

#include <string>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace sluice::config {

/// The text of a configuration file, or the one error that says why it cannot be read: absent, a folder, not permitted,
/// too big. Never blocks on what is no regular file.
Parsed<std::string> read_config_file(const std::string& file);

/// The files that the patterns name, in name order, each once. A pattern with '*' or '?' in its last component may
/// match nothing; one without names a file that must exist. Hidden files match only a pattern that begins with a dot.
/// Errors are placed at `host_file` as a whole.
Parsed<std::vector<std::string>> match_files(const std::vector<std::string>& patterns, const std::string& host_file);

/// `path` as seen from the folder of `file`, when it is relative.
std::string resolve_path(const std::string& path, const std::string& file);

/// True when the name matches a pattern of '*' (any characters) and '?' (one byte).
bool matches(const std::string& name, const std::string& pattern);

}  // namespace sluice::config
