#include <gtest/gtest.h>

#include "host/cost/cost_book.hpp"

namespace sluice::cost {
namespace {

using std::chrono_literals::operator""min;

Usage units(double count) { return {{1, 0, count}, 1, 1}; }

double write_units(const TopValues::View& view, const std::string& value) {
  for (const TopValues::Named& named : view.values) {
    if (named.value == value) {
      return named.usage.spent.write_units;
    }
  }
  return -1;
}

double whole(const TopValues::View& view) {
  double sum = view.other.spent.write_units + view.gone.spent.write_units;
  for (const TopValues::Named& named : view.values) {
    sum += named.usage.spent.write_units;
  }
  return sum;
}

TEST(TopValues, TellsTheDearestFirst) {
  TopValues values(3);
  values.add("a", units(1), 1);
  values.add("b", units(5), 5);
  values.add("b", units(5), 5);
  const auto view = values.view();
  ASSERT_EQ(view.values.size(), 2U);
  EXPECT_EQ(view.values.front().value, "b");
  EXPECT_EQ(write_units(view, "b"), 10);
}

TEST(TopValues, ANewcomerMustBeDearerThanTheCheapestAndBeginsAtNothing) {
  TopValues values(2);
  values.add("a", units(10), 10);
  values.add("b", units(4), 4);
  values.add("c", units(4), 4);
  auto view = values.view();
  EXPECT_EQ(write_units(view, "c"), -1) << "as dear is not dearer";
  EXPECT_EQ(view.other.spent.write_units, 4);
  values.add("c", units(2), 2);
  view = values.view();
  EXPECT_EQ(write_units(view, "b"), -1);
  EXPECT_EQ(write_units(view, "c"), 2) << "what it used before stays with the others, whose figure must not shrink";
  EXPECT_EQ(view.other.spent.write_units, 4);
  EXPECT_EQ(view.gone.spent.write_units, 4);
  EXPECT_EQ(whole(view), 20);
}

// A counter that falls looks like a restart to Prometheus.
TEST(TopValues, NoFigureOfAValueThatStaysEverShrinks) {
  TopValues values(4);
  double other = 0;
  double first = 0;
  for (int round = 0; round < 2'000; ++round) {
    values.add("big", units(3), 3);
    values.add("v" + std::to_string((round * 37) % 101), units(round % 5), round % 5);
    const auto view = values.view();
    EXPECT_GE(view.other.spent.write_units, other);
    EXPECT_GE(write_units(view, "big"), first);
    other = view.other.spent.write_units;
    first = write_units(view, "big");
  }
  EXPECT_EQ(first, 6'000);
}

TEST(TopValues, HoweverManyThereAreTheHeavyOnesAreFoundAndNothingIsLost) {
  TopValues values(5);
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    values.add("rare-" + std::to_string(i), units(1), 1);
    values.add("heavy-" + std::to_string(i % 3), units(2), 2);
    sum += 3;
  }
  const auto view = values.view();
  EXPECT_EQ(view.values.size(), 5U);
  for (const char* heavy : {"heavy-0", "heavy-1", "heavy-2"}) {
    EXPECT_GT(write_units(view, heavy), 10'000) << heavy;
  }
  EXPECT_EQ(whole(view), sum);
}

TEST(HourRing, KnowsAnHourAndNoMore) {
  HourRing ring;
  const SteadyTime start(std::chrono::hours(1000));
  ring.add(units(5), start);
  ring.add(units(2), start + 30min);
  EXPECT_EQ(ring.sum(start + 30min).spent.write_units, 7);
  EXPECT_EQ(ring.sum(start + 59min).spent.write_units, 7);
  EXPECT_EQ(ring.sum(start + 60min).spent.write_units, 2);
  ring.add(units(1), start + 60min);
  EXPECT_EQ(ring.sum(start + 60min).spent.write_units, 3);
  EXPECT_EQ(ring.sum(start + 1000min).spent.write_units, 0);
}

}  // namespace
}  // namespace sluice::cost
