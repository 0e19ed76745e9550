#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "config/config.hpp"
#include "host/cli/json_text.hpp"

/// A job's schedules as commands show them, with the times at which they are due next.
namespace sluice::cli {

/// A line for each: "schedule report: \"30 6 * * MON-FRI\" in Europe/Vienna to queue orders; next 2026-...".
std::vector<std::string> schedule_lines(const config::JobConfig& job, WallTime now);
/// The same as an array of objects: name, cron or every, time_zone, queue, catch_up, and next, in RFC 3339.
void write_schedules(JsonText& json, const config::JobConfig& job, WallTime now);

}  // namespace sluice::cli
