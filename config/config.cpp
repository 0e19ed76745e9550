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

#include "base/ranges.hpp"
#include "config/document.hpp"
#include "config/reader.hpp"

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
  std::vector<std::string> names = names_of(stores);
  names.insert(names.begin(), "");
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

std::vector<std::string> JobConfig::queue_names() const {
  return queues.empty() ? std::vector{queue} : mapped(queues, &WeightedQueue::name);
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

/// Be it in other words, as "60s" and "1m", 1 and 1.0.
bool same(const Value& one, const Value& other) {
  const auto* text = std::get_if<std::string>(&one.content);
  const auto* other_text = std::get_if<std::string>(&other.content);
  if (text != nullptr && other_text != nullptr) {
    const auto duration = parse_duration(*text);
    return *text == *other_text || (duration && duration == parse_duration(*other_text));
  }
  const auto number = number_of(one);
  return one.content == other.content || (number && number == number_of(other));
}

/// Adds the keys of what differs: of a value, or of a table as a whole where there is none on the other side. `prefix`:
/// "queues.orders."; where it is empty, a section that is not there is one without keys.
void add_differences(const Table& before, const Table& after, const std::string& prefix,
                     std::vector<std::string>& keys) {
  static const Value kAbsent{{}, BrokenValue{}};
  static const Table kNone;
  std::map<std::string, std::pair<const Value*, const Value*>> pairs;
  for (const Member& member : before) {
    pairs[member.key] = {&member.value, &kAbsent};
  }
  for (const Member& member : after) {
    pairs.try_emplace(member.key, &kAbsent, nullptr).first->second.second = &member.value;
  }
  for (const auto& [key, pair] : pairs) {
    const auto* table = std::get_if<Table>(&pair.first->content);
    const auto* other = std::get_if<Table>(&pair.second->content);
    if (prefix.empty() || (table != nullptr && other != nullptr)) {
      add_differences(table == nullptr ? kNone : *table, other == nullptr ? kNone : *other, prefix + key + ".", keys);
    } else if (!same(*pair.first, *pair.second)) {
      keys.push_back(prefix + key);
    }
  }
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
    for (std::string& queue : job.queue_names()) {
      names.insert(std::move(queue));
    }
    for (const ScheduleConfig& schedule : job.schedules) {
      names.insert(schedule.queue);
    }
  }
  return names;
}

std::vector<std::string> changed_keys(const HostConfig& before, const HostConfig& after) {
  std::vector<std::string> keys;
  add_differences(before.document ? before.document->root : Table(), after.document ? after.document->root : Table(),
                  "", keys);
  return keys;
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
