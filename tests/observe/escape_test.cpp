#include "host/observe/escape.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace sluice::observe {
namespace {

using std::string_literals::operator""s;

std::string visible(std::string_view text) {
  std::string out;
  append_visible(out, text);
  return out;
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(Utf8, TellsValidSequencesFromOthers) {
  for (const std::string& valid : {"a"s, "\0"s, "\xc2\x80"s, "\xdf\xbf"s, "\xe0\xa0\x80"s, "\xed\x9f\xbf"s,
                                   "\xee\x80\x80"s, "\xf0\x90\x80\x80"s, "\xf4\x8f\xbf\xbf"s}) {
    EXPECT_EQ(utf8_length(valid), valid.size()) << visible(valid);
    EXPECT_TRUE(is_utf8(valid));
  }
  // A lone continuation, overlong forms, a surrogate, beyond U+10FFFF, cut sequences, bytes that never occur.
  for (const std::string& invalid :
       {"\x80"s, "\xc0\x80"s, "\xc1\xbf"s, "\xe0\x9f\xbf"s, "\xed\xa0\x80"s, "\xf0\x8f\xbf\xbf"s, "\xf4\x90\x80\x80"s,
        "\xf5\x80\x80\x80"s, "\xc2"s, "\xe2\x82"s, "\xf0\x9f\x98"s, "\xc2\x41"s, "\xe2\x82\x41"s, "\xff"s}) {
    EXPECT_EQ(utf8_length(invalid), 0U) << visible(invalid);
    EXPECT_FALSE(is_utf8("ok" + invalid));
  }
  EXPECT_EQ(utf8_length(""), 0U);
  EXPECT_TRUE(is_utf8(""));
}

TEST(Visible, LeavesTextAndEscapesWhatSteersATerminal) {
  EXPECT_EQ(visible("Grüße, 世界 \\ \" 😀"), "Grüße, 世界 \\ \" 😀");
  EXPECT_EQ(visible("a\nb\r\tc"), R"(a\nb\r\tc)");
  EXPECT_EQ(visible("\x1b[31mred\x7f"s), R"(\u001b[31mred\u007f)");
  EXPECT_EQ(visible("zero\0byte"s), R"(zero\u0000byte)");
  EXPECT_EQ(visible("\xc2\x9b"
                    "31m"),
            R"(\u009b31m)");  // C1: the eight-bit CSI
  EXPECT_EQ(visible("\xff\xc3"), R"(\xff\xc3)");
}

TEST(JsonString, IsAlwaysValidJson) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = "a" + std::string(1, static_cast<char>(byte)) + "b";
    const std::string quoted = json_string(text);
    boost::system::error_code failed;
    const auto parsed = boost::json::parse(quoted, failed);
    ASSERT_FALSE(failed) << byte << " " << quoted;
    if (byte < 0x80) {
      EXPECT_EQ(parsed.as_string(), text);
    }
  }
  EXPECT_EQ(json_string("q\"b\\ \xff"), R"("q\"b\\ \\xff")");
  EXPECT_EQ(json_string(""), R"("")");
}

}  // namespace
}  // namespace sluice::observe
