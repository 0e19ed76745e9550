// What does a month cost? Four hosts of a shop in both layouts of a DynamoDB table, simulated on the model of DynamoDB
// under virtual time, with the prices of other ways beside it.
//
//   month_bench [--write docs/understand/scale.md]
//
// Of each kind of hour that the month has one is simulated, whole, and counted as often as it comes. With --write the
// tables take the place of what stands between the two marks of that file.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/month.hpp"

namespace sluice::bench {
namespace {

using test::sim::Layout;

constexpr std::string_view kBegin = "<!-- made by month_bench: begin -->\n";
constexpr std::string_view kEnd = "<!-- made by month_bench: end -->\n";

/// What one hour of each kind has come to, in both layouts.
struct Hours {
  std::vector<MonthCount> leased;
  std::vector<MonthCount> dynamomq;
};

// Worlds know nothing of one another: two are simulated at a time.
Hours simulate(const MonthPlan& plan) {
  Hours hours{std::vector<MonthCount>(plan.hours.size()), std::vector<MonthCount>(plan.hours.size())};
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < 2 * plan.hours.size(); i = next++) {
      const std::size_t kind = plan.hours.size() - 1 - i / 2;  // the longest ones first
      const bool leased = i % 2 == 0;
      const MonthCount count = simulate_hour(plan, plan.hours[kind], leased ? Layout::leased : Layout::dynamomq);
      (leased ? hours.leased : hours.dynamomq)[kind] = count;
      std::fprintf(stderr, "%s: %s, %.0f messages, %.3f WCU, %.3f RCU a message\n", leased ? "leased" : "dynamomq",
                   plan.hours[kind].name().c_str(), count.messages, count.write_units / count.messages,
                   count.read_units / count.messages);
    }
  };
  const std::jthread other(work);
  work();
  return hours;
}

MonthCount sum_of(const MonthPlan& plan, const std::vector<MonthCount>& hours) {
  MonthCount sum;
  for (std::size_t i = 0; i < hours.size(); ++i) {
    sum += hours[i] * plan.hours[i].times;
  }
  return sum;
}

std::string millions(double count) { return count > 0 ? fmt::format("{:.1f}", count / 1e6) : "-"; }

std::string hours_table(const MonthPlan& plan, const Hours& hours) {
  std::string text =
      "| an hour of | of them | messages | leased: WCU a message | RCU a second | requests a message | DynamoMQ: WCU a "
      "message | RCU a second | requests a message |\n|---|---|---|---|---|---|---|---|---|\n";
  const auto cells = [](const MonthCount& count) {
    return fmt::format(" {:.2f} | {:.1f} | {:.2f} |", count.write_units / count.messages, count.read_units / 3600,
                       count.requests / count.messages);
  };
  for (std::size_t i = 0; i < plan.hours.size(); ++i) {
    text += fmt::format("| {} | {} | {:.0f} |", plan.hours[i].name(), plan.hours[i].times, hours.leased[i].messages) +
            cells(hours.leased[i]) + cells(hours.dynamomq[i]) + "\n";
  }
  return text;
}

std::string costs_table(const std::vector<MonthCost>& costs, double messages, const cost::Prices& prices) {
  std::string text =
      "| | how | million WCU | million RCU | million requests | capacity | storage | a month | a million messages "
      "|\n|---|---|---|---|---|---|---|---|---|\n";
  for (const MonthCost& cost : costs) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", cost.what, cost.how,
                        millions(cost.write_units), millions(cost.read_units), millions(cost.requests),
                        prices.text(cost.capacity), cost.storage > 0 ? prices.text(cost.storage) : "-",
                        prices.text(cost.money()), prices.text(cost.money() / messages * 1e6));
  }
  return text;
}

std::string sentence(const MonthCount& leased, const MonthCount& dynamomq, const std::vector<MonthCost>& costs,
                     const cost::Prices& prices) {
  return fmt::format(
      "The month has {:.1f} million messages. The leased layout comes to {} and DynamoMQ's to {} with the same hosts, "
      "{:.1f} times as much; SQS to between {} and {}. {:.0f} and {:.0f} handlers "
      "began once more with a message that had not failed; {:.0f} and {:.0f} requests or statements were throttled. "
      "Prices: "
      "{}.\n",
      leased.messages / 1e6, prices.text(costs[3].money()), prices.text(costs[2].money()),
      costs[2].money() / costs[3].money(), prices.text(costs.back().money()), prices.text(costs[4].money()),
      leased.twice, dynamomq.twice, leased.throttled, dynamomq.throttled, prices.origin());
}

int write_into(const std::string& file, const std::string& text) {
  std::ifstream in(file);
  std::stringstream read;
  read << in.rdbuf();
  const std::string page = read.str();
  const auto begin = page.find(kBegin);
  const auto end = page.find(kEnd);
  if (!in || begin == std::string::npos || end == std::string::npos || end < begin) {
    std::cerr << "month_bench: " << file << " cannot be read, or lacks the marks between which the tables go\n";
    return 1;
  }
  std::ofstream(file) << page.substr(0, begin + kBegin.size()) << text << page.substr(end);
  return 0;
}

int run(int count, char** words) {
  std::string file;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--write") == 0 && i + 1 < count) {
      file = words[++i];
    } else {
      std::cerr << "month_bench: '" << words[i] << "' is no option; it knows --write FILE\n";
      return 64;
    }
  }
  const MonthPlan plan = MonthPlan::of_a_shop();
  const cost::Prices prices;
  const Hours hours = simulate(plan);
  const MonthCount leased = sum_of(plan, hours.leased);
  const MonthCount dynamomq = sum_of(plan, hours.dynamomq);
  const auto costs = costs_of(plan, leased, dynamomq, prices);
  const std::string text = hours_table(plan, hours) + "\n" + costs_table(costs, leased.messages, prices) + "\n" +
                           sentence(leased, dynamomq, costs, prices);
  std::printf(
      "Scaled: a month has 720 hours of %zu kinds; one hour of each kind was simulated event by event, what is idle "
      "included,\nand counted as often as it comes. Nothing else is scaled.\n\n%s",
      plan.hours.size(), text.c_str());
  return file.empty() ? 0 : write_into(file, text);
}

}  // namespace
}  // namespace sluice::bench

int main(int count, char** words) { return sluice::bench::run(count, words); }
