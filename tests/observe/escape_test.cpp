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
