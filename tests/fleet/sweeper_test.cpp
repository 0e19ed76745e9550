#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/fleet/board_poll_schedule.hpp"
#include "host/fleet/fleet.hpp"

namespace sluice::fleet {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr WallTime kNow{std::chrono::seconds(1'700'000'000)};
constexpr SteadyTime kSteady{std::chrono::hours(5)};

queue::Notice notice(const std::string& key, WallTime at) {
  HostRecord record;
  record.name = key;
  record.every = 30s;
  return {.key = key, .text = write_record(record, 4'096), .version = 3, .posted_at = at};
}

std::vector<std::string> keys(const std::vector<queue::Notice>& notices) {
  std::vector<std::string> all;
  all.reserve(notices.size());
  for (const queue::Notice& one : notices) {
    all.push_back(one.key);
  }
  return all;
}

TEST(Sweeper, TakesWhatIsLongSilent) {
  Sweeper sweeper("me");
  const std::vector<queue::Notice> all{notice("me", kNow - 9h), notice("dead", kNow - 61min),
                                       notice("resting", kNow - 59min)};
  EXPECT_THAT(keys(sweeper.due(all, kNow, kSteady)), ElementsAre("dead"));
}

TEST(Sweeper, WhatIsDatedInTheFutureOrGarbageGoesWhenItStandsStill) {
  Sweeper sweeper("me");
  std::vector<queue::Notice> all{notice("ahead", kNow + 1'000h), {.key = "garbage", .text = "{", .version = 1}};
  all[1].posted_at = kNow + 1h;
  EXPECT_THAT(sweeper.due(all, kNow, kSteady), IsEmpty());
  EXPECT_THAT(sweeper.due(all, kNow, kSteady + 30min), IsEmpty());
  EXPECT_THAT(keys(sweeper.due(all, kNow, kSteady + 61min)), ElementsAre("ahead", "garbage"));
}

TEST(Sweeper, WhatChangesStays) {
  Sweeper sweeper("me");
  std::vector<queue::Notice> all{notice("ahead", kNow + 1'000h)};
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(sweeper.due(all, kNow, kSteady + i * 50min), IsEmpty());
    ++all[0].version;
  }
}

}  // namespace
}  // namespace sluice::fleet
