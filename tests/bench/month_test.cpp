// What `./dev bench month` counts, on a month whose hours are short. These are budgets: counted, not timed.

#include "bench/month.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;
using test::sim::Layout;
using Event = HourKind::Event;

/// Every kind of event, with hours of a minute; no event is as rare as in the month.
MonthPlan small_plan() {
  MonthPlan plan = MonthPlan::of_a_shop();
  plan.hours = {{.rate = 20, .event = Event::none, .times = 4},
                {.rate = 10, .event = Event::batch, .times = 1},
                {.rate = 20, .event = Event::deploy, .times = 1},
                {.rate = 20, .event = Event::crash, .times = 1}};
  plan.hour = 1min;
  plan.warm_up = 10s;
  plan.batch = 1'000;
  return plan;
}

MonthCount count(const MonthPlan& plan, Layout layout) {
  MonthCount sum;
  for (const HourKind& kind : plan.hours) {
    sum += simulate_hour(plan, kind, layout) * kind.times;
  }
  return sum;
}

TEST(Month, HasTheHoursOfThirtyDays) {
  const auto kinds = hours_of_a_month();
  const auto times = [&](Event event) {
    return std::accumulate(kinds.begin(), kinds.end(), 0, [event](int sum, const HourKind& kind) {
      return sum + (kind.event == event ? kind.times : 0);
    });
  };
  EXPECT_EQ(times(Event::batch), 30);
  EXPECT_EQ(times(Event::deploy), 9);
  EXPECT_EQ(times(Event::crash), 1);
  EXPECT_EQ(times(Event::none) + 30 + 9 + 1, 720);
}

TEST(Month, IsCountedInBothLayouts) {
  const MonthPlan plan = small_plan();
  const MonthCount leased = count(plan, Layout::leased);
  const MonthCount dynamomq = count(plan, Layout::dynamomq);
  for (const auto& [name, sum] : {std::pair("leased", leased), std::pair("dynamomq", dynamomq)}) {
    std::printf("%s: %.0f messages, %.3f WCU, %.3f RCU, %.3f requests a message, %.0f bytes lie there\n", name,
                sum.messages, sum.write_units / sum.messages, sum.read_units / sum.messages,
                sum.requests / sum.messages, sum.bytes());
    EXPECT_NEAR(sum.hours, 7, 1e-6);
    EXPECT_GT(sum.messages, 7'000);
    EXPECT_NEAR(sum.done, sum.messages, 0.03 * sum.messages) << "what is sent is done, but for an hour's last messages";
    EXPECT_GT(sum.attempts, sum.done) << "one in a hundred fails";
    EXPECT_EQ(sum.throttled, 0);
    EXPECT_GT(sum.bytes(), 0);
  }
  EXPECT_NEAR(leased.messages, dynamomq.messages, 0.005 * leased.messages) << "they come at the same times";
  EXPECT_EQ(leased.twice, 0) << "also while hosts are replaced";
  // What is idle is in it, and hours of a minute have few messages.
  EXPECT_NEAR(leased.write_units / leased.messages, 2.10, 0.05);
  EXPECT_LE(leased.read_units / leased.messages, 1.1);
  EXPECT_LE(leased.requests / leased.messages, 3.2);
  EXPECT_NEAR(dynamomq.write_units / dynamomq.messages, 6.05, 0.1);
  EXPECT_LE(dynamomq.read_units / dynamomq.messages, 2.2);
  EXPECT_LE(dynamomq.requests / dynamomq.messages, 5.8);
}

TEST(Month, AnHourWithoutEventsCostsWhatItsMessagesAndItsIdleHostsDo) {
  const MonthPlan plan = small_plan();
  HourKind busy = plan.hours.front();
  HourKind idle{.rate = 0, .event = Event::none, .times = 1};
  for (const auto layout : {Layout::leased, Layout::dynamomq}) {
    const MonthCount whole = simulate_hour(plan, busy, layout);
    const MonthCount nothing = simulate_hour(plan, idle, layout);
    const double writes = (whole.write_units - nothing.write_units) / whole.messages;
    const double of_one = layout == Layout::leased ? 2 : 6;
    std::printf("%s: %.3f WCU a message; idle %.2f WCU, %.2f RCU, %.2f requests a second\n",
                layout == Layout::leased ? "leased" : "dynamomq", writes, nothing.write_units / 60,
                nothing.read_units / 60, nothing.requests / 60);
    EXPECT_NEAR(writes, of_one, 0.05 * of_one);
    EXPECT_EQ(nothing.messages, 0);
    EXPECT_GT(nothing.read_units, 60) << "hosts that look cost something";
    const bool leased = layout == Layout::leased;
    EXPECT_LE(nothing.write_units / 60, leased ? 1.35 : 0.35);
    EXPECT_LE(nothing.read_units / 60, leased ? 14.5 : 9.0);
    EXPECT_LE(nothing.requests / 60, leased ? 28 : 18);
  }
}

TEST(Month, IsPricedBesideOtherWays) {
  MonthPlan plan = MonthPlan::of_a_shop();
  const MonthCount leased{.hours = 720,
                          .messages = 1e6,
                          .done = 1e6,
                          .attempts = 1.01e6,
                          .write_units = 2e6,
                          .read_units = 1e6,
                          .byte_hours = 720.0 * 1024 * 1024 * 1024};
  MonthCount dynamomq = leased;
  dynamomq.write_units = 6e6;
  const auto costs = costs_of(plan, leased, dynamomq, cost::Prices());
  ASSERT_EQ(costs.size(), 8U);
  EXPECT_NEAR(costs[0].capacity, 7.85 * 0.625 + (75.9 + 8 * 0.5 * 3600 * 720 / 1e6) * 0.125, 1e-6);
  EXPECT_NEAR(costs[2].capacity, 6 * 0.625 + 0.125, 1e-6);
  EXPECT_NEAR(costs[3].capacity, 2 * 0.625 + 0.125, 1e-6);
  EXPECT_NEAR(costs[3].storage, 0.25, 1e-6) << "a GB for a month";
  const double polls = 4 * 720 * 180;
  EXPECT_NEAR(costs[4].requests, 3.02e6 + polls, 1);
  EXPECT_NEAR(costs[4].capacity, costs[4].requests * 0.5 / 1e6, 1e-6) << costs[4].what;
  EXPECT_NEAR(costs[7].requests, 0.302e6 + polls, 1);
  EXPECT_NEAR(costs[7].capacity, costs[7].requests * 0.4 / 1e6, 1e-6) << costs[7].what;
}

}  // namespace
}  // namespace sluice::bench
