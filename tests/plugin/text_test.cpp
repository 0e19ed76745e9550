#include "host/plugin/text.hpp"

#include <gtest/gtest.h>

namespace sluice::plugin {
namespace {

using std::string_literals::operator""s;

TEST(CleanText, LeavesValidTextAlone) {
  EXPECT_EQ(clean_text("", 10), "");
  EXPECT_EQ(clean_text("plain", 10), "plain");
  EXPECT_EQ(clean_text("h\xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80", 100), "h\xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80");
  EXPECT_EQ(clean_text("a\0b"s, 10), "a\0b"s);
}

TEST(CleanText, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(clean_text("a\xff"
                       "b",
                       100),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(clean_text("\xc3", 100), "\xEF\xBF\xBD");                  // ends too early
  EXPECT_EQ(clean_text("\xc3(", 100), "\xEF\xBF\xBD(");                // continuation missing
  EXPECT_EQ(clean_text("\xc0\xaf", 100), "\xEF\xBF\xBD\xEF\xBF\xBD");  // overlong
  EXPECT_EQ(clean_text("\xe0\x80\x80", 100).size(), 9U);               // overlong
  EXPECT_EQ(clean_text("\xed\xa0\x80", 100).size(), 9U);               // surrogate
  EXPECT_EQ(clean_text("\xf4\x90\x80\x80", 100).size(), 12U);          // beyond U+10FFFF
  EXPECT_EQ(clean_text("\xf5\x80\x80\x80", 100).size(), 12U);
}

TEST(CleanText, NeverPassesTheLimit) {
  EXPECT_EQ(clean_text("abcdef", 3), "abc");
  EXPECT_EQ(clean_text("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(clean_text(std::string(5000, '\xff'), 4096).size(), 4095U);
  EXPECT_EQ(clean_text("abc", 0), "");
}

TEST(CutText, CutsBetweenCharacters) {
  EXPECT_EQ(cut_text("abc", 3), "abc");
  EXPECT_EQ(cut_text("abcd", 3), "abc");
  EXPECT_EQ(cut_text("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(cut_text("\xf0\x9f\x98\x80", 3), "");
  EXPECT_EQ(cut_text("a\xf0\x9f\x98\x80", 5), "a\xf0\x9f\x98\x80");
  EXPECT_EQ(cut_text(std::string(10, '\x80'), 5).size(), 5U);  // no UTF-8 at all
}

}  // namespace
}  // namespace sluice::plugin
