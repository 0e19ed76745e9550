#include <gtest/gtest.h>

#include "dynamo/codec/responses.hpp"

namespace sluice::dynamo {
namespace {

TEST(Crc32, KnownAnswers) {
  EXPECT_EQ(crc32(""), 0u);
  EXPECT_EQ(crc32("123456789"), 0xCBF43926u);
}

TEST(Crc32, FittingOrAbsentHeaderIsFine) {
  EXPECT_FALSE(check_crc32({}, "anything"));
  EXPECT_FALSE(check_crc32({{"x-amz-crc32", "3421780262"}}, "123456789"));
  EXPECT_FALSE(check_crc32({{"X-Amz-Crc32", "0"}}, ""));
}

TEST(Crc32, DamageIsMalformedAndLeavesTheOutcomeOpen) {
  for (const std::string announced :
       {"3421780263", "", "abc", "-1", "3421780262x", " 3421780262", "99999999999999999999"}) {
    const auto error = check_crc32({{"x-amz-crc32", announced}}, "123456789");
    ASSERT_TRUE(error) << announced;
    EXPECT_EQ(error->kind, ErrorKind::malformed_response);
    EXPECT_TRUE(error->outcome_unknown);
  }
  EXPECT_TRUE(check_crc32({{"x-amz-crc32", "3421780262"}}, "12345678"));
}

}  // namespace
}  // namespace sluice::dynamo
