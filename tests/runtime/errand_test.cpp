#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "host/runtime/host_events.hpp"

namespace sluice::runtime {
namespace {

TEST(Errand, DoesTheWorkElsewhereAndTheRestHere) {
  HostEvents events;
  Errand errand(events);
  ASSERT_TRUE(errand.start().has_value());
  EXPECT_FALSE(errand.under_way());
  std::thread::id worker;
  bool finished = false;
  errand.send([&] {
    worker = std::this_thread::get_id();
    return Errand::Rest([&] { finished = true; });
  });
  events.wait_until(SteadyTime::max());
  EXPECT_TRUE(errand.under_way()) << "until its rest is done";
  EXPECT_FALSE(finished);
  errand.finish();
  EXPECT_TRUE(finished);
  EXPECT_NE(worker, std::this_thread::get_id());
  EXPECT_FALSE(errand.under_way());
  finished = false;
  errand.finish();
  EXPECT_FALSE(finished) << "once";
}

TEST(Errand, IsWaitedForUntilADrainIsAskedFor) {
  HostEvents events;
  Errand errand(events);
  ASSERT_TRUE(errand.start().has_value());
  bool finished = false;
  const auto rest = [&finished] { finished = true; };
  EXPECT_TRUE(errand.carry_out([&rest] { return Errand::Rest(rest); }));
  EXPECT_TRUE(finished);
  const auto hang = [&] {
    events.ask_drain();
    errand.wait_for(std::chrono::hours(1));
    return Errand::Rest(rest);
  };
  finished = false;
  EXPECT_FALSE(errand.carry_out(hang));
  EXPECT_FALSE(finished);
}

TEST(Errand, AStopEndsAWaitOfTheWork) {
  HostEvents events;
  Errand errand(events);
  ASSERT_TRUE(errand.start().has_value());
  std::atomic<bool> waits{false};
  std::atomic<bool> waited{true};
  errand.send([&] {
    waits = true;
    waits.notify_all();
    waited = errand.wait_for(std::chrono::hours(1));
    return Errand::Rest([] {});
  });
  waits.wait(false);
  errand.stop();
  EXPECT_FALSE(waited);
}

TEST(Errand, StopsBeforeStartAndTwice) {
  HostEvents events;
  Errand never(events);
  never.stop();
  Errand errand(events);
  ASSERT_TRUE(errand.start().has_value());
  errand.stop();
  errand.stop();
}

}  // namespace
}  // namespace sluice::runtime
