#include "base/uuid.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace sluice {
namespace {

TEST(Uuid, HasTheShapeOfVersion4AndDoesNotRepeat) {
  SeededRandom random(7);
  const std::regex shape("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string uuid = make_uuid(random);
    EXPECT_TRUE(std::regex_match(uuid, shape)) << uuid;
    EXPECT_TRUE(seen.insert(uuid).second) << uuid;
  }
}

TEST(Uuid, OfVersion7BeginsWithItsTime) {
  SeededRandom random(7);
  const std::regex shape("01909d5c-1a2b-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  const WallTime now{std::chrono::milliseconds(0x01909d5c1a2b) + std::chrono::microseconds(999)};
  std::set<std::string> seen;
  std::set<std::string> thirds;
  for (int i = 0; i < 1000; ++i) {
    const std::string uuid = make_uuid_v7(random, now);
    EXPECT_TRUE(std::regex_match(uuid, shape)) << uuid;
    EXPECT_TRUE(seen.insert(uuid).second) << uuid;
    thirds.insert(uuid.substr(15, 3));
  }
  EXPECT_GT(thirds.size(), 500U) << "the rest is random";
  EXPECT_EQ(make_uuid_v7(random, WallTime{std::chrono::hours(-1)}).substr(0, 15), "00000000-0000-7");
}

TEST(Random, RepeatsItselfFromOneSeed) {
  SeededRandom one(42);
  SeededRandom two(42);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(one.next(), two.next());
  }
}

}  // namespace
}  // namespace sluice
