#include <gtest/gtest.h>

#include "host/stores/table/writer_memory.hpp"

namespace sluice::queue::table {
namespace {

TEST(DoubtfulWrites, AreKeptWithinALimit) {
  DoubtfulWrites doubts;
  for (std::int64_t i = 0; i < 5'000; ++i) {
    doubts.remember(Receipt{"m", i, 0}, {"nonce", {}});
  }
  EXPECT_TRUE(doubts.about(Receipt{"m", 5, 0}).empty());
  EXPECT_EQ(doubts.about(Receipt{"m", 4'999, 0}).size(), 1U);
  doubts.clear(Receipt{"m", 4'999, 0});
  EXPECT_TRUE(doubts.about(Receipt{"m", 4'999, 0}).empty());
}

}  // namespace
}  // namespace sluice::queue::table
