#include "base/text/visible.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace sluice {
namespace {

using std::string_literals::operator""s;

std::string json_string(std::string_view text) {
  std::string out;
  append_visible_json(out, text);
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

TEST(Visible, EscapesWhatShowsNothingOrTurnsTheOrderOfWhatIsShown) {
  for (const auto& [hidden, escape] :
       std::vector<std::pair<std::string, std::string>>{{"\u00ad", "00ad"},  // soft hyphen
                                                        {"\u061c", "061c"},  // Arabic letter mark
                                                        {"\u180e", "180e"},  // a vowel separator that shows nothing
                                                        {"\u200b", "200b"},  // zero width space
                                                        {"\u200e", "200e"},  // left-to-right mark
                                                        {"\u2028", "2028"},  // line separator
                                                        {"\u202a", "202a"},  // left-to-right embedding
                                                        {"\u202e", "202e"},  // right-to-left override
                                                        {"\u2066", "2066"},  // left-to-right isolate
                                                        {"\u2069", "2069"},  // its end
                                                        {"\ufeff", "feff"},  // byte order mark
                                                        {"\ufffb", "fffb"},  // interlinear annotation
                                                        {"\U000e0041", "db40\\udc41"}}) {  // a tag, as JSON writes it
    EXPECT_EQ(visible("a" + hidden + "b"), "a\\u" + escape + "b");
    EXPECT_EQ(json_string("a" + hidden + "b"), "\"a\\u" + escape + "b\"");
    EXPECT_EQ(boost::json::parse(json_string(hidden)).as_string(), hidden) << "in JSON the escape is the character";
  }
  // What words and pictures are made with.
  const std::string text = "نامه‌ای 👨\u200d👩 क्\u200dष é \u2027\u202f\ufffc\ufffd\U000e0100";
  EXPECT_EQ(visible(text), text);
  EXPECT_EQ(json_string(text), '"' + text + '"');
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
}  // namespace sluice
