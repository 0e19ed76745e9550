#pragma once

#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"

namespace sluice::cli {

/// --output json|text, read by `Arguments::output`.
Flag output_flag();

// For commands whose text is meant for people first, and that have had a switch --json.

/// --output json|text.
Flag text_output_flag();

/// --json, else --output, else the SLUICE_OUTPUT variable, else text; exit 64 for another word, and for both options.
OrExit<Output> output_or_text(const Arguments& arguments);

}  // namespace sluice::cli
