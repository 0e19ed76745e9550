#include "host/cli/views/schedule_text.hpp"

#include <optional>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/timestamp.hpp"
#include "config/schedule_times.hpp"
#include "config/words.hpp"
#include "host/cli/views/output.hpp"

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

// A host notices what is due and tells of it within this, so that what is younger may be sent already.
constexpr Duration kTold = std::chrono::minutes(2);

/// How a schedule stands by what hosts have told.
struct ScheduleStanding {
  std::string told_by;       ///< the host that has told of it last; empty: none has had it
  std::optional<Time> last;  ///< of which a message was sent
  std::size_t missed = 0;
};

ScheduleStanding standing_of(const config::ScheduleTimes& times, const config::ScheduleConfig& schedule, WallTime now,
                             const ScheduleNotices& told) {
  const auto notice = told.find({schedule.queue, schedule.name});
  if (notice == told.end()) {
    return {};
  }
  const auto whole = [](WallTime time) { return std::chrono::floor<std::chrono::seconds>(time); };
  const auto& [definition, host, file, last, sent] = notice->second;
  const Time begin = whole(last);
  const Time end(std::chrono::floor<std::chrono::seconds>((now - kTold).time_since_epoch()));
  return {host, sent ? std::optional(whole(*sent)) : std::nullopt,
          end > begin ? times.between(begin, end, kMostMissed).size() : 0};
}

/// What a host has told of this schedule, where it has it otherwise than the file here.
const runtime::ScheduleNotice* told_otherwise(const config::ScheduleConfig& schedule, const ScheduleNotices& told) {
  const auto notice = told.find({schedule.queue, schedule.name});
  const bool differs = notice != told.end() && notice->second.definition != runtime::definition_of(schedule);
  return differs ? &notice->second : nullptr;
}

std::string_view what_becomes_of_missed(config::CatchUp catch_up) {
  return catch_up == config::CatchUp::none   ? "they are let go"
         : catch_up == config::CatchUp::last ? "the last of them is sent when a host runs"
                                             : "they are sent when a host runs";
}

std::string standing_text(const ScheduleStanding& standing, const config::ScheduleTimes& times,
                          config::CatchUp catch_up) {
  std::string text = "; last " + (standing.last              ? times.text(*standing.last)
                                  : standing.told_by.empty() ? "never, as no host has had it"
                                                             : "never");
  if (standing.missed > 0) {
    text += "; missed " + std::to_string(standing.missed) + (standing.missed == kMostMissed ? " or more" : "") + ": " +
            std::string(what_becomes_of_missed(catch_up));
  }
  return text;
}

}  // namespace

std::vector<std::string> schedule_lines(const config::JobConfig& job, WallTime now, const ScheduleNotices* told) {
  std::vector<std::string> lines;
  for (const config::ScheduleConfig& schedule : job.schedules) {
    const auto times = config::ScheduleTimes::of(schedule);
    std::string line = "  schedule " + schedule.name + ": ";
    line += schedule.cron.empty() ? "every " + config::format_duration(schedule.every)
                                  : "\"" + schedule.cron + "\" in " + schedule.time_zone;
    line += " to queue " + schedule.queue;
    if (told != nullptr && times) {
      line += standing_text(standing_of(*times, schedule, now, *told), *times, schedule.catch_up);
    }
    const auto next = times ? next_times(*times, now) : std::vector<Time>();
    line += "; next " + sluice::joined(mapped(next, [&times](Time time) { return times->text(time); }));
    lines.push_back(std::move(line));
    if (const auto* const other = told != nullptr ? told_otherwise(schedule, *told) : nullptr) {
      lines.push_back("  schedule " + schedule.name + " is not the same everywhere: on host " + other->host + " " +
                      other->file + " has " + other->definition + "; make the files the same and reload, or give one " +
                      "of them another name");
    }
  }
  return lines;
}

void write_schedules(JsonWriter& json, const config::JobConfig& job, WallTime now, const ScheduleNotices* told) {
  const auto moment = [](Time time) { return format_timestamp(WallTime(time.time_since_epoch())); };
  const auto write = [&](JsonWriter& each, const config::ScheduleConfig& schedule) {
    const auto times = config::ScheduleTimes::of(schedule);
    const bool by_clock = !schedule.cron.empty();
    const auto standing = [&](JsonWriter& members) {
      if (told != nullptr && times) {
        const auto [told_by, last, missed] = standing_of(*times, schedule, now, *told);
        const auto* const other = told_otherwise(schedule, *told);
        put_members(members, "last", or_null(last.has_value(), moment(last.value_or(Time{}))), "missed", missed,
                    "told_by", or_null(!told_by.empty(), told_by), "differs_on",
                    or_null(other != nullptr, other == nullptr ? "" : other->host));
      }
    };
    put_object(each, "name", schedule.name, member_if(!by_clock, "every", config::format_duration(schedule.every)),
               member_if(by_clock, "cron", schedule.cron), member_if(by_clock, "time_zone", schedule.time_zone),
               "queue", schedule.queue, "catch_up", config::word_of(schedule.catch_up), standing, "next",
               array_of(times ? next_times(*times, now) : std::vector<Time>(),
                        [&moment](JsonWriter& next, Time time) { next.value(moment(time)); }));
  };
  put_members(json, "schedules", array_of(job.schedules, write));
}

}  // namespace sluice::cli
