#include "base/text/json_check.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using std::string_literals::operator""s;

TEST(JsonCheck, TellsJsonFromOtherText) {
  for (const char* json : {"1", "-0.5e+3", "\"x\"", "null", "true", "[]", "{}", " [1, 2] ", "{\"a\":{\"b\":[]}}",
                           "\"\\u00e4 \\ud83d\\ude00 \xc3\xa4\"", "123456789012345678901234567890", "1e999"}) {
    EXPECT_EQ(json_problem(json), std::nullopt) << json;
  }
  for (const std::string& text :
       {""s, " "s, "{"s, "[1,]"s, "{\"a\":}"s, "{a:1}"s, "'x'"s, "nul"s, "01"s, "1 2"s, "+1"s, "NaN"s, "\"\t\""s,
        "\"\xff\""s, "\"\\ud800\""s, "// c\n1"s, "\xef\xbb\xbf{}"s, "1\0"s}) {
    EXPECT_NE(json_problem(text), std::nullopt) << text;
  }
}

TEST(JsonCheck, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(json_problem("{\"a\": hello}"), "a value is expected at character 7");
  EXPECT_EQ(json_problem("[1] 2"), "there is more text after the value at character 5");
  EXPECT_EQ(json_problem("[1 2]"), "',' or ']' is expected at character 4");
  EXPECT_EQ(json_problem("{\"a\":1,}"), "a name in quotes is expected at character 8");
  for (const char* cut : {"", " ", "[1,", "{\"a", "{\"a\"", "nul", "-", "1.", "\"x"}) {
    EXPECT_EQ(json_problem(cut), "it ends too early") << cut;
  }
}

TEST(JsonCheck, GivesTheCharactersOfAString) {
  EXPECT_EQ(json_string(R"( "a\n\u00fc\ud83d\ude42" )"), "a\n\xC3\xBC\xF0\x9F\x99\x82");
  EXPECT_EQ(json_string(R"("a\u0062\n\"ä")"), "ab\n\"ä");
  EXPECT_EQ(json_string(R"("")"), "");
  for (const char* other : {"7", "\"open", "", "\"a\" b", "[\"a\"]"}) {
    EXPECT_EQ(json_string(other), std::nullopt) << other;
  }
}

TEST(JsonCheck, BoundsTheDepth) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(json_problem(nested(kJsonDepth)), std::nullopt);
  EXPECT_NE(json_problem(nested(kJsonDepth + 1)), std::nullopt);
  EXPECT_NE(json_problem(nested(100'000)), std::nullopt);
}

}  // namespace
}  // namespace sluice
