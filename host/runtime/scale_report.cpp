#include "host/runtime/scale_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string>

#include "base/text/json_string.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {
namespace {

constexpr unsigned kOk = 200;
constexpr unsigned kNotFound = 404;
constexpr unsigned kUnavailable = 503;
/// Numbers that are so many intervals old, and a minute at least, are none: the queue cannot be counted.
constexpr int kStaleIntervals = 10;

/// The workers of this host's jobs on the queue's own half.
struct Crew {
  std::uint64_t workers = 0;
  std::uint64_t running = 0;
  bool paused = true;  ///< all of them
  bool held = false;   ///< one of them, by a budget
};

Crew crew_of(const std::string& queue, const JobSet& jobs) {
  Crew crew;
  for (const JobSet::Member& member : jobs.members()) {
    const auto addresses = work::addresses_of(member.plan.config);
    const queue::QueueAddress here{queue, queue::Half::standard};
    if (std::find(addresses.begin(), addresses.end(), here) == addresses.end()) {
      continue;
    }
    const work::JobActivity activity = member.job->activity();
    crew.workers += activity.workers;
    crew.running += activity.running.size();
    crew.paused = crew.paused && activity.paused;
    crew.held = crew.held || activity.held_by_budget;
  }
  crew.paused = crew.paused && crew.workers > 0;
  return crew;
}

std::string seconds_text(Duration duration) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", std::chrono::duration<double>(duration).count());
  return text.data();
}

observe::HttpReply unavailable(const std::string& queue, const std::string& why) {
  return {kUnavailable, "{\"queue\": " + json_quoted(queue) + ", \"error\": " + json_quoted(why) + "}\n"};
}

observe::HttpReply unknown(const std::string& queue, const std::set<std::string>& known) {
  std::string names;
  for (const std::string& name : known) {
    names += (names.empty() ? "" : ",") + json_quoted(name);
  }
  return {kNotFound, "{\"error\": " + json_quoted("no job of this host works on queue " + queue) + ", \"queues\": [" +
                         names + "]}\n"};
}

}  // namespace

observe::HttpReply scale_of(std::string_view queue, const JobSet& jobs, const std::optional<QueueDepth>& depth,
                            Duration interval, SteadyTime now) {
  const std::string name(queue);
  std::set<std::string> known;
  for (const queue::QueueAddress& address : jobs.addresses()) {
    known.insert(address.queue);
  }
  if (!known.contains(name)) {
    return unknown(name, known);
  }
  if (!depth) {
    return unavailable(name, "not counted yet; ask again in a moment");
  }
  const Duration age = depth->age(now);
  if (age > std::max<Duration>(std::chrono::minutes(1), interval * kStaleIntervals)) {
    return unavailable(name, "the last count is " + seconds_text(age) +
                                 " s old; ask again in a moment, and look at /healthz if that does not help");
  }
  if (depth->backlog() == 0 && depth->standard.at_least) {
    return unavailable(name, "nothing is known to wait, and not all of it has been counted yet; ask again in a moment");
  }
  const Crew crew = crew_of(name, jobs);
  const auto flag = [](bool set) { return set ? "true" : "false"; };
  return {kOk, "{\"queue\": " + json_quoted(name) + ", \"backlog\": " + std::to_string(depth->backlog()) +
                   ", \"ready\": " + std::to_string(depth->standard.ready) +
                   ", \"delayed\": " + std::to_string(depth->standard.delayed) +
                   ", \"in_flight\": " + std::to_string(depth->standard.in_flight) + ", \"dead_letters\": " +
                   std::to_string(depth->dead_letters()) + ", \"oldest_due_seconds\": " + seconds_text(depth->oldest) +
                   ", \"age_seconds\": " + seconds_text(age) + ", \"approximate\": " + flag(depth->standard.at_least) +
                   ", \"at_least\": " + flag(depth->standard.at_least) +
                   ", \"workers\": " + std::to_string(crew.workers) + ", \"running\": " + std::to_string(crew.running) +
                   ", \"paused\": " + flag(crew.paused) + ", \"held_by_budget\": " + flag(crew.held) + "}\n"};
}

}  // namespace sluice::runtime
