#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "base/clock.hpp"

namespace sluice::test::sim {

/// The time of whoever is at work.
class SharedClock final : public Clock {
 public:
  WallTime wall_now() const override { return WallTime(std::chrono::seconds(1'800'000'000)) + now_.time_since_epoch(); }
  SteadyTime steady_now() const override { return now_; }
  /// Whoever waits for a time has waited. Who waits for ever waits for an answer, which is there already.
  SteadyTime machine_time(SteadyTime time) const override;
  void set(SteadyTime time) { under_way_ = now_ = time; }
  /// A request is under way, beside others that began at the same time; whoever waits for them waits so long.
  void takes(Duration span) { under_way_ = std::max(under_way_, now_ + span); }

 private:
  SteadyTime under_way_{};
  mutable SteadyTime now_{std::chrono::seconds(1'000)};
};

/// What happens when, one after the other on one thread. What an event's calls take passes for their caller alone.
class Timeline {
 public:
  Timeline() : now_(clock_.steady_now()) {}

  /// When the event that is at work began.
  SteadyTime now() const { return now_; }
  /// How far whoever is at work has come since.
  SharedClock& clock() { return clock_; }
  void at(SteadyTime time, std::function<void()> act);
  void run_until(SteadyTime end);

 private:
  struct Event {
    SteadyTime at;
    std::uint64_t number = 0;
    std::function<void()> act;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : number > other.number; }
  };

  SharedClock clock_;
  SteadyTime now_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t made_ = 0;
};

}  // namespace sluice::test::sim
