#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace sluice::config {

/// A day of the calendar. A value.
struct CivilDay {
  std::int64_t year = 1970;
  int month = 1;
  int day = 1;
  int weekday = 4;  ///< Sunday is 0

  CivilDay plus(int days) const;
  bool before(const CivilDay& other) const {
    return std::tie(year, month, day) < std::tie(other.year, other.month, other.day);
  }
};

/// A time zone of the machine's tzdata: between local times and points in time. A value; thread-safe.
/// The one boundary of cctz.
class TimeZone {
 public:
  using Time = std::chrono::sys_seconds;

  /// By its IANA name, such as "Europe/Vienna" or "UTC"; nothing where the machine has none of that name.
  static std::optional<TimeZone> find(const std::string& name);
  /// Whether the machine has any but UTC.
  static bool any_installed();

  CivilDay day_of(Time time) const;
  /// "2026-03-29 03:00:00 CEST".
  std::string text(Time time) const;

  /// When a local time is.
  struct Times {
    enum class Kind {
      once,
      skipped,  ///< it does not come: `first` is the moment at which the clocks go forward
      twice,    ///< the clocks go back: `first` and `second`
    };
    Kind kind = Kind::once;
    Time first{};
    Time second{};
  };
  Times times_of(const CivilDay& day, int hour, int minute) const;

 private:
  class Zone;
  explicit TimeZone(std::shared_ptr<const Zone> zone) : zone_(std::move(zone)) {}

  std::shared_ptr<const Zone> zone_;
};

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
