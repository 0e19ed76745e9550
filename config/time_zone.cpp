#include "config/time_zone.hpp"

#include <cctz/civil_time.h>
#include <cctz/time_zone.h>

#include <algorithm>

#include "config/syntax.hpp"

namespace sluice::config {

namespace {

/// A name of the database, and not a file, a rule or what this machine takes for local.
bool is_zone_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && is_letter(name.front()) && name != "localtime" &&
         name.find("//") == std::string::npos && std::all_of(name.begin(), name.end(), [](char c) {
           return is_letter(c) || is_digit(c) || c == '/' || c == '_' || c == '-' || c == '+';
         });
}

CivilDay day_of(const cctz::civil_day& day) {
  // cctz counts from Monday.
  const int weekday = (static_cast<int>(cctz::get_weekday(day)) + 1) % 7;
  return {day.year(), day.month(), day.day(), weekday};
}

TimeZone::Time time_of(const cctz::time_point<cctz::seconds>& time) {
  return TimeZone::Time(std::chrono::seconds(time.time_since_epoch().count()));
}

cctz::time_point<cctz::seconds> point_of(TimeZone::Time time) {
  return std::chrono::time_point_cast<cctz::seconds>(std::chrono::system_clock::from_time_t(0)) +
         cctz::seconds(time.time_since_epoch().count());
}

}  // namespace

CivilDay CivilDay::plus(int days) const { return config::day_of(cctz::civil_day(year, month, day) + days); }

class TimeZone::Zone {
 public:
  explicit Zone(cctz::time_zone its_zone) : zone(its_zone) {}
  const cctz::time_zone zone;
};

std::optional<TimeZone> TimeZone::find(const std::string& name) {
  cctz::time_zone zone;
  if (!is_zone_name(name) || !cctz::load_time_zone(name, &zone)) {
    return std::nullopt;
  }
  return TimeZone(std::make_shared<const Zone>(zone));
}

bool TimeZone::any_installed() { return find("Europe/London").has_value() || find("America/New_York").has_value(); }

CivilDay TimeZone::day_of(Time time) const {
  return config::day_of(cctz::civil_day(zone_->zone.lookup(point_of(time)).cs));
}

std::string TimeZone::text(Time time) const {
  return cctz::format("%Y-%m-%d %H:%M:%S %Z", point_of(time), zone_->zone);
}

TimeZone::Times TimeZone::times_of(const CivilDay& day, int hour, int minute) const {
  const auto found = zone_->zone.lookup(cctz::civil_second(day.year, day.month, day.day, hour, minute));
  switch (found.kind) {
    case cctz::time_zone::civil_lookup::SKIPPED:
      return {Times::Kind::skipped, time_of(found.trans), {}};
    case cctz::time_zone::civil_lookup::REPEATED:
      return {Times::Kind::twice, time_of(found.pre), time_of(found.post)};
    case cctz::time_zone::civil_lookup::UNIQUE:
      break;
  }
  return {Times::Kind::once, time_of(found.pre), {}};
}

}  // namespace sluice::config
