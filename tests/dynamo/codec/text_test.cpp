#include "dynamo/codec/text.hpp"

#include <gtest/gtest.h>

namespace sluice::dynamo {
namespace {

using std::string_literals::operator""s;

TEST(Base64, KnownAnswersOfRfc4648) {
  const std::pair<std::string, std::string> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"\xff\xfe", "//4="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    std::string encoded;
    append_base64(encoded, bytes);
    EXPECT_EQ(encoded, text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, PadsAsItMust) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\x00"s), "//4A");
}

TEST(Base64, EveryByteAndLengthComesBack) {
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    std::string encoded;
    append_base64(encoded, bytes);
    ASSERT_EQ(decode_base64(encoded), bytes) << i;
    bytes.push_back(static_cast<char>(i * 7));
  }
}

TEST(Base64, RefusesWhatIsNotBase64) {
  for (const std::string& text : {"Z"s, "Zg"s, "Zg="s, "Zg==="s, "===="s, "Z==="s, "Zh=="s, "Zm9="s, "Zg==Zg=="s,
                                  "Zm 9v"s, "Zm9v\n"s, "Zm-_"s, "Zm9\0"s, "\xff\xff\xff\xff"s}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

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

// The fast path looks at eight bytes at once; every byte at every place must come to the same as one at a time.
TEST(PlainRun, EveryByteAtEveryPlace) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool plain = byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
    for (std::size_t place = 0; place < 20; ++place) {
      std::string text(20, 'x');
      text[place] = c;
      ASSERT_EQ(plain_run(text), plain ? text.size() : place) << byte << " at " << place;
    }
  }
}

}  // namespace
}  // namespace sluice::dynamo
