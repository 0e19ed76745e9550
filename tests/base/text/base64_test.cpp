#include "base/text/base64.hpp"

#include <gtest/gtest.h>

namespace sluice {
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

}  // namespace
}  // namespace sluice
