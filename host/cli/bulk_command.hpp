#pragma once

#include <vector>

#include "host/cli/arguments.hpp"
#include "host/cli/bulk_report.hpp"
#include "host/cli/command.hpp"
#include "host/operate/bulk_run.hpp"

namespace sluice::cli {

/// What a command does to many messages.
struct BulkOrder {
  BulkWords words;
  operate::BulkWork work;
  /// Without a filter it takes everything, in whatever state; others want --all for everything.
  bool takes_all = false;
  bool dlq_only = false;  ///< there is no --dlq to ask for
};

/// --all, unless the command takes everything anyway.
Flag all_flag();
/// --consistent. Says in a table that its index may lag behind; elsewhere nothing lags.
Flag consistent_flag();
/// --dlq, unless the command knows the half by itself.
Flag dlq_flag();
/// The filter's flags, and --limit, --dry-run, --rate, --yes, --force and --resume.
std::vector<Flag> bulk_flags();

/// The first of these flags that was given; none of them goes together with --id.
std::string bulk_flag_given(const Arguments& arguments);

/// Runs it on the queue half that the arguments name: asks where there is a terminal (and wants --yes where there is
/// none), shows progress, stops between two batches on Ctrl-C and says how to go on.
Exit run_bulk(BulkOrder order, const Arguments& arguments, Console& console);

}  // namespace sluice::cli
