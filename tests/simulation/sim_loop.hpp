#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/clock.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::simulation {

/// Runs what is to happen in the order of its time, on one thread; time jumps from event to event.
class SimLoop {
 public:
  test::FakeClock& clock() { return clock_; }
  SteadyTime now() const { return clock_.steady_now(); }

  void at(SteadyTime time, std::function<void()> event) {
    events_.emplace(Place{std::max(time, now()), next_++}, std::move(event));
  }
  void after(Duration span, std::function<void()> event) { at(now() + span, std::move(event)); }

  /// Runs events until `end`, or until `enough`. Returns `enough()`.
  bool run_until(SteadyTime end, const std::function<bool()>& enough) {
    while (!enough()) {
      if (events_.empty() || events_.begin()->first.first > end) {
        clock_.advance(end - now());
        return enough();
      }
      auto event = events_.extract(events_.begin());
      clock_.advance(event.key().first - now());
      ++count_;
      event.mapped()();
    }
    return true;
  }
  std::uint64_t count() const { return count_; }

 private:
  using Place = std::pair<SteadyTime, std::uint64_t>;

  test::FakeClock clock_;
  std::map<Place, std::function<void()>> events_;
  std::uint64_t next_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace sluice::simulation
