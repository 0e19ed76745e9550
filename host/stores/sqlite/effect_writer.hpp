#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/writes.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/user_statements.hpp"

namespace sluice::queue::sqlite {

class Keys;
class NewMessages;
class Records;

/// Settles completions that carry effects, inside a transaction of its connection: each with all of its effects or not
/// at all, and without a trace in the others.
///
/// One savepoint holds all completions of a call, for one of its own would cost each as much as its work. Where one is
/// refused, all of it is undone and made again with a savepoint for each.
class EffectWriter {
 public:
  /// What it works with; all of it outlives this.
  struct Parts {
    Records& records;
    NewMessages& sending;
    Keys& keys;
  };
  EffectWriter(Connection& connection, const Parts& parts, std::size_t most_bytes)
      : connection_(connection), parts_(parts), most_bytes_(most_bytes), statements_(connection) {}

  /// How far a call has come that may take several transactions: everybody else waits for one, so that it takes no more
  /// completions once it has lasted, and what makes one fail is to be found. By the completions' index in the call.
  struct Course {
    std::vector<std::size_t> todo{};  ///< what the next transaction begins with, in order
    /// Not to be tried again, and refused for this: their statements make SQLite end the whole transaction, or nothing
    /// with them in it can be committed.
    std::map<std::size_t, Error> barred{};
    /// Completions with effects in the next transaction. 0: it shows whether the file takes anything at all.
    std::size_t most = kMany;
    bool file_is_sound = false;  ///< it took something since one has failed
    bool apart = false;          ///< one was refused: each has a savepoint of its own from then on

    // Of the last transaction.
    std::vector<std::size_t> left{};  ///< of `todo`, not come to
    std::size_t begun = 0;            ///< completions with effects
    std::size_t last_begun = 0;       ///< which that was

    static constexpr std::size_t kMany = std::numeric_limits<std::size_t>::max() / 2;
    /// After a transaction that failed: whether another one, of the same completions, may go through.
    bool goes_on(const Error& error);
    /// After one that was committed: goes on with those that are left.
    void committed();
  };

  /// At the start of each transaction.
  void begin();

  /// Sets the result of each that is to do, without effects too; of those that are left it is `failed`. The connection
  /// fails where `course` has more to say.
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
  using Run = std::span<const std::size_t>;

  void settle_effects(const Batch& batch, Run all);
  /// How many from the first on have their result; nothing of them stands if one was refused.
  std::size_t settle_run(const Batch& batch, Run run);
  bool may_begin(const Course& course) const;
  /// False: it is refused.
  bool settle_one(const Batch& batch, std::size_t index);
  bool make(const Batch& batch, std::size_t index, core::TransactionPart part);
  bool write(const Batch& batch, std::size_t index);
  bool send(const Batch& batch, std::size_t index);
  static bool refuse(const Batch& batch, std::size_t index, SettleResult result);

  Connection& connection_;
  const Parts parts_;
  const std::size_t most_bytes_;
  UserStatements statements_;
  Statement savepoint_{connection_, "SAVEPOINT effects"};
  Statement release_{connection_, "RELEASE effects"};
  Statement roll_back_{connection_, "ROLLBACK TO effects"};
  SteadyTime begun_at_{};  ///< the transaction
};

}  // namespace sluice::queue::sqlite
