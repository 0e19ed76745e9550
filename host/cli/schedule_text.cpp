#include "host/cli/schedule_text.hpp"

#include "base/timestamp.hpp"
#include "config/schedule_times.hpp"

namespace sluice::cli {

namespace {

constexpr int kShown = 3;
using Time = config::ScheduleTimes::Time;

std::vector<Time> next_times(const config::ScheduleTimes& times, WallTime now) {
  std::vector<Time> all;
  Time at(std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()));
  for (int i = 0; i < kShown; ++i) {
    at = times.next_after(at);
    all.push_back(at);
  }
  return all;
}

std::string_view name_of(config::CatchUp catch_up) {
  return catch_up == config::CatchUp::none ? "none" : catch_up == config::CatchUp::last ? "last" : "all";
}

}  // namespace

std::vector<std::string> schedule_lines(const config::JobConfig& job, WallTime now) {
  std::vector<std::string> lines;
  for (const config::ScheduleConfig& schedule : job.schedules) {
    const auto times = config::ScheduleTimes::of(schedule);
    std::string line = "  schedule " + schedule.name + ": ";
    line += schedule.cron.empty() ? "every " + config::format_duration(schedule.every)
                                  : "\"" + schedule.cron + "\" in " + schedule.time_zone;
    line += " to queue " + (schedule.queue.empty() ? job.queue : schedule.queue) + "; next ";
    const char* separator = "";
    for (const Time time : times ? next_times(*times, now) : std::vector<Time>()) {
      line += separator + times->text(time);
      separator = ", ";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void write_schedules(JsonText& json, const config::JobConfig& job, WallTime now) {
  json.key("schedules");
  json.begin_array();
  for (const config::ScheduleConfig& schedule : job.schedules) {
    json.begin_object();
    json.member("name", schedule.name);
    if (schedule.cron.empty()) {
      json.member("every", config::format_duration(schedule.every));
    } else {
      json.member("cron", schedule.cron);
      json.member("time_zone", schedule.time_zone);
    }
    json.member("queue", schedule.queue.empty() ? job.queue : schedule.queue);
    json.member("catch_up", name_of(schedule.catch_up));
    json.key("next");
    json.begin_array();
    if (const auto times = config::ScheduleTimes::of(schedule)) {
      for (const Time time : next_times(*times, now)) {
        json.value(format_timestamp(WallTime(time.time_since_epoch())));
      }
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

}  // namespace sluice::cli
