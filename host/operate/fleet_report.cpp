#include "host/operate/fleet_report.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/utf8.hpp"
#include "config/config.hpp"

namespace sluice::operate {
namespace {

using fleet::Directive;
using fleet::Target;
using fleet::Wish;
using Key = std::pair<std::string, std::pair<std::string, bool>>;

/// Nothing for an empty text.
std::optional<std::string> some(const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }

void add(JobSummary& summary, const fleet::KnownHost& known, const fleet::JobRecord& job) {
  const fleet::HostRecord& host = known.record;
  summary.handler = job.handler;
  const std::string plugin = job.plugin + (job.plugin_version.empty() ? "" : " " + job.plugin_version);
  if (!plugin.empty() && !contains(summary.plugins, plugin)) {
    summary.plugins.push_back(plugin);
  }
  if (!summary.in_files) {
    summary.file_workers = job.file_concurrency;
  }
  summary.hosts.push_back(host.label());
  summary.paused_hosts += job.paused ? 1 : 0;
  summary.held_hosts += job.held_by_budget ? 1 : 0;
  summary.cut_off_hosts += job.cut_off ? 1 : 0;
  summary.quiet_hosts += known.answers() ? 0 : 1;
  summary.draining_hosts += host.state == fleet::HostState::draining ? 1 : 0;
  summary.shared_rate = summary.rate_limit == job.rate_limit ? summary.shared_rate : 0;
  summary.rate_limit = job.rate_limit;
  summary.rate += job.rate;
  summary.workers += job.concurrency;
  summary.running += job.running;
  summary.stuck += job.stuck;
  summary.claimed += job.claimed;
  summary.done += job.done;
  summary.retried += job.retried;
  summary.rejected += job.rejected;
  summary.timed_out += job.timed_out;
  summary.pace.claimed += job.pace.claimed;
  summary.pace.done += job.pace.done;
  summary.pace.failed += job.pace.failed;
  summary.pace.mean = std::max(summary.pace.mean, job.pace.mean);
  summary.pace.p95 = std::max(summary.pace.p95, job.pace.p95);
  summary.pace.slowest = std::max(summary.pace.slowest, job.pace.slowest);
  // A sum with something unknown is unknown.
  summary.pace.over = summary.hosts.size() == 1 ? job.pace.over : std::min(summary.pace.over, job.pace.over);
}

bool is_about(const Directive& directive, const JobSummary& job) {
  return (directive.wish == Wish::pause || directive.wish == Wish::scale) && directive.is_about(job.name, job.queue);
}

/// With its messages and its reason: "redrive the dead-letter half of queue orders --limit 5 (bank is back)".
std::string what_text(const fleet::AuditEntry& entry) {
  return entry.what + (entry.filter.empty() ? "" : " " + entry.filter) +
         (entry.reason.empty() ? "" : " (" + entry.reason + ")");
}

/// "12 changed, 1 failed"; "-" for what changes no messages.
Cell came_to(const fleet::AuditEntry& entry) {
  if (entry.state == fleet::DeedState::begun) {
    return {"begun, not finished", Colour::yellow};
  }
  if (!entry.ended_at) {
    return "-";
  }
  std::string text = std::to_string(entry.changed) + " changed";
  text += entry.skipped > 0 ? ", " + std::to_string(entry.skipped) + " skipped" : "";
  text += entry.failed > 0 ? ", " + std::to_string(entry.failed) + " failed" : "";
  const bool stopped = entry.state == fleet::DeedState::stopped;
  return {text + (stopped ? "; stopped" : "") + (entry.stopped_by.empty() ? "" : ": " + entry.stopped_by),
          stopped ? Colour::yellow : Colour::none};
}

Cell state_cell(const JobSummary& job) {
  const auto some = [&job](const char* what, std::uint32_t hosts, Colour colour = Colour::yellow) {
    return Cell(what + std::to_string(hosts) + " of " + std::to_string(job.hosts.size()), colour);
  };
  if (job.hosts.empty()) {
    return {"no host", Colour::red};
  }
  if (job.paused()) {
    return {"paused", Colour::yellow};
  }
  if (job.stuck > 0) {
    return {std::to_string(job.stuck) + " stuck", Colour::red};
  }
  if (job.cut_off_hosts > 0) {
    return some("cannot work on ", job.cut_off_hosts, Colour::red);
  }
  if (job.quiet_hosts > 0) {
    return some("no answer: ", job.quiet_hosts, Colour::red);
  }
  if (job.draining_hosts > 0) {
    return job.draining_hosts == job.hosts.size() ? Cell("draining", Colour::yellow)
                                                  : some("draining on ", job.draining_hosts);
  }
  if (job.paused_hosts > 0) {
    return some("paused on ", job.paused_hosts);
  }
  return job.held_hosts > 0 ? some("held by budget on ", job.held_hosts) : Cell("working", Colour::green);
}

Cell state_cell(const fleet::KnownHost& host) {
  if (host.record.state == fleet::HostState::ended) {
    return {"ended, NOT clean", Colour::red};
  }
  if (host.pulse == fleet::Pulse::silent) {
    return {"silent", Colour::red};
  }
  if (!host.silence.empty()) {
    return {"no answer", Colour::red};
  }
  if (!host.record.unhealthy.empty()) {
    return {"unhealthy", Colour::red};
  }
  if (!host.record.not_ready.empty()) {
    return {"not ready", Colour::red};
  }
  const std::string state(to_string(host.record.state));
  if (host.pulse == fleet::Pulse::late) {
    return {state + ", late", Colour::yellow};
  }
  return {state, host.record.state == fleet::HostState::running ? Colour::green : Colour::yellow};
}

/// "24", and beside it what the files say when that is not the same.
std::string workers_text(const JobSummary& job) {
  if (job.hosts.empty()) {
    return job.file_workers ? "(file: " + std::to_string(*job.file_workers) + ")" : "";
  }
  const std::size_t by_file = std::size_t{job.file_workers.value_or(0)} * job.hosts.size();
  return std::to_string(job.workers) + (by_file == job.workers ? "" : " (file: " + std::to_string(by_file) + ")");
}

/// "20/s/host" for "20/s per host", so that it stays whole in a table.
std::string limit_text(std::string limit) {
  const std::size_t at = limit.find(" per ");
  return at == std::string::npos ? limit : limit.replace(at, std::string_view(" per ").size(), "/");
}

Cell left_cell(const HandlerAtWork& at_work, WallTime now) {
  const fleet::RunningRecord& handler = at_work.handler;
  if (!at_work.answers) {
    return {"no answer", Colour::red};
  }
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
  return handler.times_out_at ? Cell(short_duration(*handler.times_out_at - now)) : Cell("no limit");
}

/// A rate of it; nothing where none is known yet.
std::optional<double> rate_of(const fleet::JobPace& pace, double rate) {
  return pace.over > Duration::zero() ? std::optional(rate) : std::nullopt;
}

void describe_pace(const fleet::JobPace& pace, Fields& fields) {
  fields.rate("claimed_per_second", kNowhere, rate_of(pace, pace.claimed));
  fields.rate("done_per_second", figures("DONE/S"), rate_of(pace, pace.done));
  fields.rate("failed_per_second", figures("FAILED/S"), rate_of(pace, pace.failed), Colour::red);
  fields.seconds("mean_seconds", figures("MEAN", 5), pace.mean);
  fields.seconds("p95_seconds", figures("P95", 4), pace.p95);
  fields.seconds("slowest_seconds", figures("SLOWEST"), pace.slowest);
}

/// What became of a job's messages.
template <typename Job>
void describe_counts(const Job& job, Fields& fields) {
  fields.member("claimed", job.claimed);
  fields.member("done", job.done);
  fields.member("retried", job.retried);
  fields.member("rejected", job.rejected);
  fields.member("timed_out", job.timed_out);
  describe_pace(job.pace, fields);
}

std::string handlers_text(std::size_t count) {
  return count == 0 ? "nothing" : std::to_string(count) + (count == 1 ? " handler" : " handlers");
}

/// The first few, and how many more there are of `total`.
std::string first_of(const std::vector<std::string>& texts, std::size_t total) {
  constexpr std::size_t kMostTold = 3;
  const std::size_t told = std::min(texts.size(), kMostTold);
  return joined(std::vector<std::string>(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(told))) +
         (told > 0 && total > told ? " and " + std::to_string(total - told) + " more" : "");
}

/// Of a host that does not answer: since when, why, and what it was at.
std::string silence_text(const fleet::KnownHost& host, WallTime now) {
  if (host.record.state == fleet::HostState::ended) {
    return host.record.label() + " has ended and left work behind: " + host.record.left_behind;
  }
  const bool is_known = !host.silence.empty();
  // Of one that lives the crash ledger was read, which tells what is at work now.
  const bool by_ledger = is_known && host.pulse != fleet::Pulse::silent;
  return host.record.label() + " has not told of itself since " + to_the_second(now - host.age) + ", " +
         short_duration(host.age) + " ago: " + (is_known ? host.silence : "it is busy, stopped, cut off or dead") +
         (by_ledger ? "; at work by its crash ledger: " : "; at work then: ") +
         handlers_text(host.record.running_total);
}

/// Of a host that was told to drain.
bool obeys(const fleet::HostRecord& record) {
  return record.state == fleet::HostState::draining || record.state == fleet::HostState::ended;
}

using Words = std::set<std::string>;

/// What a word means that somebody knows; otherwise, with `known` as those that may have been meant:
/// "there is no job \"maler\"; did you mean \"mailer\"?"
Result<Directive> directive_for(Wish wish, Target target, const std::string& word, bool is_known, const Words& known,
                                std::string_view what) {
  if (is_known) {
    return Directive{.wish = wish, .target = target, .name = word};
  }
  constexpr std::size_t kMost = 8;
  std::vector<std::string> some(known.begin(), known.end());
  const auto meant = config::nearest(word, some);
  some.resize(std::min(some.size(), kMost));
  return Error(ErrorCode::not_found,
               "there is no " + std::string(what) + " \"" + word + "\"" +
                   (meant           ? "; did you mean \"" + *meant + "\"?"
                    : known.empty() ? "; none is known here"
                                    : "; there are " + joined(some) + (known.size() > kMost ? ", ..." : "")));
}

}  // namespace

void describe(const fleet::KnownHost& known, Fields& fields) {
  const fleet::HostRecord& host = known.record;
  // The last record of one that is overdue tells of what may have ended long ago, its crash ledger of now.
  const bool tells_of_now = known.answers() || (known.pulse == fleet::Pulse::late && !known.silence.empty());
  fields.text("host", names("HOST", 24), host.label());
  fields.member("name", host.name);
  fields.member("pid", host.pid);
  fields.member("instance", host.instance);
  fields.member("state", to_string(host.state));
  fields.cell({"STATE"}, state_cell(known));
  fields.member("pulse", to_string(known.pulse));
  fields.member("unhealthy", some(host.unhealthy));
  fields.member("not_ready", some(host.not_ready));
  fields.member("left_behind", some(host.left_behind));
  fields.member("no_answer", some(known.silence));
  fields.seconds("record_age_seconds", kNowhere, known.age);
  fields.cell(figures("SEEN"), short_duration(known.age));
  fields.text("version", names("VERSION", 6, 2), host.version);
  fields.member("address", host.address);
  fields.cell(names("HTTP", 15, 4), host.address.empty() ? "-" : host.address);
  fields.member("host_file", host.host_file);
  fields.member("started_at", host.started_at);
  fields.cell(figures("UP"), short_duration(fields.now() - host.started_at));
  fields.member("log_level", host.log_level);
  fields.member("file_log_level", host.file_log_level);
  fields.cell({.title = "LOG", .spare = 3},
              host.log_level + (host.log_level == host.file_log_level ? "" : " (file: " + host.file_log_level + ")"));
  fields.member("running", host.running_total);
  fields.cell(figures("RUNNING"), tells_of_now ? std::to_string(host.running_total) : "-");
  fields.member("place", known.place);
  fields.cell(figures("JOBS", 1), std::to_string(host.jobs.size()));
  fleet::JobPace pace;
  pace.over = host.jobs.empty() || !known.answers() ? Duration::zero() : host.jobs.front().pace.over;
  for (const fleet::JobRecord& job : host.jobs) {
    pace.done += job.pace.done;
    pace.failed += job.pace.failed;
    pace.over = std::min(pace.over, job.pace.over);
  }
  fields.rate({}, figures("DONE/S"), rate_of(pace, pace.done));
  fields.rate({}, figures("FAILED/S"), rate_of(pace, pace.failed), Colour::red);
  fields.records("jobs", host.jobs);
}

void describe(const fleet::JobRecord& job, Fields& fields) {
  fields.member("job", job.name);
  fields.member("queue", job.queue);
  fields.member("dead_letters", job.dead_letters);
  fields.member("handler", job.handler);
  fields.member("plugin", job.plugin);
  fields.member("plugin_version", job.plugin_version);
  fields.member("workers", job.concurrency);
  fields.member("file_workers", job.file_concurrency);
  fields.member("paused", job.paused);
  fields.member("held_by_budget", job.held_by_budget);
  fields.member("cut_off", job.cut_off);
  fields.member("rate_limit", some(job.rate_limit));
  fields.member("rate", job.rate, 6);
  fields.member("running", job.running);
  fields.member("stuck", job.stuck);
  describe_counts(job, fields);
}

void describe(const JobSummary& job, Fields& fields) {
  fields.text("job", names("JOB", kLeastName), job.name);
  fields.member("queue", job.queue);
  fields.cell(names("QUEUE", kLeastName, 1), job.queue + (job.dead_letters ? " (dlq)" : ""));
  fields.member("dead_letters", job.dead_letters);
  fields.text("handler", names("HANDLER", kLeastName, 6), job.handler);
  fields.member("plugins", job.plugins);
  fields.cell(names("PLUGIN", kLeastName, 7), joined(job.plugins));
  fields.member("hosts", job.hosts);
  fields.cell(figures("HOSTS", 3), std::to_string(job.hosts.size()));
  fields.member("in_files", job.in_files);
  fields.member("file_workers", job.file_workers);
  fields.member("workers", job.workers);
  fields.cell(figures("WORKERS"), workers_text(job));
  fields.member("rate_limit", some(job.rate_limit));
  fields.cell({.title = "LIMIT", .spare = 2}, limit_text(job.rate_limit));
  fields.member("rate", job.rate, 6);
  fields.number("running", figures("RUNNING", 2), job.running);
  fields.member("stuck", job.stuck);
  fields.member("paused", job.paused());
  fields.cell({"STATE"}, state_cell(job));
  fields.member("paused_hosts", job.paused_hosts);
  fields.member("held_by_budget_hosts", job.held_hosts);
  fields.member("cut_off_hosts", job.cut_off_hosts);
  fields.member("no_answer_hosts", job.quiet_hosts);
  fields.member("draining_hosts", job.draining_hosts);
  describe_counts(job, fields);
  fields.records("steered", job.wishes);
  fields.cell(prose("STEERED", 20, 1), {joined(wish_texts(job.wishes, fields.now())), Colour::yellow});
}

void describe(const HandlerAtWork& at_work, Fields& fields) {
  const fleet::RunningRecord& handler = at_work.handler;
  // Nobody knows it of a host that does not answer and left no more than its crash ledger.
  const auto since = handler.since == WallTime{} ? std::nullopt : std::optional(handler.since);
  const auto running =
      since ? std::optional(std::max(Duration(fields.now() - *since), Duration::zero())) : std::nullopt;
  fields.text("message", names("MESSAGE", kLeastId), handler.message);
  fields.text("host", names("HOST", 10), at_work.host);
  fields.member("worker", since ? std::optional(handler.worker) : std::nullopt);
  fields.cell(figures("WORKER", 3), since ? std::to_string(handler.worker) : "-");
  fields.text("job", names("JOB", 8), handler.job);
  fields.member("queue", handler.queue);
  fields.text("handler", names("HANDLER", kLeastName, 2), handler.handler);
  fields.number("attempt", figures("ATTEMPT", 1), handler.attempt);
  fields.member("since", since);
  fields.seconds("running_seconds", kNowhere, running);
  fields.cell(figures("SINCE"), running ? time_text(std::max(*running, Duration(1))) : "-");
  fields.seconds("left_seconds", kNowhere,
                 handler.times_out_at ? std::optional<Duration>(*handler.times_out_at - fields.now()) : std::nullopt);
  fields.cell(figures("LEFT"), left_cell(at_work, fields.now()));
  fields.member("answers", at_work.answers);
  fields.member("leased_until",
                handler.leased_until == WallTime{} ? std::nullopt : std::optional(handler.leased_until));
  fields.member("stuck", handler.stuck);
  fields.member("cancelled", handler.cancelled);
}

void describe(const fleet::AuditEntry& entry, Fields& fields) {
  fields.time("at", {.title = "WHEN", .spare = 1}, entry.at);
  fields.cell(figures("AGO"), short_duration(fields.now() - entry.at));
  fields.text("who", names("WHO", 16), entry.who);
  fields.member("what", entry.what);
  fields.cell(prose("WHAT", 40), what_text(entry));
  fields.cell(prose("CAME TO", 12), came_to(entry));
  fields.member("queue", entry.queue);
  fields.member("filter", entry.filter);
  fields.member("reason", entry.reason);
  fields.member("state", to_string(entry.state));
  fields.member("ended_at", entry.ended_at);
  // Nobody knows how far one has come that was cut off.
  const auto known = [&entry](std::uint64_t count) {
    return entry.state == fleet::DeedState::begun ? std::nullopt : std::optional(count);
  };
  fields.member("changed", known(entry.changed));
  fields.member("skipped", known(entry.skipped));
  fields.member("failed", known(entry.failed));
  fields.member("stopped_by", entry.stopped_by);
  fields.member("place", entry.place);
}

void describe(const fleet::Given& given, Fields& fields) {
  const fleet::Directive& directive = given.directive;
  fields.member("wish", to_string(directive.wish));
  fields.member("target", to_string(directive.target));
  fields.member("name", directive.name);
  fields.member("value", directive.value);
  fields.member("by", directive.by);
  fields.member("at", directive.at);
  fields.member("place", given.place);
}

std::string drain_text(const fleet::KnownHost& host, Duration waited, WallTime now) {
  const fleet::HostRecord& record = host.record;
  const bool drains = obeys(record);
  if (!host.answers()) {
    return "host " + silence_text(host, now) + (drains ? "" : "; it has not obeyed");
  }
  std::vector<std::string> working;
  std::vector<std::string> stuck;
  for (const fleet::RunningRecord& handler : record.running) {
    if (handler.stuck) {
      stuck.push_back(handler.message);
    } else {
      working.push_back(handler.job + " on " + handler.message + " (" + short_duration(now - handler.since) + ")");
    }
  }
  const std::size_t at_work = record.running_total - std::min<std::size_t>(record.running_total, stuck.size());
  return "host " + record.label() + (drains ? " drains, " : " has not obeyed yet, ") + short_duration(waited) +
         ": at work " + (drains ? "still" : short_duration(host.age) + " ago") + ": " + handlers_text(at_work) +
         (working.empty() ? "" : ": " + first_of(working, at_work)) +
         (stuck.empty() ? "" : ", " + std::to_string(stuck.size()) + " stuck: " + first_of(stuck, stuck.size()));
}

DrainEnds drain_ends(const std::vector<std::string>& instances, const fleet::FleetView& view, WallTime now) {
  DrainEnds ends;
  const bool unread = std::any_of(view.troubles.begin(), view.troubles.end(), [](const fleet::BoardTrouble& trouble) {
    return trouble.error.code() != ErrorCode::corrupt;  // of one record, which is another host's
  });
  for (const std::string& instance : instances) {
    const auto is_it = [&instance](const fleet::KnownHost& host) { return host.record.instance == instance; };
    const fleet::KnownHost* const found = find_where(view.hosts, is_it);
    if (found == nullptr) {
      if (unread) {
        ends.going.push_back("host " + instance + " may not have ended, for not every board can be read");
      }
      continue;
    }
    const std::string line = "host " + silence_text(*found, now);
    const bool drains = obeys(found->record);
    if (found->record.state == fleet::HostState::ended) {
      ends.unclean.push_back(line);
    } else if (found->pulse == fleet::Pulse::silent) {
      ends.unknown.push_back(line + (drains ? "" : "; it has not obeyed") + "; nobody knows " +
                             (found->silence.empty() ? "whether it has ended, or how" : "how it has ended"));
    } else if (!found->answers()) {
      ends.going.push_back(line + (drains ? "; it has not ended" : "; it has not obeyed"));
    } else {
      ends.going.push_back("host " + found->record.label() +
                           (drains ? " drains, and has not ended" : " has not obeyed"));
    }
  }
  return ends;
}

std::vector<std::string> host_warnings(const fleet::FleetView& view, WallTime now) {
  std::vector<std::string> lines;
  lines.reserve(view.hosts.size());
  for (const fleet::KnownHost& host : view.hosts) {
    if (host.record.state == fleet::HostState::ended) {
      constexpr std::size_t kBeginning = 60;
      const std::string& why = host.record.left_behind;
      const std::string_view begun = cut_utf8(why, kBeginning);
      lines.push_back(host.record.label() + " has ended, not clean: " + std::string(begun) +
                      (begun.size() < why.size() ? "..." : "") + "; see `sluice crashes`");
    } else if (!host.answers()) {
      lines.push_back(silence_text(host, now));
    } else if (!host.record.unhealthy.empty()) {
      lines.push_back(host.record.label() + " is unhealthy: " + host.record.unhealthy);
    } else if (!host.record.not_ready.empty()) {
      lines.push_back(host.record.label() + " is not ready: " + host.record.not_ready);
    }
  }
  return lines;
}

std::string quiet_hosts(const fleet::FleetView& view, bool asked) {
  std::vector<std::string> quiet;
  for (const fleet::KnownHost& host : view.hosts) {
    if (host.record.state != fleet::HostState::ended && (!host.answers() || (asked && !host.record.detailed))) {
      const std::uint32_t then = host.record.running_total;
      quiet.push_back(host.record.label() + " for " + short_duration(host.age) +
                      (then == 0 ? "" : " (" + handlers_text(then) + " at work then)"));
    }
  }
  return first_of(quiet, quiet.size());
}

std::vector<HandlerAtWork> handlers_at_work(const fleet::FleetView& view) {
  std::vector<HandlerAtWork> running;
  for (const fleet::KnownHost& host : view.hosts) {
    if (host.pulse != fleet::Pulse::silent) {
      for (const fleet::RunningRecord& handler : host.record.running) {
        running.push_back({host.record.label(), handler, host.answers()});
      }
    }
  }
  std::stable_sort(running.begin(), running.end(), [](const auto& left, const auto& right) {
    const auto order = [](const HandlerAtWork& at_work) {
      return std::pair(at_work.handler.since == WallTime{}, at_work.handler.since);
    };
    return order(left) < order(right);
  });
  return running;
}

std::vector<std::string> wish_texts(const std::vector<fleet::Given>& wishes, WallTime now) {
  return mapped(wishes, [now](const fleet::Given& given) {
    const fleet::Directive& directive = given.directive;
    const std::string what = directive.wish == fleet::Wish::scale       ? "scaled to " + directive.value
                             : directive.target == fleet::Target::queue ? "queue paused"
                                                                        : "paused";
    return what + (directive.by.empty() ? "" : " by " + directive.by) + " " + short_duration(now - directive.at) +
           " ago";
  });
}

std::vector<JobSummary> summarize_jobs(std::vector<JobSummary> files, const fleet::FleetView& view,
                                       const fleet::SteeringView& steering) {
  std::map<Key, JobSummary> found;
  const auto job_of = [&found](const std::string& name, const std::string& queue, bool dead_letters) -> JobSummary& {
    JobSummary& summary = found[{name, {queue, dead_letters}}];
    summary.name = name;
    summary.queue = queue;
    summary.dead_letters = dead_letters;
    return summary;
  };
  for (JobSummary& file : files) {
    job_of(file.name, file.queue, file.dead_letters) = std::move(file);
  }
  for (const fleet::KnownHost& host : view.hosts) {
    for (const fleet::JobRecord& job : host.record.jobs) {
      if (host.pulse != fleet::Pulse::silent) {
        add(job_of(job.name, job.queue, job.dead_letters), host, job);
      }
    }
  }
  std::vector<JobSummary> jobs;
  for (auto& [key, summary] : found) {
    // Their records are of different moments, between which parts of the limit change hands.
    summary.rate = summary.shared_rate > 0 ? std::min(summary.rate, summary.shared_rate) : summary.rate;
    std::copy_if(steering.given.begin(), steering.given.end(), std::back_inserter(summary.wishes),
                 [job = &summary](const fleet::Given& given) { return is_about(given.directive, *job); });
    jobs.push_back(std::move(summary));
  }
  return jobs;
}

void keep_queue(const std::string& queue, std::vector<fleet::KnownHost>& hosts) {
  std::erase_if(hosts, [&queue](const fleet::KnownHost& host) {
    const auto& jobs = host.record.jobs;
    return !queue.empty() && std::none_of(jobs.begin(), jobs.end(), [&queue](const fleet::JobRecord& job) {
      return fleet::draws_from(job.queue, queue);
    });
  });
}

void keep_queue(const std::string& queue, std::vector<JobSummary>& jobs) {
  std::erase_if(jobs,
                [&queue](const JobSummary& job) { return !queue.empty() && !fleet::draws_from(job.queue, queue); });
}

void KnownNames::add_job(const std::string& name, const std::string& queues) {
  for (const std::string& queue : fleet::queues_in(queues)) {
    add_queue(queue);
  }
  jobs_[name].insert(queues);
}

void KnownNames::add(const fleet::FleetView& view) {
  for (const fleet::KnownHost& host : view.hosts) {
    // Who has ended is known by its name, and suggested to nobody.
    if (host.pulse != fleet::Pulse::silent || (host.record.state != fleet::HostState::ended && host.silence.empty())) {
      labels_.insert(host.record.label());
    }
    host_words_.insert({host.record.name, host.record.label(), host.record.instance});
    for (const fleet::JobRecord& job : host.record.jobs) {
      add_job(job.name, job.queue);
    }
  }
}

void KnownNames::add(const fleet::SteeringView& view) {
  for (const fleet::Given& given : view.given) {
    if (given.directive.target == fleet::Target::queue) {
      add_queue(given.directive.name);
    } else if (given.directive.target == fleet::Target::job) {
      jobs_.try_emplace(given.directive.name, Words{""});
    }
  }
}

Words KnownNames::job_names() const {
  Words names;
  for (const auto& [name, queues] : jobs_) {
    names.insert(name);
  }
  return names;
}

Result<Directive> KnownNames::queue(Wish wish, const std::string& word) const {
  return directive_for(wish, Target::queue, word, queues_.contains(word), queues_, "queue");
}

Result<Directive> KnownNames::job(Wish wish, const std::string& word) const {
  return directive_for(wish, Target::job, word, jobs_.contains(word), job_names(), "job");
}

Result<Directive> KnownNames::thing(Wish wish, const std::string& word) const {
  const bool as_job = jobs_.contains(word);
  const bool as_queue = queues_.contains(word);
  const bool same = std::all_of(jobs_.begin(), jobs_.end(), [&word](const auto& job) {
    return std::all_of(job.second.begin(), job.second.end(),
                       [&](const std::string& queues) { return (job.first == word) == (queues == word); });
  });
  if (as_queue && as_job && !same) {
    return Error(ErrorCode::conflict, "\"" + word +
                                          "\" is a job and a queue that is not that job's alone; write --job " + word +
                                          " or --queue " + word);
  }
  Words known = job_names();
  known.insert(queues_.begin(), queues_.end());
  return directive_for(wish, as_queue ? Target::queue : Target::job, word, as_queue || as_job, known, "job or queue");
}

Result<Directive> KnownNames::host(Wish wish, const std::string& word) const {
  Words known = labels_;
  for (const std::string& label : labels_) {
    known.insert(label.substr(0, label.rfind(':')));
  }
  return directive_for(wish, Target::host, word, host_words_.contains(word), known, "host");
}

std::string KnownNames::queue_of_job(const std::string& name) const {
  const auto found = jobs_.find(name);
  return found != jobs_.end() && found->second.size() == 1 ? *found->second.begin() : std::string();
}

}  // namespace sluice::operate
