#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// The most settlements in one call of the store.
inline constexpr std::size_t kMaxSettleBatch = 1000;
/// Under load settlements wait this long for company; never when no more are about to come.
inline constexpr Duration kSettleLinger = std::chrono::milliseconds(2);
/// A settlement that keeps failing keeps its lease this long; then the lease lapses and the message comes back.
inline constexpr Duration kSettlePatience = std::chrono::minutes(5);

/// Finished tasks whose disposition is to be written, in batches: at once when nothing else is coming, larger under
/// load, again later when the store failed. Not thread-safe.
class SettleQueue {
 public:
  /// Adds a finished task, and holds it.
  void add(Task& task, SteadyTime now);
  /// Puts a task back whose call failed, to be tried again after a back-off that grows with its tries; holds it.
  void add_again(Task& task, SteadyTime now, Random& random);

  /// When the next batch should be written: at most `now` when it should be at once, SteadyTime::max() when there is
  /// nothing. `busy`: more is about to be added, waiting a moment for it is worth it.
  SteadyTime due(SteadyTime now, bool busy);
  /// Takes the batch that is due, oldest first; the caller takes over the holds.
  std::vector<Task*> take(SteadyTime now);

  /// Makes everything due at once, back-off or not.
  void hurry(SteadyTime now);
  std::size_t size() const { return ready_.size() + again_.size(); }

 private:
  void ripen(SteadyTime now);

  std::deque<Task*> ready_;
  std::vector<Task*> again_;
  SteadyTime again_at_ = SteadyTime::max();  ///< the earliest in `again_`
};

}  // namespace sluice::work
