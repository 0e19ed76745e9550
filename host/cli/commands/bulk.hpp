#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/cli/command.hpp"
#include "host/cost/prices.hpp"
#include "host/operate/bulk_run.hpp"

namespace sluice::cli {

/// What a bulk command calls its work.
struct BulkWords {
  std::string_view verb;  ///< "remove"
  std::string_view done;  ///< "removed"
};

/// How fast many messages are gone through, and how long it will take. A value that is told the time.
class BulkProgress {
 public:
  /// `expected`: the messages that will be gone through, where somebody has counted them.
  BulkProgress(SteadyTime began, std::optional<std::uint64_t> expected) : began_(began), expected_(expected) {}

  /// Messages a second; 0 as long as nothing can be said.
  double rate(std::uint64_t through, SteadyTime now) const;
  /// ", 48/s, 20s left"; empty as long as nothing can be said.
  std::string text(std::uint64_t through, SteadyTime now) const;

 private:
  SteadyTime began_;
  std::optional<std::uint64_t> expected_;
};

/// What a command does to the messages that its arguments choose: those that it names by their ids, those of a half
/// that a filter matches, or all.
struct BulkOrder {
  BulkWords words{};
  queue::ChangeAction action{};  ///< where it is a change, and no edit
  /// Without a filter it takes everything, in whatever state; others want --all for everything.
  bool takes_all = false;
  bool dlq_only = false;            ///< there is no --dlq to ask for
  bool any_state = false;           ///< meant for messages in flight too
  bool named_in_any_state = false;  ///< the same of those that are named one by one
  bool shows_message = true;        ///< one that is named alone is shown afterwards
};

/// What a command has spent, and after it what the run that it only plans would: in whole requests.
cost::Spent with_planned(cost::Spent spent, const cost::Spent& planned);

/// The flags of a command that takes the plain word ID: --id, --dlq, --all, the filter's, --limit, --dry-run, --ids,
/// --rate, --force, --yes, --consistent, --resume and --reason.
std::vector<Flag> choice_flags();

/// Does the work on what the arguments choose: asks where there is a terminal (and wants --yes where there is none),
/// shows progress and what came of it (on a terminal a count, elsewhere and with --ids each message), stops between two
/// batches on Ctrl-C and says how to go on. Messages that are named are looked for in both halves; nobody is asked
/// about them.
Exit run_bulk(const BulkOrder& order, operate::BulkWork work, const Arguments& arguments, Console& console);

}  // namespace sluice::cli
