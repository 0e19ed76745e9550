#include "base/text/lower_case.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(LowerCase, ChangesTheLettersOfAsciiAlone) {
  EXPECT_EQ(lower_case("X-Amz-Date [@Z`z{]"), "x-amz-date [@z`z{]");
  EXPECT_EQ(lower_case("\xc3\x84\xff\x01"), "\xc3\x84\xff\x01");
}

}  // namespace
}  // namespace sluice
