#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/text/json_writer.hpp"
#include "config/config.hpp"
#include "host/runtime/scheduler.hpp"

/// A job's schedules as commands show them, with the times at which they are due next.
namespace sluice::cli {

/// What hosts have told of schedules, by queue and name. Without it, schedules are shown as the files have them.
using ScheduleNotices = std::map<std::pair<std::string, std::string>, runtime::ScheduleNotice>;

/// A line for each: "schedule report: \"30 6 * * MON-FRI\" in Europe/Vienna to queue orders; last 2026-...; next
/// 2026-...", and how many times were missed; after it another one where a host has told that it has it otherwise.
std::vector<std::string> schedule_lines(const config::JobConfig& job, WallTime now,
                                        const ScheduleNotices* told = nullptr);
/// The same as an array of objects: name, cron or every, time_zone, queue, catch_up, and next, in RFC 3339; with
/// notices also last (null: none was sent), missed, of which kMostMissed are counted at most, told_by, the host that
/// has told of it last (null: none has had it), and differs_on, the host that has it otherwise (null: none has told
/// so).
void write_schedules(JsonWriter& json, const config::JobConfig& job, WallTime now,
                     const ScheduleNotices* told = nullptr);

inline constexpr std::size_t kMostMissed = 100;

}  // namespace sluice::cli
