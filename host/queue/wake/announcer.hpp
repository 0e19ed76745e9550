#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"

namespace sluice::queue::wake {

/// Decides when a host announces itself at one place: at its start, when the queues change that it works on, and every
/// minute or so, which costs little: more seldom where many hosts make the item large. Step function: takes the time,
/// makes no call. Not thread-safe.
class Announcer {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(60);
  /// Write units a second and host.
  static constexpr double kWriteUnits = 0.03;
  static constexpr Duration kFirstRetry = std::chrono::seconds(5);
  static constexpr Duration kLastRetry = std::chrono::minutes(5);

  /// The bells that the host answers to here, in their order.
  void queues(std::vector<std::string> queues);
  const std::vector<std::string>& queues() const { return queues_; }

  bool due(SteadyTime now) const { return now >= next_; }
  SteadyTime next() const { return next_; }
  /// How long after an announcement now the next one comes at the latest.
  Duration interval() const { return interval_; }
  void announced(double write_units, SteadyTime now);
  void failed(SteadyTime now);
  /// It stands there, as far as is known.
  bool stands() const { return stands_; }

 private:
  std::vector<std::string> queues_;
  SteadyTime next_ = SteadyTime::min();
  Duration interval_ = kEvery;
  Duration retry_ = kFirstRetry;
  bool stands_ = false;
};

}  // namespace sluice::queue::wake
