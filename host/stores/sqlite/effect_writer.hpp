#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/sender.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/records.hpp"
#include "host/stores/sqlite/user_statements.hpp"

namespace sluice::queue::sqlite {

/// Settles completions that carry effects, inside a transaction of its connection: each with all of its effects or not
/// at all, and without a trace in the others.
///
/// A savepoint holds a run of completions, for one of its own would cost each as much as its work; where one of the run
/// is refused the run is undone, and made again without it. The order within a completion is: the fence, the writes as
/// they were staged, the messages, the key. Messages that nothing can be found wrong with any more, which is those
/// whose ids were made up for them, are put down at the end, those of all runs to one queue at once: nobody sees them
/// before.
class EffectWriter {
 public:
  EffectWriter(Connection& connection, Records& records, std::size_t most_bytes);

  /// How far a call has come that may take several transactions: everybody else waits for one, so that it takes no more
  /// completions once it has lasted, and what makes one fail is to be found. By the completions' index in the call.
  struct Course {
    /// Not to be tried again, and refused for this: their statements make SQLite end the whole transaction, or nothing
    /// with them in it can be committed.
    std::map<std::size_t, Error> barred{};
    /// Completions with effects in the next transaction. 0: it shows whether the file takes anything at all.
    std::size_t most = kMany;
    bool file_is_sound = false;  ///< it took something since one has failed

    // Of the last transaction.
    std::vector<std::size_t> left{};  ///< not come to
    std::size_t begun = 0;            ///< completions with effects
    std::size_t last_begun = 0;       ///< which that was
    std::size_t fitting = 0;          ///< so many of them may go through where all of them did not

    static constexpr std::size_t kMany = std::numeric_limits<std::size_t>::max() / 2;
    /// After a transaction that failed: whether another one, of the same completions, may go through.
    bool goes_on(const Error& error);
    /// After one that was committed: for those that are left.
    Course next() const;
  };

  /// At the start of each transaction.
  void begin();

  /// Sets each result, of completions without effects too; of those that are left it is `failed`. The connection fails
  /// where `course` has more to say.
  void settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
              Course& course, WallTime now);

 private:
  /// One call of `settle`.
  struct Batch {
    std::int64_t half;
    std::span<const Completion> completions;
    std::span<SettleResult> results;
    Course& course;
    WallTime now;
  };
  /// What is to be sent to one queue, and by which completion.
  struct Outbox {
    std::string queue;
    std::vector<const EmittedMessage*> messages;
    std::vector<std::size_t> senders;
    std::size_t kept = 0;  ///< that many are of runs before, which stand
  };
  using Run = std::span<const std::size_t>;
  /// Of a run, from its first completion on.
  struct Attempt {
    std::size_t good = 0;  ///< can be committed
    std::size_t tried =
        0;  ///< the result of one more than `good` says why it cannot, unless that shows one by one only
    bool whole() const { return good == tried; }
  };

  void settle_effects(const Batch& batch);
  std::size_t settle_run(const Batch& batch, Run run);
  Attempt attempt(const Batch& batch, Run run);
  bool may_begin(const Course& course) const;
  void settle_key_alone(const Batch& batch, std::size_t index);
  bool settle_one(const Batch& batch, std::size_t index);
  bool write(const Batch& batch, std::size_t index);
  bool stage(const Batch& batch, std::size_t index);
  /// Forgets what the current run has staged.
  void unstage();
  bool send(const Batch& batch);
  /// Puts one outbox down, and what became of each into `sent_`.
  void put_down(const Outbox& outbox, WallTime now);
  bool refuse(const Batch& batch, std::size_t index, Error error, bool reject = false);

  Connection& connection_;
  Records& records_;
  const std::size_t most_bytes_;
  UserStatements statements_;
  Statement savepoint_;
  Statement release_;
  Statement roll_back_;
  SteadyTime begun_at_{};  ///< the transaction
  // Of the current call; members so that their memory is there for the next one.
  std::vector<std::size_t> with_effects_;
  std::vector<Outbox> outboxes_;
  std::vector<SendResult> sent_;
  std::vector<NewMessages::Arrival> arrivals_;
  bool sends_last_ = false;  ///< messages go at the end of the call, not with their run
};

}  // namespace sluice::queue::sqlite
