#include "base/text/percent.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Percent, EncodesAllButWhatIsUnreservedOrKept) {
  EXPECT_EQ(percent_encoded("azAZ09-._~"), "azAZ09-._~");
  EXPECT_EQ(percent_encoded("a b/c+%?#"), "a%20b%2Fc%2B%25%3F%23");
  EXPECT_EQ(percent_encoded("/a/b c", "/"), "/a/b%20c");
  EXPECT_EQ(percent_encoded(std::string("\0\xC3\xA4\x7F", 4)), "%00%C3%A4%7F");
  EXPECT_EQ(percent_encoded(""), "");
}

TEST(Percent, DecodesWhatItEncodes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
  }
  EXPECT_EQ(percent_decoded(percent_encoded(all)), all);
  EXPECT_EQ(percent_decoded_loosely(percent_encoded(all)), all);
  EXPECT_EQ(percent_decoded("%c3%A4+"), "\xC3\xA4+");
  EXPECT_EQ(percent_decoded("%2541"), "%41") << "once";
}

TEST(Percent, WhatIsNoEscapeIsRefusedOrStays) {
  for (const std::string text : {"%", "a%", "%4", "%g1", "%1g", "%-1", "%+1", "% 1", "%%41", "%4%31"}) {
    EXPECT_EQ(percent_decoded(text), std::nullopt) << text;
  }
  EXPECT_EQ(percent_decoded_loosely("%"), "%");
  EXPECT_EQ(percent_decoded_loosely("100%, %4 %zz"), "100%, %4 %zz");
  EXPECT_EQ(percent_decoded_loosely("%%41%4%31"), "%A%41");
}

}  // namespace
}  // namespace sluice
