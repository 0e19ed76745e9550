#include "bench/month.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "tests/support/simulated_fleet/world.hpp"

namespace sluice::bench {

using namespace std::chrono_literals;
using test::sim::Layout;
using test::sim::Scene;
using test::sim::World;

namespace {

constexpr int kDays = 30;
constexpr int kHoursADay = 24;
constexpr int kDaysAWeek = 7;
constexpr int kFirstOfWeekend = 5;
constexpr std::array<double, kHoursADay> kWeekday{1,  1,  1,  1,  1,  1,  4,  4,  10, 10, 15, 15,
                                                  10, 10, 15, 15, 15, 20, 20, 20, 10, 10, 4,  4};
constexpr std::array<double, kHoursADay> kWeekend{1,  1,  1,  1,  1,  1,  1,  1,  4, 4, 10, 10,
                                                  10, 10, 10, 10, 10, 10, 10, 10, 4, 4, 1,  1};
constexpr int kBatchHour = 2;
constexpr int kDeployHour = 11;
constexpr int kTuesday = 1;
constexpr int kThursday = 3;
constexpr int kCrashDay = 16;
constexpr int kCrashHour = 18;

HourKind::Event event_of(int day, int hour) {
  const int weekday = day % kDaysAWeek;
  if (hour == kBatchHour) {
    return HourKind::Event::batch;
  }
  if (hour == kDeployHour && (weekday == kTuesday || weekday == kThursday)) {
    return HourKind::Event::deploy;
  }
  return day == kCrashDay && hour == kCrashHour ? HourKind::Event::crash : HourKind::Event::none;
}

// Parts of an hour.
constexpr int kUntilEvent = 6;
constexpr int kJoining = 180;  // a new host has come, and the old one is told to go
constexpr int kLeaving = 90;   // until the next one's turn
constexpr int kReplacement = 60;

// DynamoMQ's own algorithm for a message: what cannot be saved where nothing else is queued and no race is lost (a
// consistent read and a put, a query, a claim, a deletion), and what it took in an emulator where four consumers drain
// 2,000 messages. Each consumer looks once a second.
constexpr double kOwnWrites = 6;
constexpr double kOwnReads = 1.5;
constexpr double kOwnWritesDraining = 7.85;
constexpr double kOwnReadsDraining = 75.9;
constexpr double kEmptyLook = 0.5;
constexpr double kSecondsAnHour = 3600;

constexpr double kSqsBatch = 10;
constexpr double kLongPollsAnHour = 180;  // of 20 seconds each

MonthCost simulated(std::string what, const MonthCount& count, const cost::Prices& prices) {
  return {.what = std::move(what),
          .how = "simulated",
          .write_units = count.write_units,
          .read_units = count.read_units,
          .requests = count.requests,
          .capacity = prices.of({count.requests, count.read_units, count.write_units}),
          .storage = prices.of_storage(count.bytes())};
}

MonthCost own_consumers(const MonthPlan& plan, const MonthCount& count, bool draining, const MonthCost& ours,
                        const cost::Prices& prices) {
  const auto lookers = static_cast<double>(plan.scene.hosts * plan.scene.queues.size());
  MonthCost cost{.what = std::string("DynamoMQ's table, its own consumers, ") + (draining ? "at most" : "at least"),
                 .how = draining ? "measured draining 2,000" : "computed"};
  cost.write_units = count.messages * (draining ? kOwnWritesDraining : kOwnWrites);
  cost.read_units =
      count.messages * (draining ? kOwnReadsDraining : kOwnReads) + lookers * count.hours * kSecondsAnHour * kEmptyLook;
  cost.capacity = prices.of({0, cost.read_units, cost.write_units});
  cost.storage = ours.storage;
  return cost;
}

// A request to send, one to receive and one for the end of each attempt; and long polls of the queues that are idle.
MonthCost sqs(const MonthPlan& plan, const MonthCount& count, bool fifo, bool batched, const cost::Prices& prices) {
  const auto idle = static_cast<double>(plan.scene.hosts * (plan.scene.queues.size() - 1));
  MonthCost cost{
      .what = std::string(fifo ? "SQS FIFO, " : "SQS standard, ") + (batched ? "ten a request" : "one a request"),
      .how = "computed"};
  cost.requests =
      (count.messages + 2 * count.attempts) / (batched ? kSqsBatch : 1) + idle * count.hours * kLongPollsAnHour;
  cost.capacity = fifo ? prices.of_sqs_fifo_requests(cost.requests) : prices.of_sqs_requests(cost.requests);
  return cost;
}

}  // namespace

std::string HourKind::name() const {
  constexpr std::array<const char*, 4> kEvents{"", ", nightly batch", ", deploy", ", a host dies"};
  return std::to_string(static_cast<int>(rate)) + " a second" + kEvents.at(static_cast<std::size_t>(event));
}

std::vector<HourKind> hours_of_a_month() {
  std::map<std::pair<double, HourKind::Event>, int> times;
  for (int day = 0; day < kDays; ++day) {
    const auto& rates = day % kDaysAWeek < kFirstOfWeekend ? kWeekday : kWeekend;
    for (int hour = 0; hour < kHoursADay; ++hour) {
      ++times[{rates.at(static_cast<std::size_t>(hour)), event_of(day, hour)}];
    }
  }
  std::vector<HourKind> kinds;
  kinds.reserve(times.size());
  for (const auto& [kind, count] : times) {
    kinds.push_back({.rate = kind.first, .event = kind.second, .times = count});
  }
  return kinds;
}

MonthPlan MonthPlan::of_a_shop() {
  MonthPlan plan;
  plan.hours = hours_of_a_month();
  plan.scene = {.hosts = 4,
                .shards = 8,
                .workers = 8,
                .queues = {"orders", "reports"},
                .handler = 50ms,
                .failures = 0.01,
                .producers = 4,
                .batch = 1,
                .bytes = 700,
                .notices = true};
  return plan;
}

MonthCount MonthCount::of(const test::sim::Report& report, Duration hour) {
  MonthCount count;
  const double hours = report.seconds / std::chrono::duration<double>(hour).count();
  count.hours = hours;
  count.messages = static_cast<double>(report.sent);
  count.done = static_cast<double>(report.done);
  count.attempts = static_cast<double>(report.done + report.failed);
  count.twice = static_cast<double>(report.twice);
  count.write_units = report.write_units;
  count.read_units = report.read_units;
  count.requests = static_cast<double>(report.requests);
  count.throttled = static_cast<double>(report.throttled);
  count.byte_hours = report.byte_seconds / std::chrono::duration<double>(hour).count();
  return count;
}

MonthCount& MonthCount::operator+=(const MonthCount& other) {
  hours += other.hours;
  messages += other.messages;
  done += other.done;
  attempts += other.attempts;
  twice += other.twice;
  write_units += other.write_units;
  read_units += other.read_units;
  requests += other.requests;
  throttled += other.throttled;
  byte_hours += other.byte_hours;
  return *this;
}

MonthCount operator*(const MonthCount& count, double times) {
  return {count.hours * times,     count.messages * times,    count.done * times,       count.attempts * times,
          count.twice * times,     count.write_units * times, count.read_units * times, count.requests * times,
          count.throttled * times, count.byte_hours * times};
}

MonthCount simulate_hour(const MonthPlan& plan, const HourKind& kind, Layout layout) {
  Scene scene = plan.scene;
  scene.layout = layout;
  scene.rate = kind.rate;
  World world(scene);
  world.run_for(plan.warm_up);  // as long for either layout, so that the same messages come
  world.measure();
  const Duration first = plan.hour / kUntilEvent;
  Duration left = plan.hour;
  const auto pass = [&](Duration span) {
    world.run_for(span);
    left -= span;
  };
  if (kind.event == HourKind::Event::batch) {
    world.burst(plan.batch, first);
  } else if (kind.event == HourKind::Event::deploy) {
    pass(first);
    for (std::uint32_t host = 0; host < scene.hosts; ++host) {
      world.add_host();
      pass(plan.hour / kJoining);
      world.leave(host);
      pass(plan.hour / kLeaving);
    }
  } else if (kind.event == HourKind::Event::crash) {
    pass(first);
    world.kill(0);
    pass(plan.hour / kReplacement);
    world.add_host();
  }
  world.run_for(left);
  return MonthCount::of(world.report(), plan.hour);
}

std::vector<MonthCost> costs_of(const MonthPlan& plan, const MonthCount& leased, const MonthCount& dynamomq,
                                const cost::Prices& prices) {
  const MonthCost ours = simulated("DynamoMQ's table, this product's hosts", dynamomq, prices);
  std::vector<MonthCost> costs;
  costs.push_back(own_consumers(plan, dynamomq, true, ours, prices));
  costs.push_back(own_consumers(plan, dynamomq, false, ours, prices));
  costs.push_back(ours);
  costs.push_back(simulated("the leased layout", leased, prices));
  for (const bool fifo : {true, false}) {
    for (const bool batched : {false, true}) {
      costs.push_back(sqs(plan, leased, fifo, batched, prices));
    }
  }
  return costs;
}

}  // namespace sluice::bench
