#include "host/operate/cost_report.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/decimal.hpp"

namespace sluice::operate {
namespace {

// What is extrapolated from less would be chance.
constexpr Duration kShortest = std::chrono::minutes(1);

double hours(Duration duration) {
  return std::chrono::duration<double, std::ratio<3600>>(std::max(duration, kShortest)).count();
}

bool held(const fleet::HostRecord& host, const std::string& job) {
  return std::any_of(host.jobs.begin(), host.jobs.end(),
                     [&](const fleet::JobRecord& one) { return one.name == job && one.held_by_budget; });
}

constexpr int kMoneyDigits = 10;

/// `money_title`: over what its money is.
void describe_usage(const cost::Usage& usage, const cost::Prices& prices, std::string_view money_title,
                    Fields& fields) {
  const double money = prices.of(usage.spent);
  const auto each = [&usage](double sum) {
    return usage.messages > 0 ? std::optional(sum / usage.messages) : std::nullopt;
  };
  const auto each_cell = [&](const Column& column, double sum, int digits) {
    fields.cell(column, each(sum) ? fixed_decimal(*each(sum), digits) : "-");
  };
  fields.member("messages", usage.messages, 0);
  fields.member("requests", usage.spent.requests, 2);
  fields.member("read_units", usage.spent.read_units, 2);
  fields.member("write_units", usage.spent.write_units, 2);
  fields.member("money", money, kMoneyDigits);
  fields.member("requests_per_message", each(usage.spent.requests), 4);
  fields.member("read_units_per_message", each(usage.spent.read_units), 4);
  fields.member("write_units_per_message", each(usage.spent.write_units), 4);
  fields.member("money_per_message", each(money), kMoneyDigits + 2);
  fields.cell(figures("MESSAGES"), fixed_decimal(usage.messages, 0));
  each_cell(figures("REQ/MSG", 3), usage.spent.requests, 3);
  each_cell(figures("RCU/MSG", 2), usage.spent.read_units, 3);
  each_cell(figures("WCU/MSG", 1), usage.spent.write_units, 2);
  fields.cell(figures("PER MILLION"), each(money) ? prices.text(*each(money) * 1e6) : "-");
  fields.cell(figures(money_title), usage.spent.none() && money_title == "LAST HOUR" ? "embedded" : prices.text(money));
}

void describe_pace(double per_hour, Fields& fields) {
  fields.member("money_per_hour", per_hour, kMoneyDigits);
  fields.member("money_per_month", per_hour * cost::kHoursPerMonth, 6);
}

}  // namespace

void describe(const Priced<CostSummary::Row>& priced, Fields& fields) {
  const CostSummary::Row& row = priced.part;
  fields.text("queue", names("QUEUE", kLeastName), row.queue);
  fields.member("job", row.job);
  fields.cell(names("JOB", kLeastName),
              row.held_hosts > 0 ? Cell(row.job + ", held by budget", Colour::yellow) : Cell(row.job));
  fields.number("hosts", figures("HOSTS", 4), row.hosts);
  fields.member("embedded", row.hour.spent.none());
  fields.member("held_by_budget_hosts", row.held_hosts);
  describe_usage(row.hour, priced.prices, "LAST HOUR", fields);
  describe_pace(row.per_hour, fields);
  fields.cell(figures("A MONTH"), priced.prices.text(row.per_hour * cost::kHoursPerMonth));
}

void describe(const Priced<cost::TopValues::Named>& value, Fields& fields) {
  fields.text("value", names("VALUE", kLeastName), value.part.value);
  describe_usage(value.part.usage, value.prices, "SINCE START", fields);
}

void describe(const Priced<cost::LayoutCost>& priced, Fields& fields) {
  const auto& [layout, prices] = priced;
  fields.text("layout", {"LAYOUT"}, layout.layout);
  fields.member("requests", layout.whole.requests, 2);
  fields.member("read_units", layout.whole.read_units, 2);
  fields.member("write_units", layout.whole.write_units, 2);
  fields.cell(figures("WCU", 1), fixed_decimal(layout.whole.write_units, 0));
  fields.cell(figures("RCU", 2), fixed_decimal(layout.whole.read_units, 0));
  fields.member("money_of_hosts", layout.money_worked, kMoneyDigits);
  fields.cell(figures("HOSTS' PART"), prices.text(layout.money_worked));
  fields.member("storage", layout.storage, kMoneyDigits + 4);
  fields.cell(figures("STORAGE"), prices.text(layout.storage));
  fields.member("money", layout.money_whole, kMoneyDigits);
  fields.member("money_at_most", layout.money_whole_most, kMoneyDigits);
  fields.cell(figures("WITH SENDING"),
              prices.text(layout.money_whole) +
                  (layout.money_whole_most > layout.money_whole ? " to " + prices.text(layout.money_whole_most) : ""));
  fields.cell(prose("WHAT IT IS", 24, 3), std::string(layout.what));
}

void describe(const Priced<CostSummary>& priced, Fields& fields) {
  const auto& [costs, prices] = priced;
  fields.member("currency", prices.currency());
  fields.member("as_of", prices.config().as_of);
  fields.member("hosts", costs.hosts);
  fields.member("covered_seconds", std::chrono::duration<double>(costs.covered).count(), 0);
  describe_usage(costs.total(), prices, {}, fields);
  describe_pace(costs.per_hour(), fields);
  fields.records("jobs", operate::priced(costs.rows, prices));
  fields.member("attribute", costs.attribute);
  fields.records("values", operate::priced(costs.values, prices));
}

cost::Usage CostSummary::total() const {
  cost::Usage sum;
  for (const Row& row : rows) {
    sum += row.hour;
  }
  return sum;
}

double CostSummary::per_hour() const {
  double sum = 0;
  for (const Row& row : rows) {
    sum += row.per_hour;
  }
  return sum;
}

CostSummary summarize_costs(const fleet::FleetView& view, const std::string& queue, const cost::Prices& prices) {
  CostSummary summary;
  std::map<std::pair<std::string, std::string>, CostSummary::Row> rows;  // by queue and job
  std::map<std::string, cost::Usage> values;
  for (const fleet::KnownHost& known : view.hosts) {
    if (known.pulse == fleet::Pulse::silent) {
      summary.silent += known.record.state == fleet::HostState::ended ? 0 : 1;
      continue;
    }
    const fleet::HostRecord& host = known.record;
    summary.shortest = summary.hosts == 0 ? host.spent_in : std::min(summary.shortest, host.spent_in);
    summary.covered = std::max(summary.covered, host.spent_in);
    ++summary.hosts;
    for (const fleet::SpentRecord& spent : host.spent) {
      if (queue.empty() || spent.queue == queue) {
        CostSummary::Row& row = rows[{spent.queue, spent.job}];
        row.queue = spent.queue;
        row.job = spent.job;
        ++row.hosts;
        row.held_hosts += held(host, spent.job) ? 1 : 0;
        row.hour += spent.usage;
        row.per_hour += prices.of(spent.usage.spent) / hours(host.spent_in);
      }
    }
    summary.attribute = summary.attribute.empty() ? host.attribute : summary.attribute;
    for (const cost::TopValues::Named& value : host.values) {
      if (host.attribute == summary.attribute) {
        values[value.value] += value.usage;
      }
    }
  }
  summary.rows = mapped(rows, [](auto& row) { return std::move(row.second); });
  std::stable_sort(summary.rows.begin(), summary.rows.end(), [](const auto& a, const auto& b) {
    return a.queue != b.queue ? a.queue < b.queue : a.per_hour > b.per_hour;
  });
  summary.values = mapped(values, [](const auto& one) { return cost::TopValues::Named{one.first, one.second}; });
  std::stable_sort(summary.values.begin(), summary.values.end(), [&prices](const auto& a, const auto& b) {
    const double left = prices.of(a.usage.spent);
    const double right = prices.of(b.usage.spent);
    return left != right ? left > right : a.usage.messages > b.usage.messages;
  });
  return summary;
}

}  // namespace sluice::operate
