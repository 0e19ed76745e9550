#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace sluice::config {

/// Whether this machine's tzdata has a zone of that IANA name, such as "Europe/Vienna" or "UTC".
bool has_time_zone(const std::string& name);
/// Whether it has any but UTC.
bool has_time_zones();

/// Cron lines: five fields of minute, hour, day of the month, month and day of the week.

/// At which local times something is due. Bit n stands for the value n. A value.
///
/// A day is due when its day of the month and its day of the week are, or, where both fields are restricted, when
/// either is: as cron has it.
struct CronLine {
  std::uint64_t minutes = 0;   ///< bits 0 to 59
  std::uint32_t hours = 0;     ///< bits 0 to 23
  std::uint32_t days = 0;      ///< bits 1 to 31
  std::uint32_t months = 0;    ///< bits 1 to 12
  std::uint32_t weekdays = 0;  ///< bits 0 to 6, Sunday is 0
  bool any_day = false;        ///< the day of the month is `*`
  bool any_weekday = false;    ///< the day of the week is `*`

  bool every_hour() const;
  bool has_day(int day, int month, int weekday) const;
};

/// Reads a line: numbers, `*`, ranges `a-b`, steps `*/n` and `a-b/n`, lists of them with commas, and JAN to DEC and SUN
/// to SAT by their names. Otherwise what is wrong with it and the mend, to follow the name of the key; a line that is
/// never due (the 31st of February) is wrong too.
std::variant<CronLine, std::string> parse_cron(const std::string& text);

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
  std::string text(Time time) const;

 private:
  class Zone;
  ScheduleTimes(std::optional<CronLine> line, std::chrono::seconds every, std::shared_ptr<const Zone> zone)
      : line_(line), every_(every), zone_(std::move(zone)) {}
  /// As `between`, of a cron line.
  std::vector<Time> last_of_line(Time begin, Time end, std::size_t most) const;

  std::optional<CronLine> line_;
  std::chrono::seconds every_;
  std::shared_ptr<const Zone> zone_;
};

}  // namespace sluice::config
