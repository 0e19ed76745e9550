#pragma once

#include <vector>

#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/operate/filter.hpp"

namespace sluice::cli {

/// The flags --where, --older-than, --error and --error-like of a command that chooses among messages.
std::vector<Flag> filter_flags();

/// What they ask for; everything when none of them is given. Exit 64 names the column of a syntax error in --where and
/// points at it.
OrExit<operate::Filter> parse_filter(const Arguments& arguments);

/// One list of flags behind another.
std::vector<Flag> joined(std::vector<Flag> first, const std::vector<Flag>& second);

}  // namespace sluice::cli
