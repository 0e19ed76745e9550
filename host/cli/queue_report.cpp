#include "host/cli/queue_report.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/timestamp.hpp"
#include "host/cli/message_text.hpp"
#include "host/cli/text_table.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kFirstIds = 100;
constexpr std::size_t kErrorGroups = 20;
constexpr std::size_t kWidestError = 80;
/// A look at a long half is many requests; each has its own time-out in the store.
constexpr Deadline kNoDeadline = Deadline::never();

void write_ids(JsonText& json, std::string_view name, const std::vector<std::string>& ids) {
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

}  // namespace

std::optional<Duration> QueueReport::oldest_ready(WallTime now) const {
  if (!standard.counts.oldest_ready) {
    return std::nullopt;
  }
  return std::max(Duration(now - *standard.counts.oldest_ready), Duration::zero());
}

OrExit<QueueReport> read_report(QueueSession& session, const std::string& queue, Halves halves) {
  QueueReport report;
  report.queue = queue;
  auto opened = session.queues().open_operator(queue);
  if (opened.has_error()) {
    return Exit::failure(session.place().explained(opened.error(), queue));
  }
  const auto before = session.cost();
  if (halves == Halves::both) {
    auto standard = (*opened)->overview({.half = queue::Half::standard, .ids = kFirstIds}, kNoDeadline);
    if (standard.has_error()) {
      return Exit::failure(session.place().explained(standard.error(), queue));
    }
    report.standard = std::move(*standard);
  }
  auto dlq = (*opened)->overview({.half = queue::Half::dlq, .ids = kFirstIds, .errors = kErrorGroups}, kNoDeadline);
  if (dlq.has_error()) {
    return Exit::failure(session.place().explained(dlq.error(), queue));
  }
  report.dlq = std::move(*dlq);
  if (const auto after = session.cost()) {
    report.read_units = after->read_units - before.value_or(runtime::DynamoDbCost{}).read_units;
  }
  return report;
}

void write_queue_stats(JsonText& json, const queue::QueueOverview& standard) {
  const std::uint64_t hidden = standard.counts.hidden();
  write_ids(json, "first_100_IDs_in_queue", standard.first_ids);
  write_ids(json, "first_100_IDs_in_queue_processing", standard.first_in_flight_ids);
  json.member("total_messages_in_queue", standard.counts.total());
  json.member("total_messages_in_queue_processing", hidden);
  json.member("total_messages_in_queue_ready", standard.counts.total() - hidden);
}

void write_dlq_stats(JsonText& json, const queue::QueueOverview& dlq) {
  write_ids(json, "first_100_IDs_in_queue", dlq.first_ids);
  json.member("total_messages_in_DLQ", dlq.counts.total());
}

void write_errors(JsonText& json, const QueueReport& report) {
  json.key("dlq_errors");
  json.begin_array();
  for (const queue::ErrorGroup& group : report.dlq.errors) {
    json.begin_object();
    json.member("error", group.error);
    json.member("count", group.count);
    json.member("example_id", group.example);
    json.member("last_failed_at", format_timestamp(group.last_failed_at));
    json.end_object();
  }
  json.end_array();
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

std::string error_table(const QueueReport& report, WallTime now, bool colours) {
  TextTable table({{.title = "COUNT", .right = true},
                   {.title = "LAST", .right = true},
                   {.title = "EXAMPLE"},
                   {.title = "ERROR", .right = false, .widest = kWidestError}},
                  colours);
  for (const queue::ErrorGroup& group : report.dlq.errors) {
    table.add({std::to_string(group.count),
               short_duration(now - group.last_failed_at),
               group.example,
               {group.error, Colour::red}});
  }
  return table.take();
}

}  // namespace sluice::cli
