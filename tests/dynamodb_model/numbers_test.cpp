#include "tests/support/dynamodb_model/numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

TEST(ModelNumbers, AreStoredWithoutExponentsAndNeedlessZeros) {
  EXPECT_EQ(canonical_number("007"), "7");
  EXPECT_EQ(canonical_number("-0"), "0");
  EXPECT_EQ(canonical_number("1.50"), "1.5");
  EXPECT_EQ(canonical_number(".5"), "0.5");
  EXPECT_EQ(canonical_number("1E3"), "1000");
  EXPECT_EQ(canonical_number("12e-4"), "0.0012");
  EXPECT_EQ(canonical_number("12345678901234567890123456789012345678"), "12345678901234567890123456789012345678");
}

TEST(ModelNumbers, BeyondDynamoDBsRangeAreRefused) {
  EXPECT_NO_THROW(canonical_number("9.9999999999999999999999999999999999999E125"));
  EXPECT_NO_THROW(canonical_number("1E-130"));
  for (const char* text :
       {"1E126", "1E-131", "123456789012345678901234567890123456789", "", "x", "1e", "--1", "1.2.3"}) {
    EXPECT_THROW(canonical_number(text), Failure) << text;
  }
}

TEST(ModelNumbers, AddAndSubtractExactly) {
  EXPECT_EQ(add_numbers("0.1", "0.2"), "0.3");
  EXPECT_EQ(add_numbers("999", "1"), "1000");
  EXPECT_EQ(add_numbers("-5", "3"), "-2");
  EXPECT_EQ(subtract_numbers("1000", "0.001"), "999.999");
  EXPECT_EQ(subtract_numbers("7", "7"), "0");
  EXPECT_EQ(subtract_numbers("-7", "-9"), "2");
}

TEST(ModelNumbers, SortBytesOrderAsTheNumbersDo) {
  const std::vector<std::string> ordered = {"-1000", "-10.5", "-10", "-9",   "-0.01", "0",   "0.001",  "0.01",
                                            "1",     "9",     "10",  "10.5", "11",    "100", "1000000"};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t k = 0; k < ordered.size(); ++k) {
      EXPECT_EQ(number_sort_bytes(ordered[i]) < number_sort_bytes(ordered[k]), i < k)
          << ordered[i] << " " << ordered[k];
      EXPECT_EQ(compare_numbers(ordered[i], ordered[k]) < 0, i < k) << ordered[i] << " " << ordered[k];
    }
  }
}

}  // namespace
}  // namespace sluice::test::model
