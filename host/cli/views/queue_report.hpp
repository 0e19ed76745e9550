#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/text/json_writer.hpp"
#include "host/cli/queue_session.hpp"
#include "host/operate/cost_report.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::cli {

/// What `stats` and `dlq` tell of a queue. A value.
struct QueueReport {
  std::string queue;
  queue::QueueOverview standard;
  queue::QueueOverview dlq;
  std::optional<double> read_units;  ///< what reading it cost, where that is counted

  /// How long the oldest ready message has been waiting.
  std::optional<Duration> oldest_ready(WallTime now) const;
};

/// Reads those halves, each once. `exact`: counted, where the store has older numbers that are cheaper.
OrExit<QueueReport> read_report(QueueSession& session, const std::string& queue, const std::vector<queue::Half>& halves,
                                bool exact);

// Members of an object that the caller begins and ends.

/// DynamoMQ's five figures of the standard half. Whatever is hidden counts as being processed there.
void write_queue_stats(JsonWriter& json, const queue::QueueOverview& standard);
/// DynamoMQ's two of the DLQ.
void write_dlq_stats(JsonWriter& json, const queue::QueueOverview& dlq);
/// Ours: the causes of what failed, under that name, and what could not be listed.
void write_errors(JsonWriter& json, std::string_view name, const queue::QueueOverview& half);
/// Ours: what the look cost, where that is counted.
void write_read_units(JsonWriter& json, const QueueReport& report);

/// "Read for 12.5 read units." as a line; empty where that is not counted.
std::string read_units_text(const std::vector<QueueReport>& reports);

/// The causes of what failed as rows, the most frequent first; empty when there are none.
std::string error_table(const queue::QueueOverview& half, WallTime now, const Screen& screen);

/// By queue and job, by value of the attribute, what other layouts would have cost, and by which prices.
std::string cost_text(const operate::CostSummary& costs, const cost::Prices& prices, const Screen& screen);
std::string cost_json(const operate::CostSummary& costs, const cost::Prices& prices);

/// The rows alone; a line instead where there are none.
std::string cost_rows_text(const operate::CostSummary& costs, const cost::Prices& prices, const Screen& screen);

}  // namespace sluice::cli
