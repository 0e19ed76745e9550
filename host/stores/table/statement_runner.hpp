#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "dynamo/error.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::table {

/// The IAM action that a statement of that kind needs, and the one that the same write needs as a request of its own.
std::string_view statement_action(RecordWrite::Kind kind);
std::string_view request_action(RecordWrite::Kind kind);

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
  struct Known {
    std::array<std::optional<SteadyTime>, RecordWrite::kKinds> refused_at;
    bool warned = false;
  };

  const std::function<void(const std::string&)> warn_;
  mutable Mutex mutex_;
  std::map<std::string, Known, std::less<>> tables_ SLUICE_GUARDED_BY(mutex_);
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

  /// Consistent reads of whole records of a table without a sort key, by the attribute that is its key; absent ones are
  /// missing from the answer.
  dynamo::Result<std::unordered_map<std::string, dynamo::Item>> read(const std::string& table, std::string_view key,
                                                                     const std::vector<std::string>& ids,
                                                                     Deadline deadline);

 private:
  struct Batch;
  struct Work;

  void run_round(Work& work, Deadline deadline);
  std::vector<std::size_t> run_batches(Work& work, const std::vector<Batch>& batches, Deadline deadline);
  std::vector<std::size_t> run_singles(Work& work, const std::vector<std::size_t>& singles, Deadline deadline);
  bool refused_for_want_of_right(const Work& work, const std::vector<std::size_t>& batch, const dynamo::Error& error);
  void pause(int round, Deadline deadline);

  dynamo::Client& client_;
  const Clock& clock_;
  Random& random_;
  StatementRights rights_;  // synchronises itself
};

}  // namespace sluice::queue::table
