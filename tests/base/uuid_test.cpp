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

TEST(Random, RepeatsItselfFromOneSeed) {
  SeededRandom one(42);
  SeededRandom two(42);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(one.next(), two.next());
  }
}

}  // namespace
}  // namespace sluice
