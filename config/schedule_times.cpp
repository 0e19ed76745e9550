#include "config/schedule_times.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <set>
#include <variant>

namespace sluice::config {

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
