#include "base/timestamp.hpp"
#include "host/cli/views/figure_text.hpp"
#include "host/cli/views/fleet_report.hpp"

namespace sluice::cli {

namespace {

void member_seconds(JsonText& json, std::string_view name, Duration time) {
  json.key(name);
  json.word(decimal(std::chrono::duration<double>(time).count(), 3));
}

void member_rate(JsonText& json, std::string_view name, double rate) {
  json.key(name);
  json.word(decimal(rate, 2));
}

void member_list(JsonText& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name);
  json.begin_array();
  for (const std::string& text : texts) {
    json.value(text);
  }
  json.end_array();
}

void write_pace(JsonText& json, const fleet::JobPace& pace) {
  member_rate(json, "claimed_per_second", pace.claimed);
  member_rate(json, "done_per_second", pace.done);
  member_rate(json, "failed_per_second", pace.failed);
  member_seconds(json, "mean_seconds", pace.mean);
  member_seconds(json, "p95_seconds", pace.p95);
  member_seconds(json, "slowest_seconds", pace.slowest);
}

void write_host_job(JsonText& json, const fleet::JobRecord& job) {
  json.begin_object();
  json.member("job", job.name);
  json.member("queue", job.queue);
  json.member("dead_letters", job.dead_letters);
  json.member("handler", job.handler);
  json.member("plugin", job.plugin);
  json.member("plugin_version", job.plugin_version);
  json.member("workers", std::uint64_t{job.concurrency});
  json.member("file_workers", std::uint64_t{job.file_concurrency});
  json.member("paused", job.paused);
  json.member("held_by_budget", job.held_by_budget);
  json.member("running", std::uint64_t{job.running});
  json.member("stuck", std::uint64_t{job.stuck});
  json.member("claimed", job.claimed);
  json.member("done", job.done);
  json.member("retried", job.retried);
  json.member("rejected", job.rejected);
  json.member("timed_out", job.timed_out);
  write_pace(json, job.pace);
  json.end_object();
}

void write_host(JsonText& json, const fleet::KnownHost& known) {
  const fleet::HostRecord& host = known.record;
  json.begin_object();
  json.member("host", host.label());
  json.member("name", host.name);
  json.member("pid", host.pid);
  json.member("instance", host.instance);
  json.member("state", to_string(host.state));
  json.member("pulse", to_string(known.pulse));
  member_seconds(json, "record_age_seconds", known.age);
  json.member("version", host.version);
  json.member("address", host.address);
  json.member("host_file", host.host_file);
  json.member("started_at", format_timestamp(host.started_at));
  json.member("log_level", host.log_level);
  json.member("file_log_level", host.file_log_level);
  json.member("running", std::uint64_t{host.running_total});
  json.member("place", known.place);
  json.key("jobs");
  json.begin_array();
  for (const fleet::JobRecord& job : host.jobs) {
    write_host_job(json, job);
  }
  json.end_array();
  json.end_object();
}

using MoreOfJob = std::function<void(JsonText&, const operate::JobSummary&)>;

void write_job(JsonText& json, const operate::JobSummary& job, const MoreOfJob& more) {
  json.begin_object();
  json.member("job", job.name);
  json.member("queue", job.queue);
  json.member("dead_letters", job.dead_letters);
  json.member("handler", job.handler);
  member_list(json, "plugins", job.plugins);
  member_list(json, "hosts", job.hosts);
  json.member("in_files", job.in_files);
  json.key("file_workers");
  if (job.file_workers) {
    json.value(std::uint64_t{*job.file_workers});
  } else {
    json.null();
  }
  json.member("workers", std::uint64_t{job.workers});
  json.member("running", std::uint64_t{job.running});
  json.member("stuck", std::uint64_t{job.stuck});
  json.member("paused", job.paused());
  json.member("paused_hosts", std::uint64_t{job.paused_hosts});
  json.member("held_by_budget_hosts", std::uint64_t{job.held_hosts});
  json.member("claimed", job.claimed);
  json.member("done", job.done);
  json.member("retried", job.retried);
  json.member("rejected", job.rejected);
  json.member("timed_out", job.timed_out);
  write_pace(json, job.pace);
  json.key("steered");
  json.begin_array();
  for (const fleet::Given& wish : job.wishes) {
    json.begin_object();
    write_directive(json, wish);
    json.end_object();
  }
  json.end_array();
  if (more) {
    more(json, job);
  }
  json.end_object();
}

/// A line of JSON: an array of what `write` makes of each item.
template <typename Item, typename Write>
std::string array_of(const std::vector<Item>& items, Write write) {
  JsonText json(JsonText::Layout::indented);
  json.begin_array();
  for (const Item& item : items) {
    write(json, item);
  }
  json.end_array();
  return json.take_line();
}

}  // namespace

std::string hosts_json(const fleet::FleetView& view) { return array_of(view.hosts, write_host); }

std::string jobs_json(const std::vector<operate::JobSummary>& jobs, const MoreOfJob& more) {
  return array_of(jobs, [&more](JsonText& json, const operate::JobSummary& job) { write_job(json, job, more); });
}

std::string running_json(const std::vector<HandlerAtWork>& running, WallTime now) {
  return array_of(running, [now](JsonText& json, const HandlerAtWork& at_work) {
    const fleet::RunningRecord& handler = at_work.handler;
    json.begin_object();
    json.member("message", handler.message);
    json.member("host", at_work.host);
    json.member("worker", std::uint64_t{handler.worker});
    json.member("job", handler.job);
    json.member("queue", handler.queue);
    json.member("handler", handler.handler);
    json.member("attempt", std::uint64_t{handler.attempt});
    json.member("since", format_timestamp(handler.since));
    member_seconds(json, "running_seconds", std::max(Duration(now - handler.since), Duration::zero()));
    json.key("left_seconds");
    if (handler.times_out_at) {
      json.word(decimal(std::chrono::duration<double>(*handler.times_out_at - now).count(), 3));
    } else {
      json.null();
    }
    json.member("stuck", handler.stuck);
    json.member("cancelled", handler.cancelled);
    json.end_object();
  });
}

std::string audit_json(const std::vector<fleet::AuditEntry>& entries) {
  return array_of(entries, [](JsonText& json, const fleet::AuditEntry& entry) {
    json.begin_object();
    json.member("at", format_timestamp(entry.at));
    json.member("who", entry.who);
    json.member("what", entry.what);
    json.member("place", entry.place);
    json.end_object();
  });
}

void write_directive(JsonText& json, const fleet::Given& given) {
  const fleet::Directive& directive = given.directive;
  json.member("wish", to_string(directive.wish));
  json.member("target", to_string(directive.target));
  json.member("name", directive.name);
  json.member("value", directive.value);
  json.member("by", directive.by);
  json.member("at", format_timestamp(directive.at));
  json.member("place", given.place);
}

}  // namespace sluice::cli
