#include "config/schedule_times.hpp"

#include <cctz/civil_time.h>
#include <cctz/time_zone.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/text/number.hpp"
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

namespace {

constexpr std::array<std::string_view, 12> kMonths{"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                   "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> kWeekdays{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};
constexpr std::array<int, 12> kLongestMonths{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
constexpr int kSunday = 7;  // beside 0
constexpr std::uint32_t kAllHours = (1U << 24U) - 1;

struct Field {
  std::string_view name;
  int least;
  int most;
  const std::string_view* names;  ///< of the values from `first_name` on
  int name_count;
  int first_name;
};

constexpr std::array<Field, 5> kFields{{{"minute", 0, 59, nullptr, 0, 0},
                                        {"hour", 0, 23, nullptr, 0, 0},
                                        {"day of the month", 1, 31, nullptr, 0, 0},
                                        {"month", 1, 12, kMonths.data(), kMonths.size(), 1},
                                        {"day of the week", 0, 7, kWeekdays.data(), kWeekdays.size(), 0}}};

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return result;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t from = 0;;) {
    const std::size_t end = text.find(separator, from);
    parts.push_back(text.substr(from, end == std::string_view::npos ? end : end - from));
    if (end == std::string_view::npos) {
      return parts;
    }
    from = end + 1;
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

/// One field's bits, or what is wrong with it.
class FieldReader {
 public:
  FieldReader(const Field& field, std::string_view text) : field_(field), text_(text) {}

  bool read() {
    for (const std::string_view part : split(text_, ',')) {
      if (!read_part(part)) {
        return false;
      }
    }
    return true;
  }
  std::uint64_t bits() const { return bits_; }
  std::string wrong() const {
    return "has a bad " + std::string(field_.name) + ", \"" + abridged(text_) + "\": " + wrong_;
  }

 private:
  bool fail(std::string wrong) {
    wrong_ = std::move(wrong);
    return false;
  }
  std::string bounds() const { return std::to_string(field_.least) + " to " + std::to_string(field_.most); }

  std::optional<int> value(std::string_view text) const {
    const std::string word = upper(text);
    for (int i = 0; i < field_.name_count; ++i) {
      if (word == field_.names[i]) {
        return field_.first_name + i;
      }
    }
    return text.starts_with('-') ? std::nullopt : parse_number<int>(text);
  }

  bool read_part(std::string_view part) {
    const std::size_t slash = part.find('/');
    const std::string_view range = part.substr(0, slash);
    int first = field_.least;
    int last = field_.most == kSunday ? kSunday - 1 : field_.most;
    const bool star = range == "*";
    const std::size_t dash = range.find('-', 1);
    if (!star && !read_range(range, dash, first, last)) {
      return false;
    }
    int step = 1;
    if (slash != std::string_view::npos) {
      const auto given = value(part.substr(slash + 1));
      if (!star && dash == std::string_view::npos) {
        return fail("a step needs a range; write " + std::to_string(first) + "-" + std::to_string(field_.most) +
                    std::string(part.substr(slash)));
      }
      if (!given || *given < 1 || *given > last - first) {
        return fail("a step is a whole number, at least 1, and smaller than its range");
      }
      step = *given;
    }
    for (int i = first; i <= last; i += step) {
      bits_ |= std::uint64_t{1} << static_cast<unsigned>(field_.most == kSunday ? i % kSunday : i);
    }
    return true;
  }

  bool read_range(std::string_view range, std::size_t dash, int& first, int& last) {
    const auto from = value(range.substr(0, dash));
    auto to = dash == std::string_view::npos ? from : value(range.substr(dash + 1));
    if (!from || !to) {
      return fail("it takes " + bounds() + (field_.names == nullptr ? "" : ", names of three letters") +
                  ", *, ranges a-b, steps */n, and lists of them with commas");
    }
    if (field_.most == kSunday && *to == 0 && *from > 0) {
      to = kSunday;  // FRI-SUN
    }
    for (const int bound : {*from, *to}) {
      if (bound < field_.least || bound > field_.most) {
        return fail(std::to_string(bound) + " is not within " + bounds());
      }
    }
    if (*from > *to) {
      return fail("a range goes upwards; write " + std::to_string(*from) + "-" + std::to_string(field_.most) + "," +
                  std::to_string(field_.least) + "-" + std::to_string(*to));
    }
    first = *from;
    last = *to;
    return true;
  }

  const Field& field_;
  const std::string_view text_;
  std::uint64_t bits_ = 0;
  std::string wrong_;
};

/// Five fields for what some crons know by a name.
std::string spelt_out(const std::string& word) {
  constexpr std::array<std::pair<std::string_view, const char*>, 7> kNicknames{{{"@YEARLY", "0 0 1 1 *"},
                                                                                {"@ANNUALLY", "0 0 1 1 *"},
                                                                                {"@MONTHLY", "0 0 1 * *"},
                                                                                {"@WEEKLY", "0 0 * * 0"},
                                                                                {"@DAILY", "0 0 * * *"},
                                                                                {"@MIDNIGHT", "0 0 * * *"},
                                                                                {"@HOURLY", "0 * * * *"}}};
  for (const auto& [name, line] : kNicknames) {
    if (word == name) {
      return line;
    }
  }
  return {};
}

/// Of a line whose days are those of the month alone; empty: it comes up.
std::string never_due(const CronLine& line) {
  std::string longest;
  for (int month = 1; month <= 12; ++month) {
    if (((line.months >> static_cast<unsigned>(month)) & 1U) == 0) {
      continue;
    }
    const int days = kLongestMonths[static_cast<std::size_t>(month - 1)];
    const std::uint32_t there = (std::uint32_t{2} << static_cast<unsigned>(days)) - 1;
    if ((line.days & there) != 0) {
      return {};
    }
    longest += (longest.empty() ? "" : ", ") + std::string(kMonths[static_cast<std::size_t>(month - 1)]) + " has " +
               std::to_string(days) + " days at most";
  }
  return "is never due: " + longest + "; take another day, or another month";
}

}  // namespace

bool CronLine::every_hour() const { return hours == kAllHours; }

bool CronLine::has_day(int day, int month, int weekday) const {
  if (((months >> static_cast<unsigned>(month)) & 1U) == 0) {
    return false;
  }
  const bool by_month = ((days >> static_cast<unsigned>(day)) & 1U) != 0;
  const bool by_week = ((weekdays >> static_cast<unsigned>(weekday)) & 1U) != 0;
  return any_day || any_weekday ? by_month && by_week : by_month || by_week;
}

std::variant<CronLine, std::string> parse_cron(const std::string& text) {
  const auto words = words_of(text);
  if (words.size() == 1 && words[0].front() == '@') {
    const std::string line = spelt_out(upper(words[0]));
    return line.empty() ? "has no name such as \"" + abridged(words[0]) + "\"; write five fields"
                        : "takes five fields; write \"" + line + "\"";
  }
  if (words.size() != kFields.size()) {
    return "takes five fields, minute, hour, day of the month, month and day of the week, as in \"30 6 * * "
           "MON-FRI\"; " +
           ("it has " + std::to_string(words.size()));
  }
  std::array<std::uint64_t, 5> bits{};
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    FieldReader reader(kFields[i], words[i]);
    if (!reader.read()) {
      return reader.wrong();
    }
    bits[i] = reader.bits();
  }
  CronLine line{.minutes = bits[0],
                .hours = static_cast<std::uint32_t>(bits[1]),
                .days = static_cast<std::uint32_t>(bits[2]),
                .months = static_cast<std::uint32_t>(bits[3]),
                .weekdays = static_cast<std::uint32_t>(bits[4]),
                .any_day = words[2] == "*",
                .any_weekday = words[4] == "*"};
  const bool stepped = words[2].starts_with("*/") || words[4].starts_with("*/");
  if (!line.any_day && !line.any_weekday && stepped) {
    return "restricts both kinds of days, and one of them by */n, which crons read differently; write its days out";
  }
  if (line.any_weekday) {
    if (std::string never = never_due(line); !never.empty()) {
      return never;
    }
  }
  return line;
}

namespace {

using std::chrono::seconds;

// From one 29th of February to the next there may be eight years.
constexpr int kMostDays = 366 * 9;

}  // namespace

std::optional<ScheduleTimes> ScheduleTimes::of(const ScheduleConfig& schedule) {
  auto zone = TimeZone::find(schedule.time_zone);
  if (!zone) {
    return std::nullopt;
  }
  if (schedule.cron.empty()) {
    const auto every = std::chrono::duration_cast<seconds>(schedule.every);
    return every > seconds(0) ? std::optional(ScheduleTimes(std::nullopt, every, std::move(*zone))) : std::nullopt;
  }
  auto line = parse_cron(schedule.cron);
  const auto* good = std::get_if<CronLine>(&line);
  return good == nullptr ? std::nullopt : std::optional(ScheduleTimes(*good, seconds(0), std::move(*zone)));
}

void ScheduleTimes::add_times_of(const CivilDay& day, std::vector<Time>& times) const {
  if (!line_->has_day(day.day, day.month, day.weekday)) {
    return;
  }
  const bool every_hour = line_->every_hour();
  for (int hour = 0; hour < 24; ++hour) {
    if (((line_->hours >> static_cast<unsigned>(hour)) & 1U) == 0) {
      continue;
    }
    for (int minute = 0; minute < 60; ++minute) {
      if (((line_->minutes >> static_cast<unsigned>(minute)) & 1U) == 0) {
        continue;
      }
      const TimeZone::Times found = zone_.times_of(day, hour, minute);
      if (found.kind == TimeZone::Times::Kind::skipped && every_hour) {
        continue;
      }
      times.push_back(found.first);
      if (found.kind == TimeZone::Times::Kind::twice && every_hour) {
        times.push_back(found.second);
      }
    }
  }
}

ScheduleTimes::Time ScheduleTimes::next_after(Time time) const {
  if (!line_) {
    const auto since = time.time_since_epoch();
    const auto rest = ((since % every_) + every_) % every_;
    return time + (every_ - rest);
  }
  // From the day before on, because a day's times may lie beside it where the clocks change at midnight.
  CivilDay day = zone_.day_of(time).plus(-1);
  std::optional<Time> next;
  int beyond = 0;
  for (int i = 0; i < kMostDays && beyond < 2; ++i) {
    std::vector<Time> times;
    add_times_of(day, times);
    for (const Time due : times) {
      if (due > time && (!next || due < *next)) {
        next = due;
      }
    }
    beyond += next ? 1 : 0;
    day = day.plus(1);
  }
  return next.value_or(Time::max());
}

std::vector<ScheduleTimes::Time> ScheduleTimes::between(Time begin, Time end, std::size_t most) const {
  if (line_) {
    return last_of_line(begin, end, most);
  }
  std::deque<Time> times;
  // Of a long absence no more than is wanted is counted out.
  begin = std::max(begin, end - every_ * static_cast<seconds::rep>(most + 1));
  for (Time due = next_after(begin); due <= end; due = next_after(due)) {
    times.push_back(due);
    if (times.size() > most) {
      times.pop_front();
    }
  }
  return {times.begin(), times.end()};
}

// Backwards day by day, so that a long absence costs what is wanted of it and not what was missed.
std::vector<ScheduleTimes::Time> ScheduleTimes::last_of_line(Time begin, Time end, std::size_t most) const {
  std::set<Time> due;
  CivilDay day = zone_.day_of(end).plus(1);
  // A day's times may lie beside it where the clocks change at midnight: one day more is looked at on either side.
  const CivilDay first = zone_.day_of(begin).plus(-1);
  for (int beyond = 0; beyond < 2 && !day.before(first); day = day.plus(-1)) {
    std::vector<Time> times;
    add_times_of(day, times);
    std::copy_if(times.begin(), times.end(), std::inserter(due, due.end()),
                 [begin, end](Time time) { return time > begin && time <= end; });
    beyond += due.size() >= most ? 1 : 0;
  }
  const std::size_t more = due.size() > most ? due.size() - most : 0;
  return {std::next(due.begin(), static_cast<std::ptrdiff_t>(more)), due.end()};
}

}  // namespace sluice::config
