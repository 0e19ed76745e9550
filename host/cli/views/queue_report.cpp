#include "host/cli/views/queue_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/timestamp.hpp"
#include "host/cli/views/message_view.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kFirstIds = 100;
constexpr std::size_t kErrorGroups = 20;
constexpr std::size_t kWidestError = 80;
constexpr std::size_t kWidestId = 36;  // a UUID
/// A look at a long half is many requests; each has its own time-out in the store.
constexpr Deadline kNoDeadline = Deadline::never();

void write_ids(JsonWriter& json, std::string_view name, const std::vector<std::string>& ids) {
  json.key(name);
  json.begin_array();
  for (const std::string& id : ids) {
    json.value(id);
  }
  json.end_array();
}

std::string one_decimal(double number) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, 1);
  return {text.data(), end.ptr};
}

void write_counts(JsonWriter& json, std::string_view name, const std::map<std::string, std::uint64_t>& counts) {
  json.key(name);
  json.begin_object();
  for (const auto& [who, count] : counts) {
    json.member(who, count);
  }
  json.end_object();
}

/// "[2, 0, 0]", on one line even where everything else has lines of its own.
template <std::size_t size>
std::string listed(const std::array<std::uint64_t, size>& counts) {
  std::string text = "[";
  for (const std::uint64_t count : counts) {
    text += (text.size() > 1 ? ", " : "") + std::to_string(count);
  }
  return text + "]";
}

void write_group(JsonWriter& json, const queue::ErrorGroup& group) {
  json.begin_object();
  json.member("error", group.error);
  json.member("count", group.count);
  json.member("example_id", group.example);
  json.member("last_failed_at", format_timestamp(group.last_failed_at));
  json.member("first_failed_at", format_timestamp(group.first_failed_at));
  json.member("fingerprint", group.fingerprint);
  json.member("pattern", group.pattern);
  json.key("per_hour");
  json.word(listed(group.per_hour));
  write_counts(json, "handlers", group.handlers);
  write_counts(json, "hosts", group.hosts);
  json.end_object();
}

/// "billing" or, where there are others, "billing +2".
std::string most_frequent(const std::map<std::string, std::uint64_t>& counts) {
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end()) {
    return "-";
  }
  return most->first + (counts.size() > 1 ? " +" + std::to_string(counts.size() - 1) : "");
}

}  // namespace

std::optional<Duration> QueueReport::oldest_ready(WallTime now) const {
  if (!standard.counts.oldest_ready) {
    return std::nullopt;
  }
  return std::max(Duration(now - *standard.counts.oldest_ready), Duration::zero());
}

OrExit<QueueReport> read_report(QueueSession& session, const std::string& queue, Halves halves, bool exact) {
  QueueReport report;
  report.queue = queue;
  auto opened = session.queues().open_operator(queue);
  if (opened.has_error()) {
    return Exit::failure(session.place().explained(opened.error(), queue));
  }
  const auto before = session.cost();
  if (halves == Halves::both) {
    auto standard = (*opened)->overview(
        {.half = queue::Half::standard, .ids = kFirstIds, .errors = kErrorGroups, .exact = exact}, kNoDeadline);
    if (standard.has_error()) {
      return Exit::failure(session.place().explained(standard.error(), queue));
    }
    report.standard = std::move(*standard);
  }
  auto dlq = (*opened)->overview({.half = queue::Half::dlq, .ids = kFirstIds, .errors = kErrorGroups, .exact = exact},
                                 kNoDeadline);
  if (dlq.has_error()) {
    return Exit::failure(session.place().explained(dlq.error(), queue));
  }
  report.dlq = std::move(*dlq);
  if (const auto after = session.cost()) {
    report.read_units = after->read_units - before.value_or(runtime::DynamoDbCost{}).read_units;
  }
  return report;
}

void write_queue_stats(JsonWriter& json, const queue::QueueOverview& standard) {
  const std::uint64_t hidden = standard.counts.hidden();
  write_ids(json, "first_100_IDs_in_queue", standard.first_ids);
  write_ids(json, "first_100_IDs_in_queue_processing", standard.first_in_flight_ids);
  json.member("total_messages_in_queue", standard.counts.total());
  json.member("total_messages_in_queue_processing", hidden);
  json.member("total_messages_in_queue_ready", standard.counts.total() - hidden);
}

void write_dlq_stats(JsonWriter& json, const queue::QueueOverview& dlq) {
  write_ids(json, "first_100_IDs_in_queue", dlq.first_ids);
  json.member("total_messages_in_DLQ", dlq.counts.total());
}

void write_errors(JsonWriter& json, std::string_view name, const queue::QueueOverview& half) {
  json.key(name);
  json.begin_array();
  for (const queue::ErrorGroup& group : half.errors) {
    write_group(json, group);
  }
  json.end_array();
  if (half.unlisted_errors > 0) {
    json.member(std::string(name) + "_unlisted", half.unlisted_errors);
  }
}

void write_read_units(JsonWriter& json, const QueueReport& report) {
  if (report.read_units) {
    json.key("read_units");
    json.word(one_decimal(*report.read_units));
  }
}

std::string read_units_text(const std::vector<QueueReport>& reports) {
  double sum = 0;
  bool counted = false;
  for (const QueueReport& report : reports) {
    sum += report.read_units.value_or(0);
    counted = counted || report.read_units.has_value();
  }
  return counted ? "Read for " + one_decimal(sum) + " read units.\n" : std::string();
}

std::string error_table(const queue::QueueOverview& half, WallTime now, bool colours) {
  TextTable table({{.title = "COUNT", .right = true},
                   {.title = "LAST HOUR", .right = true},
                   {.title = "FIRST", .right = true},
                   {.title = "LAST", .right = true},
                   {.title = "CAUSE"},
                   {.title = "HANDLER"},
                   {.title = "HOST"},
                   {.title = "EXAMPLE", .right = false, .widest = kWidestId},
                   {.title = "ERROR", .right = false, .widest = kWidestError}},
                  colours);
  for (const queue::ErrorGroup& group : half.errors) {
    table.add({std::to_string(group.count),
               std::to_string(group.per_hour.front()),
               short_duration(now - group.first_failed_at),
               short_duration(now - group.last_failed_at),
               group.fingerprint,
               most_frequent(group.handlers),
               most_frequent(group.hosts),
               group.example,
               {group.count == 1 ? group.error : group.pattern, Colour::red}});
  }
  std::string text = table.take();
  if (half.unlisted_errors > 0) {
    text += "and " + std::to_string(half.unlisted_errors) + " for other causes\n";
  }
  return text;
}

}  // namespace sluice::cli
