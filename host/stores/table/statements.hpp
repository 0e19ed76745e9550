#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "dynamo/error.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/metadata_items.hpp"

namespace sluice::queue::table {

/// The record that a statement is about, as it must be for it to take effect.
struct Expected {
  std::string id;
  VersionMark version;
  std::optional<Half> half{};  ///< the half of the queue; nothing: either
  /// Its invisibility must have ended before; nothing: it need not. Times are compared as they are spelt, which may
  /// refuse a record that became visible within that same second, but takes none that is hidden (in UTC, as all write).
  std::optional<WallTime> visible_at{};
  /// `sent_at` as it is spelt; nothing: whatever it is. Versions begin anew with a message that is sent again under an
  /// id that had become free; the time at which it was sent tells it from the one before.
  std::optional<std::string> sent_at{};
  std::string sort{};  ///< the sort key, where the layout has one
};

/// What one update writes. As a statement, assignments are separated by commas, and at most one attribute is taken
/// away: neither repeated SET nor repeated REMOVE is understood everywhere. What takes more away is no statement.
struct RecordChange {
  std::vector<std::pair<std::string_view, dynamo::AttributeValue>> set;
  std::vector<std::string_view> removed{};  ///< the attributes that are to go

  /// The attribute goes; where another one goes already it gets `none`, which says the same as its absence.
  void take_away(std::string_view name, dynamo::AttributeValue none) {
    if (removed.empty()) {
      removed.push_back(name);
    } else {
      set.emplace_back(name, std::move(none));
    }
  }
};

/// Attributes that a record may have, so that a change which takes them away has to name them.
struct MayHave {
  bool marks = true;
  bool failure = true;
  bool checkpoint = true;
};
/// A change of a message's state as attributes of a layout, but for what that says otherwise.
RecordChange attributes_of(const LayoutNames& names, const core::StateChange& change, MayHave may_have = {});

/// One write of one record, before it is spelt: as a statement of a batch, as a request of its own, or as an action of
/// a transaction. A value.
struct RecordWrite {
  enum class Kind { insert, update, remove };
  static constexpr std::size_t kKinds = 3;

  Kind kind = Kind::update;
  std::string_view table;              ///< outlives the write
  Expected expected;                   ///< of an insert only the id, which must not be there yet
  bool whatever_it_is = false;         ///< only the id of `expected` counts; no statement inserts so
  dynamo::Item item{};                 ///< of an insert: the whole record
  RecordChange change{};               ///< of an update
  bool returning = false;              ///< an update its new item, a removal the old one
  const LayoutNames* names = nullptr;  ///< always given; outlives the write

  const std::string& id() const { return expected.id; }
  dynamo::Item key() const;
};

/// What every update leaves beside its change.
struct WriteMark {
  std::string_view nonce;
  WallTime now{};
};

// Writes of a table, whose name outlives them. Each is conditional on the version that is expected. Items are only ever
// updated, never put again, so that attributes which we do not know stay.

/// Raises the version, leaves the mark, and applies `change`; returns the new item when `returning`.
RecordWrite update_of(const LayoutNames& names, std::string_view table, Expected expected, const WriteMark& mark,
                      RecordChange change, bool returning = false);
/// Returns the old item: the one way to tell a removal from a record that was gone already.
RecordWrite removal_of(const LayoutNames& names, std::string_view table, Expected expected);
/// Makes an item of that version what it is after a change: its version raised, with the mark.
void touch(const LayoutNames& names, dynamo::Item& item, const VersionMark& version, const WriteMark& mark);

/// The PartiQL statement that makes the write.
dynamo::Statement statement_of(const RecordWrite& write);

/// The request that makes this write alone, or as one action of a transaction, under the same conditions as its
/// statement would. What the statement returns comes as the answer's item.
dynamo::ItemWrite request_of(const RecordWrite& write);

/// Whether the role was refused for want of a right, and not for a signature or a token that is no good.
bool lacks_right(const dynamo::Error& error);

/// Which statements this process may not execute, as far as refusals have told: DynamoMQ's own policy grants PutItem,
/// UpdateItem and DeleteItem, and knows no PartiQL. Such writes go out as requests of their own.
///
/// Rights may be granted later, so that statements are tried again now and then. Thread-safe.
class StatementRights {
 public:
  static constexpr Duration kAskAgain = std::chrono::minutes(10);

  /// `warn` is told once for each table, in a line, what the rights would save; may be empty.
  explicit StatementRights(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  bool denied(std::string_view table, RecordWrite::Kind kind, SteadyTime now) const;
  /// The role was refused this kind of statement.
  void refused(std::string_view table, RecordWrite::Kind kind, SteadyTime now);
  /// So many writes go out one by one that would have gone together.
  void note_singles(std::string_view table, std::size_t writes);

 private:
  const std::function<void(const std::string&)> warn_;
  mutable Mutex mutex_;
  // Guarded by mutex_, by table.
  std::map<std::pair<std::string, RecordWrite::Kind>, SteadyTime> refused_at_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::string> warned_ SLUICE_GUARDED_BY(mutex_);
};

/// What became of a write.
enum class StatementFate {
  done,
  refused,  ///< its condition did not hold, or the id was there already
  unknown,  ///< it may or may not have taken effect, and was not or could not be repeated to an end
  failed,   ///< it had no effect; see `error`
};

struct StatementOutcome {
  StatementFate fate = StatementFate::failed;
  dynamo::Item item;  ///< what RETURNING gave
  dynamo::Error error;
  bool repeated = false;  ///< a try before the last one had an unknown outcome: a refusal may be its own doing
};

/// Whether an outcome leaves open what has happened: its answer was lost, or it was refused after an earlier try whose
/// answer was lost, and which may be why.
inline bool in_doubt(const StatementOutcome& outcome) {
  return outcome.fate == StatementFate::unknown || (outcome.fate == StatementFate::refused && outcome.repeated);
}

/// What the runner tries again by itself: nothing, as a claim has other candidates; what may have taken effect; or what
/// was throttled too.
enum class Repetition { none, until_answered, until_known };

/// Makes writes as PartiQL statements in batches of 25, fewer where they are large, several batches side by side. What
/// the role may not write so (StatementRights), or no statement can spell, is written by requests of its own, many side
/// by side, to the same effect.
///
/// Thread-safe. A throttled statement is repeated with growing, jittered pauses, one with an unknown outcome at once,
/// both at most kMaxTries times and within the deadline. When DynamoDB rejects a batch as a whole for one malformed
/// statement, its statements are sent alone. Statements about the same record run one after another, in their order.
class StatementRunner {
 public:
  static constexpr std::size_t kMaxBatchesAtOnce = 8;
  static constexpr std::size_t kMaxSinglesAtOnce = 100;  ///< requests; the transport has fewer under way at a time
  static constexpr int kMaxTries = 8;
  static constexpr Duration kFirstPause = std::chrono::milliseconds(50);
  static constexpr Duration kLongestPause = std::chrono::seconds(2);

  /// The references must outlive the runner; `warn` as StatementRights'.
  StatementRunner(dynamo::Client& client, const Clock& clock, Random& random,
                  std::function<void(const std::string&)> warn = {})
      : client_(client), clock_(clock), random_(random), rights_(std::move(warn)) {}

  std::vector<StatementOutcome> run(std::vector<RecordWrite> writes, Repetition repetition, Deadline deadline);

 private:
  struct Task;
  struct Batch;
  struct Round;

  void run_batches(Round& round, Deadline deadline);
  void run_singles(Round& round, Deadline deadline);
  bool refused_for_want_of_right(const std::vector<Task*>& batch, const dynamo::Error& error);

  dynamo::Client& client_;
  const Clock& clock_;
  Random& random_;
  StatementRights rights_;  // synchronises itself
};

/// Consistent reads of whole items, a hundred at a time; absent ones are missing from the answer, and one that is asked
/// for twice is there once.
dynamo::Result<std::vector<dynamo::Item>> read_items(dynamo::Client& client, const std::string& table,
                                                     const std::vector<dynamo::Item>& keys, Deadline deadline);

}  // namespace sluice::queue::table
