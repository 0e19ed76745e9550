#include "base/text/decimal.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sluice {
namespace {

TEST(Decimal, KnowsJsonsSpellings) {
  for (const char* const text :
       {"0", "-0", "12", "0.5", "-12.50e3", "1E+400", "1e-7", "123456789012345678901234567890"}) {
    EXPECT_TRUE(is_json_number(text)) << text;
  }
  for (const char* const text : {"", "-", "+1", "01", ".5", "1.", "1e", "1e+", "0x1", "1 ", "NaN", "1.2.3", "--1"}) {
    EXPECT_FALSE(is_json_number(text)) << text;
  }
}

TEST(Decimal, ComparesByValueAndExactly) {
  struct Case {
    const char* left;
    const char* right;
    int order;
  };
  for (const Case& one :
       {Case{"9007199254740993", "9007199254740992", 1}, Case{"1.0", "1", 0}, Case{"1e3", "1000", 0},
        Case{"0.1e1", "1.000", 0}, Case{"-0", "0.00", 0}, Case{"0e99", "0", 0}, Case{"-1", "0", -1},
        Case{"-2", "-10", 1}, Case{"2", "10", -1}, Case{"0.09", "0.1", -1}, Case{"1e400", "9e399", 1},
        Case{"-1e400", "1", -1}, Case{"1e-400", "0", 1}, Case{"0.30000000000000000001", "0.3", 1}, Case{"120", "12", 1},
        Case{"123", "12", 1}, Case{"1e99999999999999999999", "1e99999", 1},
        Case{"1e-99999999999999999999", "1e-99999", -1},
        Case{"99999999999999999999999999999999999999", "99999999999999999999999999999999999998", 1}}) {
    const auto order = compare_decimals(one.left, one.right);
    EXPECT_EQ(order < 0 ? -1 : order > 0 ? 1 : 0, one.order) << one.left << " and " << one.right;
    const auto back = compare_decimals(one.right, one.left);
    EXPECT_EQ(back < 0 ? -1 : back > 0 ? 1 : 0, -one.order) << one.right << " and " << one.left;
  }
}

TEST(Decimal, AgreesWithIntegersHoweverTheyAreSpelled) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    const auto left = static_cast<std::int64_t>(random() % 4001) - 2000;
    const auto right = static_cast<std::int64_t>(random() % 4001) - 2000;
    const auto spelled = [&random](std::int64_t number) {
      const auto zeros = random() % 4;
      const std::string text = std::to_string(number);
      switch (random() % 3) {
        case 0:
          return text + "." + std::string(zeros + 1, '0');
        case 1:
          return text + std::string(zeros, '0') + "e-" + std::to_string(zeros);
        default:
          return text + "e0";
      }
    };
    ASSERT_EQ(compare_decimals(spelled(left), spelled(right)), left <=> right) << left << " and " << right;
  }
}

}  // namespace
}  // namespace sluice
