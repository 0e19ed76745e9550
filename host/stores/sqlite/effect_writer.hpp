#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/completion.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/sender.hpp"
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

  /// Completions, by their index, that must not be tried again: their statements make SQLite end the whole transaction.
  using Barred = std::map<std::size_t, Error>;
  /// The code of a transaction that failed because something was barred by it: the same call goes through without.
  static constexpr ErrorCode kBarred = ErrorCode::cancelled;

  /// Sets each result, of completions without effects too. Adds to `barred` what ends the transaction, which then fails
  /// with kBarred.
  void settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
              Barred& barred, WallTime now);

 private:
  /// One call of `settle`.
  struct Batch {
    std::int64_t half;
    std::span<const Completion> completions;
    std::span<SettleResult> results;
    Barred& barred;
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

  void settle_run(const Batch& batch, Run run);
  std::size_t attempt(const Batch& batch, Run run);
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
  // Of the current call; members so that their memory is there for the next one.
  std::vector<std::size_t> with_effects_;
  std::vector<Outbox> outboxes_;
  std::vector<SendResult> sent_;
  std::vector<NewMessages::Arrival> arrivals_;
  bool sends_last_ = false;  ///< messages go at the end of the call, not with their run
};

}  // namespace sluice::queue::sqlite
