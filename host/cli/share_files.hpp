#pragma once

#include <string>

#include "host/cli/exit.hpp"

namespace sluice::cli {

/// The word that makes the program write what an installation brings beside it. For the build; no help names it.
inline constexpr const char* kShareFilesWord = "__share";

/// Writes manual pages and completions below `folder`, which is laid out as a prefix's share/ is.
Exit write_share_files(const std::string& folder);

}  // namespace sluice::cli
