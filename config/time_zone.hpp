#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

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

}  // namespace sluice::config
