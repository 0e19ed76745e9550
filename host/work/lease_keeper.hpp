#pragma once

#include "host/work/task.hpp"

namespace sluice::work {

class Dispatcher;
class InFlightTable;
class Settler;
class Workforce;

/// The most leases in one extend call.
inline constexpr std::size_t kMaxExtendBatch = 500;
/// What was finished and cannot be written keeps its lease this long; then others may have it.
inline constexpr Duration kSettlePatience = std::chrono::minutes(5);

/// Decides whose lease is extended: of what runs, and of what is finished and not written yet. What has waited for half
/// its lease is put back. Not thread-safe.
class LeaseKeeper {
 public:
  struct Order {
    std::vector<Task*> tasks;  ///< empty: nothing to do before `wake`
    std::vector<queue::Receipt> receipts;
    SteadyTime deadline{};
    SteadyTime wake = SteadyTime::max();

    bool empty() const { return tasks.empty(); }
  };

  LeaseKeeper(InFlightTable& in_flight, Dispatcher& dispatcher, Settler& settler, const Workforce& workforce,
              Random& random)
      : in_flight_(in_flight), dispatcher_(dispatcher), settler_(settler), workforce_(workforce), random_(random) {}

  /// What to extend now. Each order with tasks is followed by `extended`.
  Order next(SteadyTime now);
  void extended(Order order, std::vector<queue::ExtendResult> results, SteadyTime now, StepEffects& effects);
  /// The source has taken these deliveries back.
  void taken_back(std::span<const queue::Receipt> receipts, StepEffects& effects);

  bool under_way() const { return extending_; }

 private:
  bool wants_extension(Task& task, SteadyTime now);
  // It has been held as long as anybody may. Its handler is told when the lease ends, and then others may have it.
  void let_lapse(Task& task, SteadyTime now);
  SteadyTime next_look(const Task& task) const {
    const bool waits = task.stage() == TaskStage::queued || task.stage() == TaskStage::dealt;
    const bool is_kept =
        task.stage() == TaskStage::disposed && task.lease.extend_at - task.finished_at < kSettlePatience;
    const bool extends = task.receipt_state() == ReceiptState::ours && (waits || is_kept);
    return extends ? task.lease.extend_at : SteadyTime::max();
  }
  SteadyTime retry_at(const Task& task, SteadyTime now);
  void lose(Task& task, StepEffects& effects);

  InFlightTable& in_flight_;
  Dispatcher& dispatcher_;
  Settler& settler_;
  const Workforce& workforce_;
  Random& random_;

  bool extending_ = false;
  FailureRun failures_;
};

}  // namespace sluice::work
