#include "config/config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace sluice::config {

std::string ConfigError::text() const {
  if (place.line == 0) {
    return place.file.empty() ? message : place.file + ": " + message;
  }
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + message;
}

QueueConfig HostConfig::queue(const std::string& queue_name) const {
  const auto found = queues.find(queue_name);
  if (found != queues.end()) {
    QueueConfig result = found->second;
    result.table = result.table.empty() ? queue_name : result.table;
    return result;
  }
  // Ours lies in our own layout; a table of DynamoMQ's is one that somebody has named.
  const bool leased = store.kind == StoreKind::dynamodb;
  return {.table = leased ? kLeasedTable : queue_name, .layout = leased ? Layout::leased : Layout::dynamomq};
}

std::vector<std::string> HostConfig::store_names() const {
  std::vector<std::string> names{""};
  for (const auto& [store_name, settings] : stores) {
    names.push_back(store_name);
  }
  return names;
}

const StoreConfig& HostConfig::store_of(const std::string& queue_name) const {
  const auto named = stores.find(queue(queue_name).store);
  return named == stores.end() ? store : named->second;
}

bool HostConfig::leased(const std::string& queue_name) const {
  return !outbox_named(queue_name) && store_of(queue_name).kind == StoreKind::dynamodb &&
         queue(queue_name).layout == Layout::leased;
}

const OutboxConfig* HostConfig::outbox(const std::string& queue_name) const {
  const auto outbox_name = outbox_named(queue_name);
  const auto found = outbox_name ? outboxes.find(*outbox_name) : outboxes.end();
  return found == outboxes.end() ? nullptr : &found->second;
}

bool JobConfig::same_job(const JobConfig& other) const {
  JobConfig same_words = other;
  same_words.file = file;
  same_words.rate_text = rate_text;
  same_words.weighs_priorities = weighs_priorities;
  return *this == same_words;
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

namespace {

/// Collects what differs.
class Differences {
 public:
  template <typename Value>
  void compare(const std::string& key, const Value& before, const Value& after) {
    if (!(before == after)) {
      keys_.push_back(key);
    }
  }

  void compare_stores(const std::string& section, const std::string& dynamodb, const StoreConfig& before,
                      const StoreConfig& after) {
    compare(section + ".kind", before.kind, after.kind);
    compare(section + ".path", before.path, after.path);
    compare(dynamodb + ".region", before.region, after.region);
    compare(dynamodb + ".endpoint", before.endpoint, after.endpoint);
  }

  void compare_queues(const std::string& section, const QueueConfig& before, const QueueConfig& after) {
    compare(section + ".store", before.store, after.store);
    compare(section + ".table", before.table, after.table);
    compare(section + ".index", before.index, after.index);
    compare(section + ".visibility_timeout", before.visibility_timeout, after.visibility_timeout);
    compare(section + ".dedup", before.dedup_by_content, after.dedup_by_content);
    compare(section + ".dedup_window", before.dedup_window, after.dedup_window);
    compare(section + ".max_in_flight", before.max_in_flight, after.max_in_flight);
    compare(section + ".max_lease", before.max_lease, after.max_lease);
    compare(section + ".max_write_units", before.max_write_units, after.max_write_units);
    compare(section + ".max_read_units", before.max_read_units, after.max_read_units);
  }

  void compare_senders(const HostConfig& before, const HostConfig& after) {
    const auto of = [](const HostConfig& host, SenderKind kind) {
      std::optional<LogSender> found;
      for (const LogSender& sender : host.log_senders) {
        found = sender.kind == kind ? std::optional(sender) : found;
      }
      return found;
    };
    for (const auto& [kind, section] :
         {std::pair(SenderKind::rollbar, "log.rollbar"), std::pair(SenderKind::sentry, "log.sentry")}) {
      compare(section, of(before, kind), of(after, kind));
    }
    compare("log.datadog", std::pair(before.datadog, of(before, SenderKind::datadog)),
            std::pair(after.datadog, of(after, SenderKind::datadog)));
  }

  std::vector<std::string> take() { return std::move(keys_); }

 private:
  std::vector<std::string> keys_;
};

template <typename Map>
std::set<std::string> names_of(const Map& before, const Map& after) {
  std::set<std::string> names;
  for (const Map* map : {&before, &after}) {
    for (const auto& [name, content] : *map) {
      names.insert(name);
    }
  }
  return names;
}

}  // namespace

std::set<std::string> queue_names(const HostConfig& host, const std::vector<JobConfig>& jobs) {
  std::set<std::string> names;
  for (const auto& [name, settings] : host.queues) {
    names.insert(name);
  }
  for (const auto& [name, outbox] : host.outboxes) {
    names.insert(std::string(kOutboxPrefix) + name);
  }
  for (const JobConfig& job : jobs) {
    names.insert(job.queue);
    for (const WeightedQueue& queue : job.queues) {
      names.insert(queue.name);
    }
    for (const ScheduleConfig& schedule : job.schedules) {
      names.insert(schedule.queue.empty() ? job.queue : schedule.queue);
    }
  }
  return names;
}

std::vector<std::string> changed_keys(const HostConfig& before, const HostConfig& after) {
  Differences found;
  found.compare("host.name", before.name, after.name);
  found.compare("host.jobs", before.jobs, after.jobs);
  found.compare("host.plugin_dirs", before.plugin_dirs, after.plugin_dirs);
  found.compare("host.drain_timeout", before.drain_timeout, after.drain_timeout);
  found.compare("host.state_dir", before.state_dir, after.state_dir);
  found.compare("log.level", before.log_level, after.log_level);
  found.compare("log.format", before.log_format, after.log_format);
  found.compare_senders(before, after);
  found.compare("tracing", before.tracing, after.tracing);
  found.compare("http.listen", before.http_listen, after.http_listen);
  found.compare("wake.listen", before.wake.listen, after.wake.listen);
  found.compare("wake.announce", before.wake.announce, after.wake.announce);
  found.compare("wake.secret", before.wake.secret, after.wake.secret);
  found.compare("wake.ring", before.wake.ring, after.wake.ring);
  found.compare("http.depth_interval", before.depth_interval, after.depth_interval);
  found.compare("cost", before.cost, after.cost);
  found.compare_stores("store", "dynamodb", before.store, after.store);
  for (const std::string& name : names_of(before.stores, after.stores)) {
    const auto old = before.stores.find(name);
    const auto now = after.stores.find(name);
    if (old == before.stores.end() || now == after.stores.end()) {
      found.compare("stores." + name, true, false);
    } else {
      found.compare_stores("stores." + name, "stores." + name, old->second, now->second);
    }
  }
  found.compare("queues.create", before.create_queues, after.create_queues);
  for (const std::string& name : names_of(before.queues, after.queues)) {
    found.compare_queues("queues." + name, before.queue(name), after.queue(name));
  }
  for (const std::string& name : names_of(before.outboxes, after.outboxes)) {
    const auto old = before.outboxes.find(name);
    const auto now = after.outboxes.find(name);
    const bool both = old != before.outboxes.end() && now != after.outboxes.end();
    found.compare("outbox." + name, true, both && old->second == now->second);
  }
  return found.take();
}

namespace {

struct Unit {
  std::string_view name;
  std::int64_t count;  ///< of nanoseconds, or of bytes
};

constexpr std::array<Unit, 7> kTimes{{{"d", 86'400'000'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"s", 1'000'000'000},
                                      {"ms", 1'000'000},
                                      {"us", 1'000},
                                      {"ns", 1}}};
constexpr std::array<Unit, 3> kSizes{{{"GiB", 1LL << 30U}, {"MiB", 1LL << 20U}, {"KiB", 1LL << 10U}}};

/// A whole number of one of the units; nothing for anything else, or what does not fit.
std::optional<std::int64_t> parse(std::string_view text, std::span<const Unit> units) {
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, count);
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : units) {
    const auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / unit.count);
    if (code == std::errc() && unit.name == name && count <= most) {
      return static_cast<std::int64_t>(count) * unit.count;
    }
  }
  return std::nullopt;
}

/// In the largest unit that it is a whole number of; empty: it is of none.
std::string format(std::int64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.count == 0) {
      return std::to_string(value / unit.count) + std::string(unit.name);
    }
  }
  return {};
}

char folded(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' ? '-' : c; }

/// Edit distance in which a swap of neighbours counts as one, and case, '-' and '_' do not count.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = folded(a[i - 1]) == folded(b[j - 1]) ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1])) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

/// How many edits still count as a slip of the hand.
std::size_t tolerance(const std::string& candidate) { return candidate.size() < 3 ? 0 : (candidate.size() + 3) / 4; }

}  // namespace

std::optional<Duration> parse_duration(const std::string& text) {
  const std::optional<std::int64_t> nanoseconds = parse(text, kTimes);
  return nanoseconds ? std::optional(Duration(*nanoseconds)) : std::nullopt;
}

std::string format_duration(Duration duration) {
  return duration == Duration::zero() ? "0s" : format(duration.count(), kTimes);
}

std::optional<std::uint64_t> parse_size(const std::string& text) {
  const std::optional<std::int64_t> bytes = parse(text, kSizes);
  return bytes && *bytes > 0 ? std::optional(static_cast<std::uint64_t>(*bytes)) : std::nullopt;
}

std::string format_size(std::uint64_t bytes) {
  const std::string whole = format(static_cast<std::int64_t>(bytes), kSizes);
  return whole.empty() ? std::to_string(bytes) + " bytes" : whole;
}

std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t allowed = tolerance(candidate);
    if (word.size() > candidate.size() + allowed || candidate.size() > word.size() + allowed) {
      continue;  // Also keeps a monstrous word from costing anything.
    }
    const std::size_t edits = distance(word, candidate);
    if (edits <= allowed && (!best || edits < best_distance)) {
      best = candidate;
      best_distance = edits;
    }
  }
  return best;
}

}  // namespace sluice::config
