#include "host/fleet/host_record.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "host/fleet/json_line.hpp"

namespace sluice::fleet {
namespace {

constexpr std::array<std::string_view, 3> kStates{"starting", "running", "draining"};

std::string write(const RunningRecord& running) {
  JsonLine line;
  line.text("message", running.message);
  line.text("job", running.job);
  line.text("queue", running.queue);
  line.text("handler", running.handler);
  line.number("worker", running.worker);
  line.number("attempt", running.attempt);
  line.time("since", running.since);
  line.time("times_out_at", running.times_out_at);
  line.time("leased_until", running.leased_until);
  line.flag("stuck", running.stuck);
  line.flag("cancelled", running.cancelled);
  return std::move(line).finish();
}

bool read(JsonReader& json, RunningRecord& running) {
  return read_members(json, [&](const std::string& name) {
    return name == "message"        ? read_into(json, running.message)
           : name == "job"          ? read_into(json, running.job)
           : name == "queue"        ? read_into(json, running.queue)
           : name == "handler"      ? read_into(json, running.handler)
           : name == "worker"       ? read_into(json, running.worker)
           : name == "attempt"      ? read_into(json, running.attempt)
           : name == "since"        ? read_into(json, running.since)
           : name == "times_out_at" ? read_into(json, running.times_out_at)
           : name == "leased_until" ? read_into(json, running.leased_until)
           : name == "stuck"        ? read_into(json, running.stuck)
           : name == "cancelled"    ? read_into(json, running.cancelled)
                                    : json.skip();
  });
}

std::string write(const JobRecord& job) {
  JsonLine line;
  line.text("name", job.name);
  line.text("queue", job.queue);
  line.flag("dlq", job.dead_letters);
  line.text("handler", job.handler);
  line.text("plugin", job.plugin);
  line.text("plugin_version", job.plugin_version);
  line.number("concurrency", job.concurrency);
  line.number("file_concurrency", job.file_concurrency);
  line.flag("paused", job.paused);
  line.flag("held_by_budget", job.held_by_budget);
  line.number("running", job.running);
  line.number("stuck", job.stuck);
  line.number("claimed", static_cast<std::int64_t>(job.claimed));
  line.number("done", static_cast<std::int64_t>(job.done));
  line.number("retried", static_cast<std::int64_t>(job.retried));
  line.number("rejected", static_cast<std::int64_t>(job.rejected));
  line.number("timed_out", static_cast<std::int64_t>(job.timed_out));
  line.rate("claimed_rate", job.pace.claimed);
  line.rate("done_rate", job.pace.done);
  line.rate("failed_rate", job.pace.failed);
  line.span("mean_ms", job.pace.mean);
  line.span("p95_ms", job.pace.p95);
  line.span("slowest_ms", job.pace.slowest);
  return std::move(line).finish();
}

bool read_counts(JsonReader& json, const std::string& name, JobRecord& job) {
  return name == "running"        ? read_into(json, job.running)
         : name == "stuck"        ? read_into(json, job.stuck)
         : name == "claimed"      ? read_into(json, job.claimed)
         : name == "done"         ? read_into(json, job.done)
         : name == "retried"      ? read_into(json, job.retried)
         : name == "rejected"     ? read_into(json, job.rejected)
         : name == "timed_out"    ? read_into(json, job.timed_out)
         : name == "claimed_rate" ? read_into(json, job.pace.claimed)
         : name == "done_rate"    ? read_into(json, job.pace.done)
         : name == "failed_rate"  ? read_into(json, job.pace.failed)
         : name == "mean_ms"      ? read_into(json, job.pace.mean)
         : name == "p95_ms"       ? read_into(json, job.pace.p95)
         : name == "slowest_ms"   ? read_into(json, job.pace.slowest)
                                  : json.skip();
}

bool read(JsonReader& json, JobRecord& job) {
  return read_members(json, [&](const std::string& name) {
    return name == "name"               ? read_into(json, job.name)
           : name == "queue"            ? read_into(json, job.queue)
           : name == "dlq"              ? read_into(json, job.dead_letters)
           : name == "handler"          ? read_into(json, job.handler)
           : name == "plugin"           ? read_into(json, job.plugin)
           : name == "plugin_version"   ? read_into(json, job.plugin_version)
           : name == "concurrency"      ? read_into(json, job.concurrency)
           : name == "file_concurrency" ? read_into(json, job.file_concurrency)
           : name == "paused"           ? read_into(json, job.paused)
           : name == "held_by_budget"   ? read_into(json, job.held_by_budget)
                                        : read_counts(json, name, job);
  });
}

void write_usage(JsonLine& line, const UsageRecord& usage) {
  line.rate("requests", usage.requests);
  line.rate("rcu", usage.read_units);
  line.rate("wcu", usage.write_units);
  line.rate("messages", usage.messages);
  line.rate("kib", usage.kib);
  line.rate("indexed_kib", usage.indexed_kib);
  line.rate("message_s", usage.message_seconds);
  line.rate("kib_s", usage.kib_seconds);
}

bool read_usage(JsonReader& json, const std::string& name, UsageRecord& usage) {
  return name == "requests"      ? read_into(json, usage.requests)
         : name == "rcu"         ? read_into(json, usage.read_units)
         : name == "wcu"         ? read_into(json, usage.write_units)
         : name == "messages"    ? read_into(json, usage.messages)
         : name == "kib"         ? read_into(json, usage.kib)
         : name == "indexed_kib" ? read_into(json, usage.indexed_kib)
         : name == "message_s"   ? read_into(json, usage.message_seconds)
         : name == "kib_s"       ? read_into(json, usage.kib_seconds)
                                 : json.skip();
}

std::string write(const SpentRecord& spent) {
  JsonLine line;
  line.text("queue", spent.queue);
  line.text("job", spent.job);
  write_usage(line, spent.usage);
  return std::move(line).finish();
}

bool read(JsonReader& json, SpentRecord& spent) {
  return read_members(json, [&](const std::string& name) {
    return name == "queue" ? read_into(json, spent.queue)
           : name == "job" ? read_into(json, spent.job)
                           : read_usage(json, name, spent.usage);
  });
}

std::string write(const ValueRecord& value) {
  JsonLine line;
  line.text("value", value.value);
  write_usage(line, value.usage);
  return std::move(line).finish();
}

bool read(JsonReader& json, ValueRecord& value) {
  return read_members(json, [&](const std::string& name) {
    return name == "value" ? read_into(json, value.value) : read_usage(json, name, value.usage);
  });
}

std::string write(const Answer& answer) {
  JsonLine line;
  line.text("directive", answer.directive);
  line.flag("done", answer.done);
  line.text("text", answer.text);
  return std::move(line).finish();
}

bool read(JsonReader& json, Answer& answer) {
  return read_members(json, [&](const std::string& name) {
    return name == "directive" ? read_into(json, answer.directive)
           : name == "done"    ? read_into(json, answer.done)
           : name == "text"    ? read_into(json, answer.text)
                               : json.skip();
  });
}

template <typename Element>
bool read(JsonReader& json, std::vector<Element>& all) {
  return read_elements(json, [&] { read(json, all.emplace_back()); });
}

/// An array of what fits into `room` bytes of it.
class FittingArray {
 public:
  explicit FittingArray(std::size_t room) : room_(room) {}

  /// False: it does not fit, nor does anything after it.
  bool add(const std::string& element) {
    if (out_.size() + element.size() + 2 > room_) {
      return false;
    }
    out_ += (out_.size() > 1 ? "," : "") + element;
    return true;
  }
  std::string finish() && { return out_ + "]"; }

 private:
  const std::size_t room_;
  std::string out_ = "[";
};

bool read_state(JsonReader& json, HostState& state) {
  std::string word;
  const bool is_read = read_into(json, word);
  const auto found = std::find(kStates.begin(), kStates.end(), word);
  if (found != kStates.end()) {
    state = static_cast<HostState>(found - kStates.begin());
  }
  return is_read;
}

bool read_lists(JsonReader& json, const std::string& name, HostRecord& record) {
  return name == "jobs"            ? read(json, record.jobs)
         : name == "answers"       ? read(json, record.answers)
         : name == "running"       ? read(json, record.running)
         : name == "spent"         ? read(json, record.spent)
         : name == "spent_in_ms"   ? read_into(json, record.spent_in)
         : name == "attribute"     ? read_into(json, record.attribute)
         : name == "values"        ? read(json, record.values)
         : name == "jobs_left_out" ? read_into(json, record.jobs_left_out)
         : name == "running_total" ? read_into(json, record.running_total)
         : name == "detailed"      ? read_into(json, record.detailed)
                                   : json.skip();
}

bool read_member(JsonReader& json, const std::string& name, HostRecord& record) {
  return name == "instance"         ? read_into(json, record.instance)
         : name == "name"           ? read_into(json, record.name)
         : name == "pid"            ? read_into(json, record.pid)
         : name == "version"        ? read_into(json, record.version)
         : name == "address"        ? read_into(json, record.address)
         : name == "host_file"      ? read_into(json, record.host_file)
         : name == "state"          ? read_state(json, record.state)
         : name == "started_at"     ? read_into(json, record.started_at)
         : name == "every_ms"       ? read_into(json, record.every)
         : name == "seen"           ? read_into(json, record.seen)
         : name == "log_level"      ? read_into(json, record.log_level)
         : name == "file_log_level" ? read_into(json, record.file_log_level)
                                    : read_lists(json, name, record);
}

/// The newest that fit, in their order.
std::string write_answers(const std::vector<Answer>& answers, std::size_t room) {
  std::vector<std::string> kept;
  std::size_t bytes = 2;
  for (auto answer = answers.rbegin(); answer != answers.rend(); ++answer) {
    std::string text = write(*answer);
    bytes += text.size() + 1;
    if (bytes > room) {
      break;
    }
    kept.push_back(std::move(text));
  }
  FittingArray array(room);
  for (auto text = kept.rbegin(); text != kept.rend(); ++text) {
    array.add(*text);
  }
  return std::move(array).finish();
}

/// The first of them that fit into `room`, which shrinks by them.
template <typename Element>
std::string write_first(const std::vector<Element>& all, std::size_t& room) {
  FittingArray array(room);
  for (const Element& one : all) {
    if (!array.add(write(one))) {
      break;
    }
  }
  std::string text = std::move(array).finish();
  room -= std::min(room, text.size());
  return text;
}

}  // namespace

std::string_view to_string(HostState state) { return kStates.at(static_cast<std::size_t>(state)); }

bool HostRecord::is_called(std::string_view word) const { return word == name || word == instance || word == label(); }

std::string write_record(const HostRecord& record, std::size_t most_bytes) {
  // What the brackets, names and counts of the lists take.
  constexpr std::size_t kFrame = 128;
  JsonLine line;
  line.text("instance", record.instance);
  line.text("name", record.name);
  line.number("pid", record.pid);
  line.text("version", record.version);
  line.text("address", record.address);
  line.text("host_file", record.host_file);
  line.text("state", to_string(record.state));
  line.time("started_at", record.started_at);
  line.span("every_ms", record.every);
  line.number("seen", record.seen);
  line.text("log_level", record.log_level);
  line.text("file_log_level", record.file_log_level);
  line.number("running_total", record.running_total);
  line.flag("detailed", record.detailed);
  if (!record.spent.empty()) {
    line.span("spent_in_ms", record.spent_in);
    line.text("attribute", record.attribute);
  }
  std::size_t room = most_bytes - std::min(most_bytes, line.size() + kFrame);

  FittingArray jobs(room);
  std::size_t told = 0;
  while (told < record.jobs.size() && jobs.add(write(record.jobs[told]))) {
    ++told;
  }
  line.number("jobs_left_out", static_cast<std::int64_t>(record.jobs.size() - told + record.jobs_left_out));
  const std::string jobs_text = std::move(jobs).finish();
  room -= std::min(room, jobs_text.size());
  line.raw("jobs", jobs_text);

  const std::string answers_text = write_answers(record.answers, room);
  room -= std::min(room, answers_text.size());
  line.raw("answers", answers_text);

  if (!record.spent.empty()) {
    line.raw("spent", write_first(record.spent, room));
  }
  if (!record.values.empty()) {
    line.raw("values", write_first(record.values, room));
  }
  line.raw("running", write_first(record.running, room));
  return std::move(line).finish();
}

Result<HostRecord> read_record(std::string_view text) {
  HostRecord record;
  SLUICE_PASS_ON(read_object(text, "the record of a host", [&](JsonReader& json, const std::string& name) {
    return read_member(json, name, record);
  }));
  return record;
}

std::vector<std::string> queues_in(const std::string& text) {
  std::vector<std::string> queues;
  std::size_t from = 0;
  while (true) {
    const std::size_t comma = text.find(',', from);
    queues.push_back(text.substr(from, comma - from));
    if (comma == std::string::npos) {
      return queues;
    }
    from = comma + 1;
  }
}

bool draws_from(const std::string& text, const std::string& queue) {
  const std::vector<std::string> queues = queues_in(text);
  return std::find(queues.begin(), queues.end(), queue) != queues.end();
}

}  // namespace sluice::fleet
