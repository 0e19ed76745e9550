// A budget holds settlements back, and loses nothing by it.
#include <gtest/gtest.h>

#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;

struct BudgetedFlow {
  static JobFlow::Settings settings(cost::UnitBudget& budget) {
    JobFlow::Settings wanted = FlowRig::settings();
    wanted.budgets = {&budget};
    return wanted;
  }

  test::FakeClock start;
  cost::UnitBudget budget{{.write_units = 10, .read_units = 0}, start.steady_now()};
  FlowRig rig{1, settings(budget)};

  void owe(double units) { budget.charge({1, 0, 10 + units}, rig.now()); }
  void work_one_off() {
    rig.poll(1);
    ASSERT_NE(rig.start(0), nullptr);
    rig.finish(0);
  }
};

TEST(Budget, ASettlementWaitsUntilTheDebtIsPaidBack) {
  BudgetedFlow flow;
  flow.owe(50);
  flow.work_one_off();
  EXPECT_EQ(flow.rig.settle(), 0U);
  EXPECT_TRUE(flow.budget.holds(flow.rig.now()));
  const auto order = flow.rig.flow.next_settlement(flow.rig.now(), flow.rig.clock.wall_now(), flow.rig.effects);
  EXPECT_EQ(order.wake, flow.rig.now() + 5s) << "the settler sleeps exactly so long";
  flow.rig.pass(4s);
  EXPECT_EQ(flow.rig.settle(), 0U);
  flow.rig.pass(1s);
  EXPECT_EQ(flow.rig.settle(), 1U);
  EXPECT_EQ(flow.rig.account().done, 1U);
}

TEST(Budget, WhatWaitsForItKeepsItsLease) {
  BudgetedFlow flow;
  flow.owe(450);
  flow.work_one_off();
  std::size_t extended = 0;
  for (int i = 0; i < 4; ++i) {
    flow.rig.pass(10s);
    EXPECT_EQ(flow.rig.settle(), 0U);
    extended += flow.rig.extend();
  }
  EXPECT_GE(extended, 1U);
  flow.rig.pass(6s);
  EXPECT_EQ(flow.rig.settle(), 1U);
  EXPECT_EQ(flow.rig.account().done, 1U);
  EXPECT_EQ(flow.rig.account().lost, 0U);
}

TEST(Budget, NothingWaitsForItMuchLongerThanAMinute) {
  BudgetedFlow flow;
  flow.owe(1e6);
  flow.work_one_off();
  flow.rig.pass(kLongestHold - 1s);
  const auto order = flow.rig.flow.next_settlement(flow.rig.now(), flow.rig.clock.wall_now(), flow.rig.effects);
  EXPECT_TRUE(order.empty());
  EXPECT_EQ(order.wake, flow.rig.now() + 1s) << "the settler does not sleep until the debt is paid back";
  flow.rig.pass(1s);
  EXPECT_EQ(flow.rig.settle(), 1U) << "it is written on credit";
}

TEST(Budget, ADrainDoesNotWaitForIt) {
  BudgetedFlow flow;
  flow.owe(1e6);
  flow.work_one_off();
  EXPECT_EQ(flow.rig.settle(), 0U);
  flow.rig.flow.drain().begin(flow.rig.now(), flow.rig.now() + 10s, flow.rig.effects);
  EXPECT_EQ(flow.rig.settle(), 1U);
}

}  // namespace
}  // namespace sluice::work
