#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "base/clock.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// The most completions in one call of the source.
inline constexpr std::size_t kMaxSettleBatch = 1000;
/// Under load completions wait this long for company; never when no more are about to come.
inline constexpr Duration kSettleLinger = std::chrono::milliseconds(2);

/// Tasks whose disposition is to be written, in batches: at once when nothing else is coming, larger under load, again
/// later when the source failed. One that settles alone comes behind all others, and then before those that came
/// meanwhile. Not thread-safe.
class SettleQueue {
 public:
  void add(Task& task, SteadyTime now);
  /// Puts a task back that is not to be written before `at`.
  void add_again(Task& task, SteadyTime at);

  /// When the next batch should be written: at most `now` when it should be at once, SteadyTime::max() when there is
  /// nothing. `busy`: more is about to be added, waiting a moment for it is worth it.
  SteadyTime due(SteadyTime now, bool busy);
  /// Takes the batch that is due, oldest first, `most` of it.
  std::vector<Task*> take(SteadyTime now, std::size_t most = kMaxSettleBatch);
  /// Since when the oldest that is due has its disposition; `now` when nothing is.
  SteadyTime oldest(SteadyTime now) const;

  /// Makes everything due at once, back-off or not.
  void hurry(SteadyTime now);
  /// Forgets a task.
  void remove(const Task& task);
  std::size_t size() const { return ready_.size() + alone_.size() + again_.size(); }

 private:
  void ripen(SteadyTime now);
  void push(Task& task) { (task.settles_alone() ? alone_ : ready_).push_back(&task); }

  std::deque<Task*> ready_;
  std::deque<Task*> alone_;
  bool others_taken_ = false;  ///< since one of those
  std::vector<Task*> again_;
  SteadyTime again_at_ = SteadyTime::max();  ///< the earliest in `again_`
};

}  // namespace sluice::work
