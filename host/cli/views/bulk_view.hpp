#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/console.hpp"
#include "host/cli/queue_session.hpp"
#include "host/operate/bulk_run.hpp"
#include "host/queue/message.hpp"
#include "host/runtime/host_queues.hpp"

namespace sluice::cli {

/// What a bulk command calls its work.
struct BulkWords {
  std::string_view verb;  ///< "remove"
  std::string_view done;  ///< "removed"
};

/// Shows a bulk run as it goes: one JSON object with DynamoMQ's lists first, or a line for each message. Ids go out as
/// they come and are not kept. One thread.
class BulkReport {
 public:
  BulkReport(BulkWords words, bool dry_run, Output output, Console& console);

  void add(const std::vector<operate::BulkOutcome>& outcomes);
  /// Ends the object with the counts, with the place where a run that is not complete goes on, and after a dry run with
  /// what it would have cost; `spent` is what the command itself has cost, nothing where that is not known.
  void finish(const queue::QueueAddress& address, const operate::BulkRun& run,
              const std::optional<runtime::DynamoDbCost>& spent);

  bool is_json() const { return output_ == Output::json; }
  /// "12 removed, 3 skipped, 1 failed".
  std::string summary(const operate::BulkCount& count) const;

 private:
  void add_id(const std::string& id);
  void add_line(const operate::BulkOutcome& outcome);
  void write_reasons(std::string_view name, const std::vector<operate::BulkOutcome>& outcomes);
  void write_cost(const operate::BulkRun& run, const runtime::DynamoDbCost& spent);

  const BulkWords words_;
  const bool dry_run_;
  const Output output_;
  Console& console_;
  JsonWriter json_{JsonWriter::Layout::indented};
  bool any_id_ = false;
  std::vector<operate::BulkOutcome> failures_;
  std::vector<operate::BulkOutcome> skipped_;
};

/// How fast a bulk run goes, and how long it will take. A value that is told the time.
class BulkProgress {
 public:
  /// `expected`: the messages that it will change, where somebody has counted them.
  BulkProgress(SteadyTime began, std::optional<std::uint64_t> expected) : began_(began), expected_(expected) {}

  /// ", 48/s, 20s left"; empty as long as nothing can be said.
  std::string text(const operate::BulkCount& count, SteadyTime now) const;

 private:
  SteadyTime began_;
  std::optional<std::uint64_t> expected_;
};

/// How many messages a run will change, as far as somebody has counted.
struct Expected {
  std::optional<std::uint64_t> messages;
};

/// Asks whether to do what the plan says, and says in numbers what that is: the limit, what a filter matches (it is
/// counted first, for a few seconds at most), what stays because it is in flight. Without a terminal it wants --yes.
/// Nothing is asked for a dry run, for --yes, and for messages that are named one by one.
OrExit<Expected> agree(QueueSession& session, const operate::BulkPlan& plan, BulkWords words,
                       const Arguments& arguments, Console& console);

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
  bool can_be_forced = true;        ///< has --force
  bool shows_message = true;        ///< one that is named alone is shown afterwards
  bool absent_is_success = false;   ///< to be without it was what was asked for
};

/// The flags of a command that takes the plain word ID: --id, --dlq, --all, the filter's, --limit, --dry-run, --rate,
/// --force, --yes, --consistent and --resume.
std::vector<Flag> choice_flags();

/// Does the work on what the arguments choose: asks where there is a terminal (and wants --yes where there is none),
/// shows progress, stops between two batches on Ctrl-C and says how to go on. Messages that are named are looked for in
/// both halves; nobody is asked about them.
Exit run_bulk(const BulkOrder& order, operate::BulkWork work, const Arguments& arguments, Console& console);

}  // namespace sluice::cli
