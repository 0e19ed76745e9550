#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/cron.hpp"
#include "config/time_zone.hpp"

namespace sluice::config {

/// When a schedule is due. A value; thread-safe.
///
/// A cron line is due at local times. One that the clocks skip is due at the moment they go forward; one that comes
/// twice is due the first time. A line that is due in every hour has no such care: it goes by what the clocks show, in
/// the hour that comes twice as in any other. An interval is due at its multiples since 1970-01-01T00:00:00Z, so that
/// all hosts agree about them.
class ScheduleTimes {
 public:
  using Time = std::chrono::sys_seconds;

  /// The times of a schedule that a job file has; nothing where its line or zone cannot be read.
  static std::optional<ScheduleTimes> of(const ScheduleConfig& schedule);

  /// The first time that is due after `time`.
  Time next_after(Time time) const;
  /// The last `most` times that are due after `begin` and not after `end`, in their order.
  std::vector<Time> between(Time begin, Time end, std::size_t most) const;
  /// "2026-03-29 03:00:00 CEST".
  std::string text(Time time) const { return zone_.text(time); }

 private:
  ScheduleTimes(std::optional<CronLine> line, std::chrono::seconds every, TimeZone zone)
      : line_(line), every_(every), zone_(std::move(zone)) {}
  /// Of one day, in no order.
  void add_times_of(const CivilDay& day, std::vector<Time>& times) const;
  /// As `between`, of a cron line.
  std::vector<Time> last_of_line(Time begin, Time end, std::size_t most) const;

  std::optional<CronLine> line_;
  std::chrono::seconds every_;
  TimeZone zone_;
};

}  // namespace sluice::config
