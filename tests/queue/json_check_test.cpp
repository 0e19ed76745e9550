#include "host/queue/json_check.hpp"

#include <gtest/gtest.h>

namespace sluice::queue {
namespace {

using std::string_literals::operator""s;

TEST(JsonChecker, TellsJsonFromOtherText) {
  JsonChecker checker;
  for (const char* json : {"1", "-0.5e+3", "\"x\"", "null", "true", "[]", "{}", " [1, 2] ", "{\"a\":{\"b\":[]}}",
                           "\"\\u00e4 \\ud83d\\ude00 \xc3\xa4\"", "123456789012345678901234567890", "1e999"}) {
    EXPECT_EQ(checker.problem(json), std::nullopt) << json;
  }
  for (const std::string& text :
       {""s, " "s, "{"s, "[1,]"s, "{\"a\":}"s, "{a:1}"s, "'x'"s, "nul"s, "01"s, "1 2"s, "+1"s, "NaN"s, "\"\t\""s,
        "\"\xff\""s, "\"\\ud800\""s, "// c\n1"s, "\xef\xbb\xbf{}"s, "1\0"s}) {
    EXPECT_NE(checker.problem(text), std::nullopt) << text;
  }
  EXPECT_EQ(checker.problem("{}"), std::nullopt) << "a failure leaves no trace";
  EXPECT_NE(checker.problem("{\"a\": hello}")->find("at character 7"), std::string::npos)
      << *checker.problem("{\"a\": hello}");
}

TEST(JsonChecker, BoundsTheDepth) {
  JsonChecker checker;
  EXPECT_EQ(checker.problem(std::string(100, '[') + std::string(100, ']')), std::nullopt);
  EXPECT_NE(checker.problem(std::string(100'000, '[') + std::string(100'000, ']')), std::nullopt);
}

}  // namespace
}  // namespace sluice::queue
