#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/clock.hpp"
#include "host/work/claim_sizer.hpp"
#include "host/work/claimer.hpp"
#include "host/work/in_flight_table.hpp"
#include "host/work/step_effects.hpp"
#include "host/work/workforce.hpp"

namespace sluice::work {

/// The most messages that a job holds, in whatever stage, so that a source that stopped answering stops the claims too.
inline constexpr std::size_t kMaxHeld = 4 * kMaxClaim;

/// Decides who is handed what: messages wait here for a worker, suspects for a lane. Not thread-safe.
class Dispatcher {
 public:
  Dispatcher(InFlightTable& in_flight, Workforce& workforce, const ClaimSizer& sizer);

  /// What could be claimed now.
  Claimer::Room room(SteadyTime now) const;
  /// A message waits for its worker from now on.
  void add(Task& task);
  /// It waits for its key before it may wait for a worker.
  void hold_back(Task& task) { held_back_.push_back(&task); }
  bool holds_back() const { return open_ && !held_back_.empty(); }
  /// Those whose keys are asked for now, the first `most` that are held back; until `asked`. None while it is closed.
  std::vector<Task*> ask(std::size_t most);
  /// They are answered, and each has been added, held back again or disposed of.
  void asked() { asking_.clear(); }
  /// Fills the hand of a worker that has none; false: nothing for it.
  bool deal(std::uint32_t seat, SteadyTime now);
  /// There is something for a worker of this kind.
  bool has_work(SeatKind kind) const;
  /// StepEffects as many workers as there is work for.
  void call(StepEffects& notes) const;

  /// Takes back what a worker has not started; it is the next to be handed out.
  void take_back(std::uint32_t seat);
  /// From now on nobody is handed anything, and what was not started is taken back; until `open`.
  void close();
  void open() { open_ = true; }

  /// Forgets what waits no more: it was disposed of, or has ended.
  void drop_gone();
  /// All that waits, in no order.
  std::vector<Task*> waiting() const;
  std::size_t waiting_suspects() const { return suspects_.size(); }

 private:
  std::size_t held_suspects() const;

  // Fixed after construction.
  InFlightTable& in_flight_;
  Workforce& workforce_;
  const ClaimSizer& sizer_;

  std::deque<Task*> queue_;
  std::deque<Task*> suspects_;
  std::deque<Task*> held_back_;
  std::vector<Task*> asking_;
  std::vector<Task*> recalled_;  ///< scratch
  bool open_ = true;
};

}  // namespace sluice::work
