#include "host/runtime/booked_cost.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "base/text/json_string.hpp"

namespace sluice::runtime {
namespace {

// More values than these are in the JSON alone.
constexpr std::size_t kValuesInText = 5;

std::string decimal(const char* format, double number) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

/// "12 requests, 3.0 RCU, 40.0 WCU, $0.000025 ($0.0000025 a message)"
std::string usage_text(const cost::Usage& usage, const cost::Prices& prices) {
  const double money = prices.of(usage.spent);
  std::string text = decimal("%.0f", usage.spent.requests) + " requests, " + decimal("%.1f", usage.spent.read_units) +
                     " RCU, " + decimal("%.1f", usage.spent.write_units) + " WCU, " + prices.text(money);
  if (usage.messages > 0) {
    text += " (" + prices.text(money / usage.messages) + " a message)";
  }
  return text;
}

/// The members of a usage, for an object that has begun.
std::string usage_json(const cost::Usage& usage, const cost::Prices& prices) {
  return "\"messages\": " + decimal("%.0f", usage.messages) +
         ", \"requests\": " + decimal("%.3f", usage.spent.requests) +
         ", \"read_units\": " + decimal("%.3f", usage.spent.read_units) +
         ", \"write_units\": " + decimal("%.3f", usage.spent.write_units) +
         ", \"money\": " + decimal("%.10f", prices.of(usage.spent)) + "}";
}

cost::Usage sum_of(const cost::CostView& view) {
  cost::Usage sum;
  for (const cost::CostView::Row& row : view.rows) {
    sum += row.total;
  }
  return sum;
}

cost::Usage other_of(const cost::CostView& view) {
  cost::Usage other = view.values.other;
  other += view.values.gone;
  return other;
}

}  // namespace

bool BookedCost::none() const {
  return std::all_of(view.rows.begin(), view.rows.end(),
                     [](const cost::CostView::Row& row) { return row.total.spent.none(); });
}

std::string BookedCost::text() const {
  std::string text = "cost: " + prices.text(prices.of(sum_of(view).spent)) + " by prices of " + prices.config().as_of;
  for (const cost::CostView::Row& row : view.rows) {
    text += "; " + row.job + " on " + row.queue + ": " + usage_text(row.total, prices);
  }
  std::size_t told = 0;
  cost::Usage rest = other_of(view);
  for (const cost::TopValues::Named& named : view.values.values) {
    if (told++ < kValuesInText) {
      text += "; " + view.attribute + " " + named.value + ": " + usage_text(named.usage, prices);
    } else {
      rest += named.usage;
    }
  }
  if (!rest.none()) {
    text += "; " + view.attribute + " " + std::string(cost::kOtherValues) + ": " + usage_text(rest, prices);
  }
  return text;
}

std::string BookedCost::json() const {
  std::string out = "{\"currency\": " + json_quoted(prices.currency()) +
                    ", \"as_of\": " + json_quoted(prices.config().as_of) +
                    ", \"money\": " + decimal("%.10f", prices.of(sum_of(view).spent)) + ", \"jobs\": [";
  const char* comma = "";
  for (const cost::CostView::Row& row : view.rows) {
    out += comma + ("{\"queue\": " + json_quoted(row.queue)) + ", \"job\": " + json_quoted(row.job) + ", " +
           usage_json(row.total, prices);
    comma = ", ";
  }
  out += "]";
  if (!view.attribute.empty()) {
    out += ", \"attribute\": " + json_quoted(view.attribute) + ", \"values\": [";
    for (const cost::TopValues::Named& named : view.values.values) {
      out += "{\"value\": " + json_quoted(named.value) + ", " + usage_json(named.usage, prices) + ", ";
    }
    out += "{\"value\": " + json_quoted(cost::kOtherValues) + ", " + usage_json(other_of(view), prices) + "]";
  }
  return out + "}";
}

}  // namespace sluice::runtime
