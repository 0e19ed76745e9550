#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/work/worker_batch.hpp"

namespace sluice::work {

/// The fewest workers that a job may lose to handlers that do not return before it stops replacing them; as many as it
/// has where that is more.
inline constexpr std::uint32_t kMinLossLimit = 4;
/// A job runs as many suspects at a time as it has workers, within these bounds, each on a lane of its own beside the
/// workers: a second one, so that one that hangs does not hold up the others; and no more than there is memory for, as
/// each lane has a process.
inline constexpr std::size_t kFewestLanes = 2;
inline constexpr std::size_t kMostLanes = 16;
/// Whoever runs handlers in other processes kills what does not return; only then has its worker something to explain.
inline constexpr Duration kKillTime = std::chrono::seconds(5);

enum class SeatKind {
  worker,
  lane,  ///< for suspects
};

/// Who works for a job: each seat is a worker with its hand. Decides whose handler is stuck, and when a worker is to be
/// made for one that is lost. Not thread-safe.
class Workforce {
 public:
  struct Settings {
    std::uint32_t workers = 1;
    Duration stuck_grace = std::chrono::seconds(5);
  };
  struct Stuck {
    std::string message_id;
    SteadyTime started_at{};
  };
  /// Threads that are to be made now.
  struct Wanted {
    std::size_t workers = 0;
    std::size_t lanes = 0;
    SteadyTime look_again = SteadyTime::max();
  };

  /// The first `workers` are made without being asked for.
  explicit Workforce(const Settings& settings) : settings_(settings), workers_in_making_(settings.workers) {}

  /// A worker is ready. `isolated`: its handlers run in a process of their own.
  std::uint32_t enlist(WorkerBatch& batch, SeatKind kind, bool isolated);
  /// So many workers there shall be from now on. Missing ones are wanted, those that are too many leave when they come
  /// back.
  void set_workers(std::uint32_t workers) { settings_.workers = workers; }
  /// Workers that are too many.
  std::size_t surplus() const;
  /// It could not be made.
  void not_made(SeatKind kind, SteadyTime now);
  /// It ends.
  void leave(std::uint32_t seat);

  void busy(std::uint32_t seat, std::size_t dealt, SteadyTime now);
  /// It has come back for more; false: nobody waits for it any more, it shall leave.
  bool back(std::uint32_t seat);
  /// At most what runs is left in its hand.
  void swept(std::uint32_t seat);
  /// Its handler does not come back.
  void lose(std::uint32_t seat);
  /// What is missing, with so many suspects waiting; it counts as being made from then on.
  Wanted want(std::size_t waiting_suspects, SteadyTime now);

  WorkerBatch& batch(std::uint32_t seat) const { return *seats_[seat].batch; }
  SeatKind kind(std::uint32_t seat) const { return seats_[seat].kind; }
  std::size_t seats() const { return seats_.size(); }
  bool is_busy(std::uint32_t seat) const { return seats_[seat].state == State::busy; }
  bool is_lost(std::uint32_t seat) const { return seats_[seat].state == State::lost; }
  bool is_vacant(std::uint32_t seat) const { return seats_[seat].state == State::vacant; }
  std::size_t dealt(std::uint32_t seat) const { return seats_[seat].dealt; }
  SteadyTime dealt_at(std::uint32_t seat) const { return seats_[seat].dealt_at; }
  /// When the handler that runs there counts as stuck; SteadyTime::max(): never.
  SteadyTime stuck_at(std::uint32_t seat, const WorkerBatch::View& view) const;

  std::uint32_t workers() const { return settings_.workers; }
  /// The most suspects that run at a time.
  std::size_t most_lanes() const { return std::clamp<std::size_t>(settings_.workers, kFewestLanes, kMostLanes); }
  std::size_t free_workers() const { return free_workers_; }
  /// Free ones and those that were given work within `span`.
  std::size_t active_workers(Duration span, SteadyTime now) const;
  std::size_t busy_lanes() const { return busy_lanes_; }
  bool anybody_busy() const { return busy_workers_ + busy_lanes_ > 0; }
  /// No more workers are made: too many handlers have not returned.
  bool loss_limit_reached() const;
  std::vector<Stuck> stuck() const;
  std::uint32_t handlers_running() const;

 private:
  enum class State { vacant, idle, busy, lost, leaving };
  struct Seat {
    WorkerBatch* batch = nullptr;
    SeatKind kind = SeatKind::worker;
    bool isolated = false;
    State state = State::vacant;
    std::size_t dealt = 0;
    SteadyTime dealt_at{};
  };

  void go(Seat& seat, State to);
  void count(const Seat& seat, std::size_t change);

  Settings settings_;
  std::vector<Seat> seats_;
  std::size_t free_workers_ = 0;
  std::size_t busy_workers_ = 0;
  std::size_t free_lanes_ = 0;
  std::size_t busy_lanes_ = 0;
  std::size_t lost_ = 0;
  std::size_t workers_in_making_;
  std::size_t lanes_in_making_ = 0;
  SteadyTime make_after_ = SteadyTime::min();
};

}  // namespace sluice::work
