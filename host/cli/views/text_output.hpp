#pragma once

#include <vector>

#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"

namespace sluice::cli {

/// --output json|text and --json, read by `Arguments::output`.
std::vector<Flag> output_flags();

// For commands whose text is what everybody expects of them, wherever it goes: `version` and `check`.

/// --output json|text and --json.
std::vector<Flag> text_output_flags();

/// As `Arguments::output`, but text where nobody says otherwise, in a pipe too.
OrExit<Output> output_or_text(const Arguments& arguments);

}  // namespace sluice::cli
