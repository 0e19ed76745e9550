#include "host/cli/views/fleet_report.hpp"

#include <algorithm>
#include <utility>

#include "base/timestamp.hpp"
#include "host/cli/views/figure_text.hpp"
#include "host/cli/views/message_text.hpp"
#include "host/cli/views/text_table.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kWidestId = 40;
constexpr std::size_t kWidestName = 32;

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += (all.empty() ? "" : ", ") + text;
  }
  return all;
}

std::string level_text(const fleet::HostRecord& host) {
  return host.log_level + (host.log_level == host.file_log_level ? "" : " (file: " + host.file_log_level + ")");
}

TextTable::Cell job_state(const operate::JobSummary& job) {
  if (job.hosts.empty()) {
    return {"no host", Colour::red};
  }
  if (job.paused()) {
    return {"paused", Colour::yellow};
  }
  if (job.stuck > 0) {
    return {std::to_string(job.stuck) + " stuck", Colour::red};
  }
  if (job.paused_hosts > 0) {
    return {"paused on " + std::to_string(job.paused_hosts) + " of " + std::to_string(job.hosts.size()),
            Colour::yellow};
  }
  if (job.held_hosts > 0) {
    return {"held by budget on " + std::to_string(job.held_hosts) + " of " + std::to_string(job.hosts.size()),
            Colour::yellow};
  }
  return {"working", Colour::green};
}

/// "24 on 3 hosts", and beside it what the files say when that is not the same.
std::string workers_text(const operate::JobSummary& job) {
  if (job.hosts.empty()) {
    return job.file_workers ? "(file: " + std::to_string(*job.file_workers) + ")" : "";
  }
  const std::size_t by_file = std::size_t{job.file_workers.value_or(0)} * job.hosts.size();
  return std::to_string(job.workers) + (by_file == job.workers ? "" : " (file: " + std::to_string(by_file) + ")");
}

TextTable::Cell left_cell(const fleet::RunningRecord& handler, WallTime now) {
  if (handler.stuck) {
    return {"stuck", Colour::red};
  }
  // At its time-out the stop token is set too; before that somebody has cancelled it.
  if (handler.times_out_at && *handler.times_out_at <= now) {
    return {"timed out", Colour::red};
  }
  if (handler.cancelled) {
    return {"cancelled", Colour::yellow};
  }
  return handler.times_out_at ? TextTable::Cell(short_duration(*handler.times_out_at - now))
                              : TextTable::Cell("no limit");
}

}  // namespace

std::vector<HandlerAtWork> handlers_at_work(const fleet::FleetView& view) {
  std::vector<HandlerAtWork> running;
  for (const fleet::KnownHost& host : view.hosts) {
    if (host.pulse != fleet::Pulse::silent) {
      for (const fleet::RunningRecord& handler : host.record.running) {
        running.push_back({host.record.label(), handler});
      }
    }
  }
  std::stable_sort(running.begin(), running.end(),
                   [](const auto& left, const auto& right) { return left.handler.since < right.handler.since; });
  return running;
}

TextTable::Cell host_state_cell(const fleet::KnownHost& host) {
  if (host.pulse == fleet::Pulse::silent) {
    return {"silent", Colour::red};
  }
  const std::string state(to_string(host.record.state));
  if (host.pulse == fleet::Pulse::late) {
    return {state + ", late", Colour::yellow};
  }
  return {state, host.record.state == fleet::HostState::running ? Colour::green : Colour::yellow};
}

std::string hosts_text(const fleet::FleetView& view, WallTime now, bool colours) {
  TextTable table({{.title = "HOST", .right = false, .widest = kWidestName},
                   {.title = "STATE"},
                   {.title = "UP", .right = true},
                   {.title = "JOBS", .right = true},
                   {.title = "RUNNING", .right = true},
                   {.title = "DONE/S", .right = true},
                   {.title = "FAILED/S", .right = true},
                   {.title = "SEEN", .right = true},
                   {.title = "VERSION"},
                   {.title = "LOG"},
                   {.title = "HTTP"}},
                  colours);
  for (const fleet::KnownHost& known : view.hosts) {
    const fleet::HostRecord& host = known.record;
    double done = 0;
    double failed = 0;
    for (const fleet::JobRecord& job : host.jobs) {
      done += job.pace.done;
      failed += job.pace.failed;
    }
    table.add({host.label(),
               host_state_cell(known),
               short_duration(now - host.started_at),
               std::to_string(host.jobs.size()),
               std::to_string(host.running_total),
               rate_text(done),
               {rate_text(failed), failed >= 0.05 ? Colour::red : Colour::none},
               short_duration(known.age),
               host.version,
               level_text(host),
               host.address.empty() ? "-" : host.address});
  }
  return table.take();
}

std::string jobs_text(const std::vector<operate::JobSummary>& jobs, WallTime now, bool colours) {
  TextTable table({{.title = "JOB", .right = false, .widest = kWidestName},
                   {.title = "QUEUE", .right = false, .widest = kWidestName},
                   {.title = "STATE"},
                   {.title = "HOSTS", .right = true},
                   {.title = "WORKERS", .right = true},
                   {.title = "RUNNING", .right = true},
                   {.title = "DONE/S", .right = true},
                   {.title = "FAILED/S", .right = true},
                   {.title = "MEAN", .right = true},
                   {.title = "P95", .right = true},
                   {.title = "HANDLER", .right = false, .widest = kWidestName},
                   {.title = "PLUGIN", .right = false, .widest = kWidestName},
                   {.title = "STEERED"}},
                  colours);
  for (const operate::JobSummary& job : jobs) {
    table.add({job.name,
               job.queue + (job.dead_letters ? " (dlq)" : ""),
               job_state(job),
               std::to_string(job.hosts.size()),
               workers_text(job),
               std::to_string(job.running),
               rate_text(job.pace.done),
               {rate_text(job.pace.failed), job.pace.failed >= 0.05 ? Colour::red : Colour::none},
               time_text(job.pace.mean),
               time_text(job.pace.p95),
               job.handler,
               joined(job.plugins),
               {joined(wish_texts(job.wishes, now)), Colour::yellow}});
  }
  return table.take();
}

std::string running_text(const std::vector<HandlerAtWork>& running, WallTime now, bool colours) {
  TextTable table({{.title = "MESSAGE", .right = false, .widest = kWidestId},
                   {.title = "SINCE", .right = true},
                   {.title = "LEFT", .right = true},
                   {.title = "HOST", .right = false, .widest = kWidestName},
                   {.title = "WORKER", .right = true},
                   {.title = "JOB", .right = false, .widest = kWidestName},
                   {.title = "HANDLER", .right = false, .widest = kWidestName},
                   {.title = "ATTEMPT", .right = true}},
                  colours);
  for (const HandlerAtWork& at_work : running) {
    const fleet::RunningRecord& handler = at_work.handler;
    table.add({handler.message, time_text(std::max(Duration(now - handler.since), Duration(1))),
               left_cell(handler, now), at_work.host, std::to_string(handler.worker), handler.job, handler.handler,
               std::to_string(handler.attempt)});
  }
  return table.take();
}

std::string audit_text(const std::vector<fleet::AuditEntry>& entries, WallTime now, bool colours) {
  TextTable table({{.title = "WHEN"}, {.title = "AGO", .right = true}, {.title = "WHO"}, {.title = "WHAT"}}, colours);
  constexpr std::size_t kToTheSecond = std::string_view("2006-01-02T15:04:05").size();
  for (const fleet::AuditEntry& entry : entries) {
    table.add({format_timestamp(entry.at).substr(0, kToTheSecond) + "Z", short_duration(now - entry.at), entry.who,
               entry.what});
  }
  return table.take();
}

std::vector<std::string> wish_texts(const std::vector<fleet::Given>& wishes, WallTime now) {
  std::vector<std::string> texts;
  for (const fleet::Given& given : wishes) {
    const fleet::Directive& directive = given.directive;
    const std::string what = directive.wish == fleet::Wish::scale       ? "scaled to " + directive.value
                             : directive.target == fleet::Target::queue ? "queue paused"
                                                                        : "paused";
    texts.push_back(what + (directive.by.empty() ? "" : " by " + directive.by) + " " +
                    short_duration(now - directive.at) + " ago");
  }
  return texts;
}

}  // namespace sluice::cli
