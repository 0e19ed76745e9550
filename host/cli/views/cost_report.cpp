#include "host/cli/views/cost_report.hpp"

#include <cmath>

#include "base/text/decimal.hpp"
#include "host/cli/views/message_view.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kWidestName = 32;
constexpr int kMoneyDigits = 10;

void member_number(JsonWriter& json, std::string_view name, double number, int digits) {
  json.key(name);
  json.word(fixed_decimal(number, digits));
}

void member_each(JsonWriter& json, std::string_view name, double sum, double messages, int digits) {
  json.key(name);
  if (messages > 0) {
    json.word(fixed_decimal(sum / messages, digits));
  } else {
    json.null();
  }
}

void write_usage(JsonWriter& json, const cost::Usage& usage, const cost::Prices& prices) {
  const double money = prices.of(usage.spent);
  member_number(json, "messages", usage.messages, 0);
  member_number(json, "requests", usage.spent.requests, 2);
  member_number(json, "read_units", usage.spent.read_units, 2);
  member_number(json, "write_units", usage.spent.write_units, 2);
  member_number(json, "money", money, kMoneyDigits);
  member_each(json, "requests_per_message", usage.spent.requests, usage.messages, 4);
  member_each(json, "read_units_per_message", usage.spent.read_units, usage.messages, 4);
  member_each(json, "write_units_per_message", usage.spent.write_units, usage.messages, 4);
  member_each(json, "money_per_message", money, usage.messages, kMoneyDigits + 2);
}

std::string each_text(double sum, double messages, int digits) {
  return messages > 0 ? fixed_decimal(sum / messages, digits) : "-";
}

/// "$1.28 a million".
std::string per_million(double money, double messages, const cost::Prices& prices) {
  return messages > 0 ? prices.text(money / messages * 1e6) : "-";
}

std::vector<TextTable::Cell> usage_cells(const cost::Usage& usage, const cost::Prices& prices) {
  const double money = prices.of(usage.spent);
  return {fixed_decimal(usage.messages, 0),
          each_text(usage.spent.requests, usage.messages, 3),
          each_text(usage.spent.read_units, usage.messages, 3),
          each_text(usage.spent.write_units, usage.messages, 2),
          per_million(money, usage.messages, prices),
          prices.text(money)};
}

std::vector<TextTable::Column> usage_columns(std::vector<TextTable::Column> first, std::string_view money) {
  for (const std::string_view title : {"MESSAGES", "REQ/MSG", "RCU/MSG", "WCU/MSG", "PER MILLION"}) {
    first.push_back({.title = title, .right = true});
  }
  first.push_back({.title = money, .right = true});
  return first;
}

std::string values_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours) {
  if (costs.values.empty()) {
    return {};
  }
  TextTable table(usage_columns({{.title = "VALUE", .right = false, .widest = kWidestName}}, "SINCE START"), colours);
  for (const operate::CostSummary::Value& value : costs.values) {
    std::vector<TextTable::Cell> cells{value.value};
    for (TextTable::Cell& cell : usage_cells(value.usage, prices)) {
      cells.push_back(std::move(cell));
    }
    table.add(std::move(cells));
  }
  return "\nBy " + costs.attribute + ", of all queues, since the hosts that tell of it began:\n" + table.take();
}

std::string layouts_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours) {
  const cost::Usage total = costs.total();
  if (total.messages <= 0) {
    return {};
  }
  TextTable table({{.title = "LAYOUT"},
                   {.title = "WCU", .right = true},
                   {.title = "RCU", .right = true},
                   {.title = "HOSTS' PART", .right = true},
                   {.title = "STORAGE", .right = true},
                   {.title = "WITH SENDING", .right = true},
                   {.title = "WHAT IT IS"}},
                  colours);
  for (const cost::LayoutCost& layout : cost::layouts_of(total, prices)) {
    const bool range = layout.money_whole_most > layout.money_whole;
    table.add({std::string(layout.layout), fixed_decimal(layout.whole.write_units, 0),
               fixed_decimal(layout.whole.read_units, 0), prices.text(layout.money_worked), prices.text(layout.storage),
               prices.text(layout.money_whole) + (range ? " to " + prices.text(layout.money_whole_most) : ""),
               std::string(layout.what)});
  }
  return "\nThe same " + fixed_decimal(total.messages, 0) + " messages, " + fixed_decimal(total.kib, 0) +
         " KiB by begun KiB, would come to (WCU, RCU and WITH SENDING count their senders' part too, and WITH SENDING "
         "the storage of what lay there, due, until it was handed out):\n" +
         table.take();
}

/// How far the figures reach.
std::string reach_text(const operate::CostSummary& costs, const cost::Prices& prices) {
  const auto hosts = [](std::uint32_t count) { return std::to_string(count) + (count == 1 ? " host" : " hosts"); };
  std::string text = "\nAs " + hosts(costs.hosts) + (costs.hosts == 1 ? " tells" : " tell") + ", of the last " +
                     short_duration(costs.covered);
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

void write_layouts(JsonWriter& json, const operate::CostSummary& costs, const cost::Prices& prices) {
  const cost::Usage total = costs.total();
  json.key("layouts");
  json.begin_array();
  for (const cost::LayoutCost& layout : cost::layouts_of(total, prices)) {
    json.begin_object();
    json.member("layout", layout.layout);
    member_number(json, "requests", layout.whole.requests, 2);
    member_number(json, "read_units", layout.whole.read_units, 2);
    member_number(json, "write_units", layout.whole.write_units, 2);
    member_number(json, "money_of_hosts", layout.money_worked, kMoneyDigits);
    member_number(json, "storage", layout.storage, kMoneyDigits + 4);
    member_number(json, "money", layout.money_whole, kMoneyDigits);
    member_number(json, "money_at_most", layout.money_whole_most, kMoneyDigits);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string cost_rows_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours) {
  if (costs.rows.empty()) {
    return "no host tells what it has spent; `sluice hosts` lists those that are alive\n";
  }
  auto columns = usage_columns({{.title = "QUEUE", .right = false, .widest = kWidestName},
                                {.title = "JOB", .right = false, .widest = kWidestName},
                                {.title = "HOSTS", .right = true}},
                               "LAST HOUR");
  columns.push_back({.title = "A MONTH", .right = true});
  TextTable table(std::move(columns), colours);
  bool embedded = false;
  for (const operate::CostSummary::Row& row : costs.rows) {
    std::vector<TextTable::Cell> cells{row.queue, row.job, std::to_string(row.hosts)};
    if (row.held_hosts > 0) {
      cells[1] = TextTable::Cell(row.job + ", held by budget", Colour::yellow);
    }
    for (TextTable::Cell& cell : usage_cells(row.hour, prices)) {
      cells.push_back(std::move(cell));
    }
    if (row.hour.spent.none()) {
      embedded = true;
      cells[cells.size() - 2] = "embedded";
    }
    cells.emplace_back(prices.text(row.per_hour * cost::kHoursPerMonth));
    table.add(std::move(cells));
  }
  return table.take() +
         (embedded ? "embedded: the store is a file of the host's, or a database; nothing is billed by the request.\n"
                   : "");
}

std::string cost_text(const operate::CostSummary& costs, const cost::Prices& prices, bool colours) {
  std::string text = cost_rows_text(costs, prices, colours);
  if (costs.rows.empty()) {
    return text;
  }
  text += values_text(costs, prices, colours);
  text += layouts_text(costs, prices, colours);
  return text + reach_text(costs, prices);
}

void write_costs(JsonWriter& json, const operate::CostSummary& costs, const cost::Prices& prices) {
  json.member("currency", prices.currency());
  json.member("as_of", prices.config().as_of);
  json.member("hosts", std::uint64_t{costs.hosts});
  member_number(json, "covered_seconds", std::chrono::duration<double>(costs.covered).count(), 0);
  write_usage(json, costs.total(), prices);
  member_number(json, "money_per_hour", costs.per_hour(), kMoneyDigits);
  member_number(json, "money_per_month", costs.per_hour() * cost::kHoursPerMonth, 6);
  json.key("jobs");
  json.begin_array();
  for (const operate::CostSummary::Row& row : costs.rows) {
    json.begin_object();
    json.member("queue", row.queue);
    json.member("job", row.job);
    json.member("hosts", std::uint64_t{row.hosts});
    json.member("embedded", row.hour.spent.none());
    json.member("held_by_budget_hosts", std::uint64_t{row.held_hosts});
    write_usage(json, row.hour, prices);
    member_number(json, "money_per_hour", row.per_hour, kMoneyDigits);
    member_number(json, "money_per_month", row.per_hour * cost::kHoursPerMonth, 6);
    json.end_object();
  }
  json.end_array();
  json.member("attribute", costs.attribute);
  json.key("values");
  json.begin_array();
  for (const operate::CostSummary::Value& value : costs.values) {
    json.begin_object();
    json.member("value", value.value);
    write_usage(json, value.usage, prices);
    json.end_object();
  }
  json.end_array();
}

std::string cost_json(const operate::CostSummary& costs, const cost::Prices& prices) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  write_costs(json, costs, prices);
  write_layouts(json, costs, prices);
  json.end_object();
  return json.take_line();
}

}  // namespace sluice::cli
