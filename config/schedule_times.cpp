#include "config/schedule_times.hpp"

#include <cctz/civil_time.h>
#include <cctz/time_zone.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/split.hpp>
#include <cstddef>
#include <iterator>
#include <locale>
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

std::optional<cctz::time_zone> find_zone(const std::string& name) {
  cctz::time_zone zone;
  return is_zone_name(name) && cctz::load_time_zone(name, &zone) ? std::optional(zone) : std::nullopt;
}

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

bool has(std::uint64_t bits, int value) { return ((bits >> static_cast<unsigned>(value)) & 1U) != 0; }

std::string upper(const std::string& text) { return boost::to_upper_copy(text, std::locale::classic()); }

std::vector<std::string> split(std::string_view text, const char* separators) {
  std::vector<std::string> parts;
  boost::split(parts, text, boost::is_any_of(separators));
  return parts;
}

/// One field's bits, or what is wrong with it.
class FieldReader {
 public:
  FieldReader(const Field& field, std::string_view text) : field_(field), text_(text) {}

  bool read() {
    for (const std::string& part : split(text_, ",")) {
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
    const std::string word = upper(std::string(text));
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
    if (!has(line.months, month)) {
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
  if (!has(months, month)) {
    return false;
  }
  const bool by_month = has(days, day);
  const bool by_week = has(weekdays, weekday);
  return any_day || any_weekday ? by_month && by_week : by_month || by_week;
}

std::variant<CronLine, std::string> parse_cron(const std::string& text) {
  auto words = split(text, " \t");
  std::erase(words, "");
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

bool has_time_zone(const std::string& name) { return find_zone(name).has_value(); }

bool has_time_zones() { return has_time_zone("Europe/London") || has_time_zone("America/New_York"); }

namespace {

using std::chrono::seconds;

// From one 29th of February to the next there may be eight years.
constexpr int kMostDays = 366 * 9;

}  // namespace

/// Between local times and points in time. A value; thread-safe. The one boundary of cctz.
class ScheduleTimes::Zone {
 public:
  explicit Zone(const cctz::time_zone& zone) : zone_(zone) {}

  std::string text(Time time) const { return cctz::format("%Y-%m-%d %H:%M:%S %Z", time, zone_); }
  cctz::civil_day day_of(Time time) const { return cctz::civil_day(zone_.lookup(time).cs); }

  /// Of one day, in no order.
  std::vector<Time> times_of(const CronLine& line, const cctz::civil_day& day) const {
    std::vector<Time> times;
    // cctz counts from Monday.
    const int weekday = (static_cast<int>(cctz::get_weekday(day)) + 1) % 7;
    if (!line.has_day(day.day(), day.month(), weekday)) {
      return times;
    }
    for (int minute = 0; minute < 24 * 60; ++minute) {
      if (has(line.hours, minute / 60) && has(line.minutes, minute % 60)) {
        add(zone_.lookup(cctz::civil_minute(day) + minute), line.every_hour(), times);
      }
    }
    return times;
  }

 private:
  /// When a local time is: where the clocks skip it, the moment at which they go forward.
  static void add(const cctz::time_zone::civil_lookup& found, bool every_hour, std::vector<Time>& times) {
    const bool skipped = found.kind == cctz::time_zone::civil_lookup::SKIPPED;
    if (!skipped || !every_hour) {
      times.push_back(skipped ? found.trans : found.pre);
    }
    if (found.kind == cctz::time_zone::civil_lookup::REPEATED && every_hour) {
      times.push_back(found.post);
    }
  }

  const cctz::time_zone zone_;
};

std::optional<ScheduleTimes> ScheduleTimes::of(const ScheduleConfig& schedule) {
  const auto found = find_zone(schedule.time_zone);
  if (!found) {
    return std::nullopt;
  }
  auto zone = std::make_shared<const Zone>(*found);
  if (schedule.cron.empty()) {
    const auto every = std::chrono::duration_cast<seconds>(schedule.every);
    return every > seconds(0) ? std::optional(ScheduleTimes(std::nullopt, every, std::move(zone))) : std::nullopt;
  }
  auto line = parse_cron(schedule.cron);
  const auto* good = std::get_if<CronLine>(&line);
  return good == nullptr ? std::nullopt : std::optional(ScheduleTimes(*good, seconds(0), std::move(zone)));
}

std::string ScheduleTimes::text(Time time) const { return zone_->text(time); }

ScheduleTimes::Time ScheduleTimes::next_after(Time time) const {
  if (!line_) {
    const auto since = time.time_since_epoch();
    const auto rest = ((since % every_) + every_) % every_;
    return time + (every_ - rest);
  }
  // From the day before on, because a day's times may lie beside it where the clocks change at midnight.
  cctz::civil_day day = zone_->day_of(time) - 1;
  std::optional<Time> next;
  int beyond = 0;
  for (int i = 0; i < kMostDays && beyond < 2; ++i) {
    for (const Time due : zone_->times_of(*line_, day)) {
      if (due > time && (!next || due < *next)) {
        next = due;
      }
    }
    beyond += next ? 1 : 0;
    ++day;
  }
  return next.value_or(Time::max());
}

std::vector<ScheduleTimes::Time> ScheduleTimes::between(Time begin, Time end, std::size_t most) const {
  if (line_) {
    return last_of_line(begin, end, most);
  }
  std::vector<Time> times;
  // Of a long absence no more than is wanted is counted out.
  begin = std::max(begin, end - every_ * static_cast<seconds::rep>(most));
  for (Time due = next_after(begin); due <= end; due = next_after(due)) {
    times.push_back(due);
  }
  return times;
}

// Backwards day by day, so that a long absence costs what is wanted of it and not what was missed.
std::vector<ScheduleTimes::Time> ScheduleTimes::last_of_line(Time begin, Time end, std::size_t most) const {
  std::set<Time> due;
  cctz::civil_day day = zone_->day_of(end) + 1;
  // A day's times may lie beside it where the clocks change at midnight: one day more is looked at on either side.
  const cctz::civil_day first = zone_->day_of(begin) - 1;
  for (int beyond = 0; beyond < 2 && day >= first; --day) {
    const std::vector<Time> times = zone_->times_of(*line_, day);
    std::copy_if(times.begin(), times.end(), std::inserter(due, due.end()),
                 [begin, end](Time time) { return time > begin && time <= end; });
    beyond += due.size() >= most ? 1 : 0;
  }
  const std::size_t more = due.size() > most ? due.size() - most : 0;
  return {std::next(due.begin(), static_cast<std::ptrdiff_t>(more)), due.end()};
}

}  // namespace sluice::config
