#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/operate/top_model.hpp"

namespace sluice::cli {

/// What the screen shows and who looks for it have in common. Synchronises itself.
class TopBoard {
 public:
  explicit TopBoard(const std::vector<std::string>& queues) : model_(queues) {}

  /// Calls `act` with the model, which nobody else touches meanwhile.
  template <typename Act>
  auto with(Act act) {
    const MutexLock lock(mutex_);
    return act(model_);
  }

 private:
  Mutex mutex_;
  operate::TopModel model_ SLUICE_GUARDED_BY(mutex_);
};

/// Looks at hosts and queues for `sluice top`, and carries out what its user wants. Of one thread.
class TopLooker {
 public:
  /// All outlive it.
  TopLooker(FleetSession& session, TopBoard& board) : session_(session), board_(board) {}

  /// Looks once; `seen` is called after each part. `watched_for`: how long hosts shall tell in detail; zero: they are
  /// not asked to.
  template <typename Seen>
  void look(Duration watched_for, const std::stop_token& stop, Seen seen) {
    look_at_hosts(watched_for);
    seen();
    for (const std::string& queue : queues()) {
      if (stop.stop_requested()) {
        return;
      }
      count(queue);
      seen();
    }
  }
  void carry_out(const operate::TopWish& wish);
  /// "12.5 RCU/s, 0.1 WCU/s" since the last call; empty where looking costs nothing.
  std::string cost();

 private:
  void look_at_hosts(Duration watched_for);
  void count(const std::string& queue);
  std::vector<std::string> queues();

  FleetSession& session_;
  TopBoard& board_;
  std::map<std::string, operate::QueueCounter> counters_;
  runtime::DynamoDbCost spent_{};
  SteadyTime spent_at_{};
};

/// The looker on a thread of its own, so that keys are obeyed while a store takes its time.
class TopLookout {
 public:
  /// All outlive it.
  TopLookout(FleetSession& session, TopBoard& board, Duration interval);
  ~TopLookout();
  TopLookout(const TopLookout&) = delete;
  TopLookout& operator=(const TopLookout&) = delete;

  /// Readable when there is something new to show.
  int descriptor() const { return news_; }
  /// Makes it unreadable.
  void take_news();
  std::string cost();
  /// Carries out a wish of the user's, or looks at once.
  void ask(operate::TopWish wish);

 private:
  void run(const std::stop_token& stop);
  void tell();
  std::optional<operate::TopWish> next_wish();

  // Fixed after construction.
  const Clock& clock_;
  const Duration interval_;
  const int news_;  ///< eventfd

  // Touched only by the thread.
  TopLooker looker_;

  Mutex mutex_;
  Condition changed_;
  std::deque<operate::TopWish> wishes_ SLUICE_GUARDED_BY(mutex_);
  std::string cost_ SLUICE_GUARDED_BY(mutex_);
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

}  // namespace sluice::cli
