#include "base/text/utf8.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::string_literals::operator""s;

TEST(Utf8, LengthsOfValidSequences) {
  EXPECT_EQ(utf8_length("a"), 1u);
  EXPECT_EQ(utf8_length("\0"s), 1u);
  EXPECT_EQ(utf8_length("\xC2\x80"), 2u);
  EXPECT_EQ(utf8_length("\xE0\xA0\x80"), 3u);
  EXPECT_EQ(utf8_length("\xEF\xBF\xBF"), 3u);
  EXPECT_EQ(utf8_length("\xF0\x90\x80\x80"), 4u);
  EXPECT_EQ(utf8_length("\xF4\x8F\xBF\xBF"), 4u);
}

TEST(Utf8, RefusesOverlongSurrogatesBeyondAndCut) {
  for (const std::string& text :
       {""s, "\x80"s, "\xC0\xAF"s, "\xC1\xBF"s, "\xE0\x80\xAF"s, "\xE0\x9F\xBF"s, "\xED\xA0\x80"s, "\xED\xBF\xBF"s,
        "\xF0\x80\x80\xAF"s, "\xF0\x8F\xBF\xBF"s, "\xF4\x90\x80\x80"s, "\xF5\x80\x80\x80"s, "\xFE"s, "\xFF"s, "\xC3"s,
        "\xE2\x82"s, "\xF0\x9F\x98"s, "\xE2\x28\xA1"s}) {
    EXPECT_EQ(utf8_length(text), 0u) << testing::PrintToString(text);
  }
}

TEST(Utf8, EveryCodePointIsWrittenAsItIsRead) {
  for (unsigned point = 0; point <= 0x10FFFF; point += point < 0x900 ? 1 : 97) {
    if (point >= 0xD800 && point <= 0xDFFF) {
      continue;
    }
    std::string text;
    append_utf8(text, point);
    ASSERT_EQ(utf8_length(text), text.size()) << point;
  }
}

TEST(Utf8, TellsWholeTexts) {
  for (const std::string& good :
       {""s, "plain ASCII, longer than a word"s, "Grüße, 世界 😀"s, "eight+++\xC2\x80"s, "a\0b"s}) {
    EXPECT_TRUE(is_utf8(good)) << testing::PrintToString(good);
  }
  // A bad byte is found wherever it lies, also where eight bytes are looked at at once.
  for (std::size_t place = 0; place < 20; ++place) {
    for (const char bad : {'\x80', '\xC0', '\xF5', '\xFF'}) {
      std::string text(20, 'x');
      text[place] = bad;
      EXPECT_FALSE(is_utf8(text)) << place;
    }
  }
}

TEST(Utf8, CountsCharactersByTheirFirstBytes) {
  EXPECT_EQ(count_utf8(""), 0U);
  EXPECT_EQ(count_utf8("grüße 😀"), 7U);
  EXPECT_EQ(count_utf8("\x80\x80"), 0U);
}

TEST(CleanUtf8, LeavesValidTextAlone) {
  EXPECT_EQ(clean_utf8("", 10), "");
  EXPECT_EQ(clean_utf8("plain", 10), "plain");
  EXPECT_EQ(clean_utf8("h\xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80", 100), "h\xc3\xa9, \xe2\x82\xac, \xf0\x9f\x98\x80");
  EXPECT_EQ(clean_utf8("a\0b"s, 10), "a\0b"s);
}

TEST(CleanUtf8, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(clean_utf8("a\xff"
                       "b",
                       100),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(clean_utf8("\xc3", 100), "\xEF\xBF\xBD");                  // ends too early
  EXPECT_EQ(clean_utf8("\xc3(", 100), "\xEF\xBF\xBD(");                // continuation missing
  EXPECT_EQ(clean_utf8("\xc0\xaf", 100), "\xEF\xBF\xBD\xEF\xBF\xBD");  // overlong
  EXPECT_EQ(clean_utf8("\xe0\x80\x80", 100).size(), 9U);               // overlong
  EXPECT_EQ(clean_utf8("\xed\xa0\x80", 100).size(), 9U);               // surrogate
  EXPECT_EQ(clean_utf8("\xf4\x90\x80\x80", 100).size(), 12U);          // beyond U+10FFFF
  EXPECT_EQ(clean_utf8("\xf5\x80\x80\x80", 100).size(), 12U);
}

TEST(CleanUtf8, NeverPassesTheLimit) {
  EXPECT_EQ(clean_utf8("abcdef", 3), "abc");
  EXPECT_EQ(clean_utf8("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(clean_utf8(std::string(5000, '\xff'), 4096).size(), 4095U);
  EXPECT_EQ(clean_utf8("abc", 0), "");
}

TEST(CutUtf8, CutsBetweenCharacters) {
  EXPECT_EQ(cut_utf8("abc", 3), "abc");
  EXPECT_EQ(cut_utf8("abcd", 3), "abc");
  EXPECT_EQ(cut_utf8("ab\xc3\xa9", 3), "ab");
  EXPECT_EQ(cut_utf8("\xf0\x9f\x98\x80", 3), "");
  EXPECT_EQ(cut_utf8("a\xf0\x9f\x98\x80", 5), "a\xf0\x9f\x98\x80");
  EXPECT_EQ(cut_utf8(std::string(10, '\x80'), 5).size(), 5U);  // no UTF-8 at all
}

TEST(CleanUtf8, TakesAnotherReplacement) {
  EXPECT_EQ(clean_utf8("grüße", 3, "?"), "gr");
  EXPECT_EQ(clean_utf8("grüße", 4, "?"), "grü");
  EXPECT_EQ(clean_utf8("a\xff"
                       "b\xc3",
                       10, "?"),
            "a?b?");
  for (std::size_t limit = 0; limit < 14; ++limit) {
    const std::string clean = clean_utf8("日\xf0本🙂", limit, "?");
    EXPECT_TRUE(is_utf8(clean));
    EXPECT_LE(clean.size(), limit);
  }
}

}  // namespace
}  // namespace sluice
