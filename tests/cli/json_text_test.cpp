#include "host/cli/json_text.hpp"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

using std::string_literals::operator""s;

std::string laid_out(std::string_view json, JsonText::Layout layout) {
  JsonText text(layout);
  text.raw(json);
  return text.take_line();
}

TEST(JsonText, IndentsByTwoSpaces) {
  JsonText json(JsonText::Layout::indented);
  json.begin_object();
  json.member("name", "a\"b");
  json.key("list");
  json.begin_array();
  json.value(std::uint64_t{1});
  json.value(std::int64_t{-2});
  json.value(true);
  json.null();
  json.end_array();
  json.key("none");
  json.begin_object();
  json.end_object();
  json.end_object();
  EXPECT_EQ(json.take_line(), R"({
  "name": "a\"b",
  "list": [
    1,
    -2,
    true,
    null
  ],
  "none": {}
}
)");
  json.value("again");
  EXPECT_EQ(json.take_line(), "\"again\"\n");
}

TEST(JsonText, LaysForeignJsonOutAnewAndKeepsItsDigits) {
  const auto* foreign =
      " { \"n\" : 9007199254740993.000100 ,\t\"s\":\"a,:]}\\\"\\\\\" , \"l\" : [ ] , \"m\":[ 1 , {} ] } ";
  EXPECT_EQ(laid_out(foreign, JsonText::Layout::compact),
            "{\"n\":9007199254740993.000100,\"s\":\"a,:]}\\\"\\\\\",\"l\":[],\"m\":[1,{}]}\n");
  EXPECT_EQ(laid_out(foreign, JsonText::Layout::indented),
            "{\n  \"n\": 9007199254740993.000100,\n  \"s\": \"a,:]}\\\"\\\\\",\n  \"l\": [],\n  \"m\": [\n    1,\n    "
            "{}\n  ]\n}\n");
  EXPECT_EQ(laid_out("1e400", JsonText::Layout::compact), "1e400\n");
  EXPECT_EQ(laid_out("\"\"", JsonText::Layout::compact), "\"\"\n");
  EXPECT_EQ(laid_out("null", JsonText::Layout::indented), "null\n");
}

TEST(JsonText, ForeignJsonFitsWhereItStands) {
  JsonText json(JsonText::Layout::indented);
  json.begin_object();
  json.key("data");
  json.raw(R"({"a":[1,2]})");
  json.member("next", true);
  json.end_object();
  EXPECT_EQ(json.take_line(), "{\n  \"data\": {\n    \"a\": [\n      1,\n      2\n    ]\n  },\n  \"next\": true\n}\n");
}

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

TEST(JsonString, GivesItsCharacters) {
  EXPECT_EQ(json_string_characters(R"("a\u0062\n\"ä")"), "ab\n\"ä");
  EXPECT_EQ(json_string_characters(R"("")"), "");
}

TEST(Base64, PadsAsItMust) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\x00"s), "//4A");
}

}  // namespace
}  // namespace sluice::cli
