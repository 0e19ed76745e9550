#include "base/text/json_string.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// Fast paths look at sixteen and at eight bytes at once; every byte at every place must come to the same as one at a
// time.
TEST(PlainRun, EveryByteAtEveryPlace) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool plain = byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
    for (std::size_t place = 0; place < 45; ++place) {
      std::string text(45, 'x');
      text[place] = c;
      ASSERT_EQ(plain_run(text), plain ? text.size() : place) << byte << " at " << place;
    }
  }
}

TEST(JsonString, EscapesWhatJsonMustAndReplacesWhatIsNoUtf8) {
  const auto quoted = [](std::string_view text) {
    std::string out = "before ";
    append_json_string(out, text);
    return out.substr(7);
  };
  EXPECT_EQ(quoted(""), R"("")");
  EXPECT_EQ(quoted("q\"b\\ \n\r\t\x01 ü 😀"), R"("q\"b\\ \n\r\t\u0001 ü 😀")");
  EXPECT_EQ(quoted("a\xff\xc3"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace sluice
