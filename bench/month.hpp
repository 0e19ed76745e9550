#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/cost/prices.hpp"
#include "tests/support/simulated_fleet/scene.hpp"
#include "tests/support/simulated_fleet/sightings.hpp"

namespace sluice::bench {

/// A kind of hour: what comes in it, and how many such hours a month has. A value.
struct HourKind {
  enum class Event : std::uint8_t {
    none,
    batch,   ///< a nightly batch beside all else
    deploy,  ///< each host is replaced by a new one, one after the other
    crash,   ///< a host dies, and another one comes a minute later
  };

  double rate = 0;  ///< messages a second
  Event event = Event::none;
  int times = 0;

  std::string name() const;
};

/// A shop's month: 30 days from a Monday on, by the hour. The kinds of hours that it has.
std::vector<HourKind> hours_of_a_month();

/// How a month is simulated: one hour of each kind, whole. A value.
struct MonthPlan {
  std::vector<HourKind> hours;
  test::sim::Scene scene;                       ///< hosts, queues and messages; rates are those of the hours
  Duration hour = std::chrono::hours(1);        ///< a shorter one in tests, in which everything is as much shorter
  Duration warm_up = std::chrono::seconds(30);  ///< before an hour is measured; hosts agree within
  std::size_t batch = 20'000;                   ///< messages of the nightly batch, within a sixth of its hour

  /// Four hosts that work on a queue and on one that is idle.
  static MonthPlan of_a_shop();
};

/// What was counted. A value; counts add up.
struct MonthCount {
  double hours = 0;
  double messages = 0;  ///< that were sent
  double done = 0;
  double attempts = 0;
  double twice = 0;
  double write_units = 0;
  double read_units = 0;
  double requests = 0;
  double throttled = 0;
  double byte_hours = 0;

  static MonthCount of(const test::sim::Report& report, Duration hour);
  MonthCount& operator+=(const MonthCount& other);
  friend MonthCount operator*(const MonthCount& count, double times);
  /// What lay in the tables on average.
  double bytes() const { return hours > 0 ? byte_hours / hours : 0; }
};

/// One hour of that kind in that layout.
MonthCount simulate_hour(const MonthPlan& plan, const HourKind& kind, test::sim::Layout layout);

/// What a month comes to in one way to have it. A value.
struct MonthCost {
  std::string what;
  std::string how;  ///< the figure has been got
  double write_units = 0;
  double read_units = 0;
  double requests = 0;
  double capacity = 0;  ///< money, for units or requests
  double storage = 0;

  double money() const { return capacity + storage; }
};

/// By what was simulated in both layouts, and by published figures for the same messages. In the order of their prices
/// as they usually are, the dearest first.
std::vector<MonthCost> costs_of(const MonthPlan& plan, const MonthCount& leased, const MonthCount& dynamomq,
                                const cost::Prices& prices);

}  // namespace sluice::bench
