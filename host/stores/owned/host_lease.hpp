#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/stores/owned/membership.hpp"
#include "host/stores/owned/remarks.hpp"

namespace sluice::queue::owned {

/// What a host may rely on: its lease, and how far what it has out of a part may lie behind the head, as everybody can
/// know from its heartbeats. Its coordinator writes those and keeps this up to date; whoever hands messages out asks
/// here, and knows nothing of the coordinator. Thread-safe.
class HostLease {
 public:
  /// Of late ones so many may lie before what is at work, and nobody knows of them. Heartbeats tell of so many more.
  static constexpr InFlightBound kLateOnes = 100;
  static constexpr InFlightBound kLeastBound = 16;
  /// Where nobody has told.
  static constexpr InFlightBound kUnknownBound = kLeastBound + kLateOnes;
  /// What was needed once is announced for so long, and up to twice as long.
  static constexpr Duration kBoundKept = std::chrono::seconds(30);

  /// `where` is what heartbeats are written to, for messages: "table 'queues'". The references outlive it.
  HostLease(Duration lease, std::string where, Remarks& remarks, const Clock& clock);

  // For whoever hands messages out.

  /// Something may be handed out, and what this host holds is its own.
  bool may_start();
  bool holds();
  /// How far what is out may lie behind the head.
  InFlightBound announced() const;
  /// A part may be handed over now: the coordinator looks at its next turn.
  void nudge() { due_at(SteadyTime::min()); }

  // For the coordinator.

  /// Until when this holds if no further heartbeat can be written; the distant past where it does not.
  SteadyTime holds_until();
  /// The lease has run out, and those who hold parts have not been told yet.
  bool lost();
  /// They have been; `owned`: some of them held something.
  void told_lost(bool owned);
  void gone();
  /// The time on the lease's own clock, which goes on while the machine sleeps.
  SteadyTime now();

  /// A heartbeat that is about to be written.
  struct Beat {
    SteadyTime began{};
    Duration ahead{};
    InFlightBound bound = 0;
  };
  /// `early`: before its time. `reached` says how far behind the head anything that is out lies; it is asked once what
  /// may go out from now on is limited to what will be announced.
  Beat begin(bool early, const std::function<InFlightBound()>& reached);
  /// It has been written. False: the lease before had ended meanwhile.
  bool renewed(const Beat& beat);
  /// What goes out next is to lie that far behind the head. True: that has been announced.
  bool needs(InFlightBound bound);

  /// When the coordinator has to do something next.
  SteadyTime due_at() const { return SteadyTime(SteadyTime::duration(due_at_.load())); }
  void due_at(SteadyTime time) { due_at_ = time.time_since_epoch().count(); }

 private:
  /// False: the lease has gone.
  bool check() SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const std::string where_;
  Remarks& remarks_;
  const Clock& clock_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  OwnLease lease_ SLUICE_GUARDED_BY(mutex_);
  Duration ahead_at_beat_ SLUICE_GUARDED_BY(mutex_){};  ///< what the lease's clock was ahead when the lease began
  bool lost_ SLUICE_GUARDED_BY(mutex_) = false;
  InFlightBound announced_ SLUICE_GUARDED_BY(mutex_) = 0;
  InFlightBound needed_ SLUICE_GUARDED_BY(mutex_) = 0;         ///< in the time that runs
  InFlightBound needed_before_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< and in the one before
  SteadyTime needed_since_ SLUICE_GUARDED_BY(mutex_){};

  std::atomic<SteadyTime::rep> due_at_ = 0;
};

}  // namespace sluice::queue::owned
