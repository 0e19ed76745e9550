#pragma once

#include <vector>

#include "host/cli/arguments.hpp"
#include "host/cli/command.hpp"
#include "host/cli/views/bulk_report.hpp"
#include "host/operate/bulk_run.hpp"

namespace sluice::cli {

/// What a command does to the messages that its arguments choose: those that it names by their ids, those of a half
/// that a filter matches, or all.
struct BulkOrder {
  BulkWords words;
  operate::BulkWork work;
  /// Without a filter it takes everything, in whatever state; others want --all for everything.
  bool takes_all = false;
  bool dlq_only = false;            ///< there is no --dlq to ask for
  bool any_state = false;           ///< meant for messages in flight too
  bool named_in_any_state = false;  ///< the same of those that are named one by one
  bool can_be_forced = true;        ///< has --force
  bool shows_message = true;        ///< one that is named alone is shown afterwards
  bool absent_is_success = false;   ///< to be without it was what was asked for
};

/// --rate: "100/s", "30/m" or "100", as messages a second; 0 where it is not given.
OrExit<double> parse_rate(const Arguments& arguments);
/// --all, unless the command takes everything anyway.
Flag all_flag();
/// --consistent. Says in a table that its index may lag behind; elsewhere nothing lags.
Flag consistent_flag();
/// --dlq, unless the command knows the half by itself.
Flag dlq_flag();
/// The filter's flags, and --limit, --dry-run, --rate, --yes, --force and --resume.
std::vector<Flag> bulk_flags();
/// These, and --id, --dlq and --all, for a command that takes the plain word ID.
std::vector<Flag> choice_flags();
/// `flags` but for the one of that name, which means nothing to a command.
std::vector<Flag> without_flag(std::vector<Flag> flags, std::string_view name);

/// Runs it on what the arguments choose: asks where there is a terminal (and wants --yes where there is none), shows
/// progress, stops between two batches on Ctrl-C and says how to go on. Messages that are named are looked for in both
/// halves; nobody is asked about them.
Exit run_bulk(const BulkOrder& order, const Arguments& arguments, Console& console);

}  // namespace sluice::cli
