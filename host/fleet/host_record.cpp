#include "host/fleet/host_record.hpp"

#include <array>
#include <boost/algorithm/string/split.hpp>

#include "base/ranges.hpp"
#include "host/fleet/notice_json.hpp"

namespace sluice::fleet {

template <Described<RunningRecord> Record, typename Visit>
void describe(Record& running, Visit visit) {
  visit("message", running.message);
  visit("job", running.job);
  visit("queue", running.queue);
  visit("handler", running.handler);
  visit("worker", running.worker);
  visit("attempt", running.attempt);
  visit("since", running.since);
  visit("times_out_at", running.times_out_at);
  visit("leased_until", running.leased_until);
  visit("stuck", running.stuck);
  visit("cancelled", running.cancelled);
}

template <Described<JobRecord> Record, typename Visit>
void describe(Record& job, Visit visit) {
  visit("name", job.name);
  visit("queue", job.queue);
  visit("dlq", job.dead_letters);
  visit("handler", job.handler);
  visit("plugin", job.plugin);
  visit("plugin_version", job.plugin_version);
  visit("concurrency", job.concurrency);
  visit("file_concurrency", job.file_concurrency);
  visit("paused", job.paused);
  visit("held_by_budget", job.held_by_budget);
  visit("cut_off", job.cut_off);
  visit("rate_limit", job.rate_limit);
  visit("rate", job.rate);
  visit("running", job.running);
  visit("stuck", job.stuck);
  visit("claimed", job.claimed);
  visit("done", job.done);
  visit("retried", job.retried);
  visit("rejected", job.rejected);
  visit("timed_out", job.timed_out);
  visit("claimed_rate", job.pace.claimed);
  visit("done_rate", job.pace.done);
  visit("failed_rate", job.pace.failed);
  visit("mean_ms", job.pace.mean);
  visit("p95_ms", job.pace.p95);
  visit("slowest_ms", job.pace.slowest);
  visit("over_ms", job.pace.over);
}

template <Described<cost::Usage> Record, typename Visit>
void describe(Record& usage, Visit visit) {
  visit("requests", usage.spent.requests);
  visit("rcu", usage.spent.read_units);
  visit("wcu", usage.spent.write_units);
  visit("messages", usage.messages);
  visit("kib", usage.kib);
  visit("indexed_kib", usage.indexed_kib);
  visit("message_s", usage.message_seconds);
  visit("kib_s", usage.kib_seconds);
}

template <Described<SpentRecord> Record, typename Visit>
void describe(Record& spent, Visit visit) {
  visit("queue", spent.queue);
  visit("job", spent.job);
  describe(spent.usage, visit);
}

template <Described<cost::TopValues::Named> Record, typename Visit>
void describe(Record& value, Visit visit) {
  visit("value", value.value);
  describe(value.usage, visit);
}

template <Described<Answer> Record, typename Visit>
void describe(Record& answer, Visit visit) {
  visit("directive", answer.directive);
  visit("done", answer.done);
  visit("text", answer.text);
}

/// All but what depends on the room that is left.
template <Described<HostRecord> Record, typename Visit>
void describe_itself(Record& record, Visit visit) {
  visit("instance", record.instance);
  visit("name", record.name);
  visit("pid", record.pid);
  visit("process", record.process);
  visit("version", record.version);
  visit("address", record.address);
  visit("host_file", record.host_file);
  visit("state", record.state);
  visit("unhealthy", record.unhealthy);
  visit("not_ready", record.not_ready);
  visit("left_behind", record.left_behind);
  visit("started_at", record.started_at);
  visit("up_ms", record.up);
  visit("every_ms", record.every);
  visit("seen", record.seen);
  visit("log_level", record.log_level);
  visit("file_log_level", record.file_log_level);
  visit("running_total", record.running_total);
  visit("detailed", record.detailed);
  visit("spent_in_ms", record.spent_in);
  visit("attribute", record.attribute);
}

template <Described<HostRecord> Record, typename Visit>
void describe(Record& record, Visit visit) {
  describe_itself(record, visit);
  visit("jobs_left_out", record.jobs_left_out);
  visit("jobs", record.jobs);
  visit("answers", record.answers);
  visit("spent", record.spent);
  visit("values", record.values);
  visit("running", record.running);
}

namespace {

constexpr std::array<std::string_view, 4> kHostStates{"starting", "running", "draining", "ended"};

enum class Keep { first, last };

/// Takes away the last records, or the first, that do not fit into `room` bytes; how many. `room` shrinks by the
/// others.
template <typename Record>
std::uint32_t fit(std::vector<Record>& all, Keep keep, std::size_t& room) {
  std::size_t kept = 0;
  for (; kept < all.size(); ++kept) {
    const auto& next = keep == Keep::first ? all[kept] : all[all.size() - 1 - kept];
    const std::size_t bytes = write_described(next).size() + 1;
    if (bytes > room) {
      break;
    }
    room -= bytes;
  }
  const auto gone = static_cast<std::ptrdiff_t>(all.size() - kept);
  all.erase(keep == Keep::first ? all.end() - gone : all.begin(), keep == Keep::first ? all.end() : all.begin() + gone);
  return static_cast<std::uint32_t>(gone);
}

}  // namespace

bool read_into(JsonReader& json, HostState& state) { return read_word(json, kHostStates, state); }

std::string_view to_string(HostState state) { return kHostStates.at(static_cast<std::size_t>(state)); }

std::string instance_of(const std::string& name, std::int64_t pid, const std::string& incarnation) {
  return name + ":" + std::to_string(pid) + ":" + incarnation.substr(incarnation.rfind('/') + 1);
}

std::string write_record(const HostRecord& record, std::size_t most_bytes) {
  // What the brackets, names and counts of the lists take.
  constexpr std::size_t kFrame = 128;
  std::string whole = write_described(record);
  if (whole.size() + kFrame <= most_bytes) {
    return whole;
  }
  NoticeWriter line;
  describe_itself(record, [&line](std::string_view name, const auto& member) { line.put(name, member); });
  std::size_t room = most_bytes - std::min(most_bytes, line.size() + kFrame);
  HostRecord cut = record;
  cut.jobs_left_out += fit(cut.jobs, Keep::first, room);
  fit(cut.answers, Keep::last, room);
  fit(cut.spent, Keep::first, room);
  fit(cut.values, Keep::first, room);
  fit(cut.running, Keep::first, room);
  return write_described(cut);
}

Result<HostRecord> read_record(std::string_view text) {
  return read_described<HostRecord>(text, "the record of a host");
}

std::vector<std::string> queues_in(const std::string& text) {
  std::vector<std::string> queues;
  boost::algorithm::split(queues, text, [](char c) { return c == ','; });
  return queues;
}

bool draws_from(const std::string& text, const std::string& queue) { return contains(queues_in(text), queue); }

}  // namespace sluice::fleet
