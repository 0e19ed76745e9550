#include "host/cli/views/queue_report.hpp"

#include <algorithm>
#include <chrono>

#include "base/text/decimal.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/message_report.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kFirstIds = 100;
constexpr std::size_t kErrorGroups = 20;
/// A look at a long half is many requests; each has its own time-out in the store.
constexpr Deadline kNoDeadline = Deadline::never();

std::string layouts_text(const operate::CostSummary& costs, const cost::Prices& prices, const Screen& screen) {
  const cost::Usage total = costs.total();
  if (total.messages <= 0) {
    return {};
  }
  return wrapped("\nThe same " + fixed_decimal(total.messages, 0) + " messages, " + fixed_decimal(total.kib, 0) +
                     " KiB by begun KiB, would come to (WCU, RCU and WITH SENDING count their senders' part too, and "
                     "WITH SENDING the storage of what lay there, due, until it was handed out):\n",
                 screen) +
         rows_of(operate::priced(cost::layouts_of(total, prices), prices), {}, {.screen = screen});
}

/// How far the figures reach.
std::string reach_text(const operate::CostSummary& costs, const cost::Prices& prices) {
  std::string text =
      "\nAs " + counted(costs.hosts, "host") + (costs.hosts == 1 ? " tells" : " tell") +
      (costs.covered < std::chrono::seconds(1) ? ", who began just now: what it spends is told within a minute"
                                               : ", of the last " + short_duration(costs.covered));
  if (costs.shortest < costs.covered) {
    text += " (the youngest: " + short_duration(costs.shortest) + ")";
  }
  text += "; hosts that have ended tell nothing";
  if (costs.silent > 0) {
    text += ", nor " +
            (costs.silent == 1 ? std::string("does 1 that is") : "do " + std::to_string(costs.silent) + " that are") +
            " silent";
  }
  return text + ".\nPrices: " + prices.origin() + ".\n";
}

}  // namespace

std::optional<Duration> QueueReport::oldest_ready(WallTime now) const {
  if (!standard.counts.oldest_ready) {
    return std::nullopt;
  }
  return std::max(Duration(now - *standard.counts.oldest_ready), Duration::zero());
}

OrExit<QueueReport> read_report(QueueSession& session, const std::string& queue, const std::vector<queue::Half>& halves,
                                bool exact) {
  QueueReport report;
  report.queue = queue;
  SLUICE_TRY(opened, session.checked(session.queues().open_operator(queue), queue));
  const auto before = session.cost();
  for (const queue::Half half : halves) {
    SLUICE_TRY(found, session.checked(
                          (*opened)->overview({.half = half, .ids = kFirstIds, .errors = kErrorGroups, .exact = exact},
                                              kNoDeadline),
                          queue));
    (half == queue::Half::dlq ? report.dlq : report.standard) = std::move(*found);
  }
  if (const auto after = session.cost()) {
    report.read_units = after->read_units - before.value_or(cost::Spent{}).read_units;
  }
  return report;
}

void write_queue_stats(JsonWriter& json, const queue::QueueOverview& standard) {
  const std::uint64_t hidden = standard.counts.hidden();
  json.member("first_100_IDs_in_queue", standard.first_ids);
  json.member("first_100_IDs_in_queue_processing", standard.first_in_flight_ids);
  json.member("total_messages_in_queue", standard.counts.total());
  json.member("total_messages_in_queue_processing", hidden);
  json.member("total_messages_in_queue_ready", standard.counts.total() - hidden);
}

void write_dlq_stats(JsonWriter& json, const queue::QueueOverview& dlq) {
  json.member("first_100_IDs_in_queue", dlq.first_ids);
  json.member("total_messages_in_DLQ", dlq.counts.total());
}

void write_errors(JsonWriter& json, std::string_view name, const queue::QueueOverview& half) {
  json.key(name);
  operate::write_all(json, half.errors, {});
  if (half.unlisted_errors > 0) {
    json.member(std::string(name) + "_unlisted", half.unlisted_errors);
  }
}

void write_read_units(JsonWriter& json, const QueueReport& report) {
  if (report.read_units) {
    json.member("read_units", *report.read_units, 1);
  }
}

std::string read_units_text(const std::vector<QueueReport>& reports) {
  double sum = 0;
  bool counted = false;
  for (const QueueReport& report : reports) {
    sum += report.read_units.value_or(0);
    counted = counted || report.read_units.has_value();
  }
  return counted ? "Read for " + fixed_decimal(sum, 1) + " read units.\n" : std::string();
}

std::string error_table(const queue::QueueOverview& half, WallTime now, const Screen& screen) {
  std::string text =
      rows_of(half.errors, now,
              {.screen = screen,
               .columns = {"COUNT", "LAST HOUR", "FIRST", "LAST", "CAUSE", "HANDLER", "HOST", "EXAMPLE", "ERROR"}});
  if (half.unlisted_errors > 0) {
    text += "and " + std::to_string(half.unlisted_errors) + " for other causes\n";
  }
  return text;
}

std::string cost_rows_text(const operate::CostSummary& costs, const cost::Prices& prices, const Screen& screen) {
  if (costs.rows.empty()) {
    return "no host tells what it has spent; `sluice hosts` lists those that are alive\n";
  }
  const bool embedded =
      std::any_of(costs.rows.begin(), costs.rows.end(), [](const auto& row) { return row.hour.spent.none(); });
  return rows_of(operate::priced(costs.rows, prices), {}, {.screen = screen}) +
         (embedded
              ? wrapped(
                    "embedded: the store is a file of the host's, or a database; nothing is billed by the request.\n",
                    screen)
              : "");
}

std::string cost_text(const operate::CostSummary& costs, const cost::Prices& prices, const Screen& screen) {
  std::string text = cost_rows_text(costs, prices, screen);
  if (costs.rows.empty()) {
    return text;
  }
  if (!costs.values.empty()) {
    text += "\nBy " + costs.attribute + ", of all queues, since the hosts that tell of it began:\n" +
            rows_of(operate::priced(costs.values, prices), {}, {.screen = screen});
  }
  return text + layouts_text(costs, prices, screen) + wrapped(reach_text(costs, prices), screen);
}

std::string cost_json(const operate::CostSummary& costs, const cost::Prices& prices) {
  return json_line([&](JsonWriter& json) {
    operate::Fields fields(json, {});
    describe(operate::Priced<operate::CostSummary>{costs, prices}, fields);
    fields.records("layouts", operate::priced(cost::layouts_of(costs.total(), prices), prices));
  });
}

}  // namespace sluice::cli
