#include <gtest/gtest.h>

#include "host/cost/cost_book.hpp"

namespace sluice::cost {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;

using Call = UnitBudget::Call;

constexpr SteadyTime kStart = SteadyTime(1h);

TEST(UnitBudget, WhatIsNotLimitedNeverWaits) {
  UnitBudget budget({.write_units = 0, .read_units = 10}, kStart);
  budget.charge({1, 0, 1e6}, kStart);
  EXPECT_EQ(budget.ready_at(Call::claim, kStart), kStart);
  EXPECT_EQ(budget.ready_at(Call::settlement, kStart), kStart);
  budget.charge({1, 20, 0}, kStart);
  EXPECT_GT(budget.ready_at(Call::claim, kStart), kStart);
}

TEST(UnitBudget, ADebtIsPaidBackByWaiting) {
  UnitBudget budget({.write_units = 100, .read_units = 0}, kStart);
  EXPECT_EQ(budget.ready_at(Call::settlement, kStart), kStart);
  budget.charge({1, 0, 400}, kStart);  // a second's worth was there: 300 are owed
  EXPECT_NEAR(std::chrono::duration<double>(budget.ready_at(Call::settlement, kStart) - kStart).count(), 3, 1e-6);
  EXPECT_TRUE(budget.holds(kStart + 2900ms));
  EXPECT_EQ(budget.ready_at(Call::settlement, kStart + 3001ms), kStart + 3001ms);
  EXPECT_FALSE(budget.holds(kStart + 3001ms));
}

TEST(UnitBudget, SettlementsGoBeforeClaims) {
  UnitBudget budget({.write_units = 100, .read_units = 0}, kStart);
  budget.charge({1, 0, 100}, kStart);
  EXPECT_EQ(budget.ready_at(Call::settlement, kStart), kStart) << "nothing is owed";
  EXPECT_NEAR(std::chrono::duration<double>(budget.ready_at(Call::claim, kStart) - kStart).count(), 0.25, 1e-6);
}

TEST(UnitBudget, AsksForAsManyMessagesAsItHasRoomFor) {
  UnitBudget budget({.write_units = 100, .read_units = 0}, kStart);
  EXPECT_EQ(budget.most(Call::claim, kStart), 10U) << "nothing was measured yet";
  budget.learn(Call::claim, 10, {1, 0, 20});
  EXPECT_EQ(budget.most(Call::claim, kStart), 50U);
  budget.charge({1, 0, 1000}, kStart);
  EXPECT_EQ(budget.most(Call::claim, kStart), 1U) << "a message at least";
  budget.learn(Call::claim, 0, {1, 3, 0});
  EXPECT_EQ(budget.most(Call::claim, kStart + 1h), 50U) << "a claim that found nothing says nothing of messages";
}

// Somebody who claims whenever he may, for `span`; each message costs two units.
double spend(double rate, Duration span) {
  UnitBudget budget({.write_units = rate, .read_units = 0}, kStart);
  double spent = 0;
  SteadyTime now = kStart;
  while (now < kStart + span) {
    const SteadyTime at = budget.ready_at(Call::claim, now);
    if (at > now) {
      now = at;
      continue;
    }
    const auto messages = static_cast<double>(budget.most(Call::claim, now));
    spent += messages * 2;
    budget.charge({1, 0, messages * 2}, now);
    budget.learn(Call::claim, static_cast<std::size_t>(messages), {1, 0, messages * 2});
  }
  return spent;
}

TEST(UnitBudget, KeepsTheRateOverTime) {
  EXPECT_NEAR(spend(100, 100s), 10'000, 150);
  EXPECT_NEAR(spend(5, 1000s), 5'000, 25);
  EXPECT_NEAR(spend(0.5, 1000s), 500, 21);
}

TEST(UnitBudget, WaitsOfTwoAtATimeCountOnce) {
  UnitBudget budget({.write_units = 10, .read_units = 0}, kStart);
  budget.charge({1, 0, 30}, kStart);  // two seconds of debt
  budget.ready_at(Call::settlement, kStart);
  budget.ready_at(Call::settlement, kStart + 1s);
  EXPECT_NEAR(std::chrono::duration<double>(budget.waited(kStart + 1s)).count(), 1, 1e-6);
  EXPECT_NEAR(std::chrono::duration<double>(budget.waited(kStart + 9s)).count(), 2, 1e-6);
}

}  // namespace
}  // namespace sluice::cost
