#include <gtest/gtest.h>

#include "dynamo/codec/json_codec.hpp"

namespace sluice::dynamo {
namespace {

using std::string_literals::operator""s;

std::string plain_failure(std::string_view json) {
  const Result<AttributeValue> value = from_plain_json(json);
  if (value) {
    return "it was accepted";
  }
  EXPECT_EQ(value.error().kind, ErrorKind::validation);
  EXPECT_EQ(value.error().message.find('\n'), std::string::npos) << value.error().message;
  return value.error().message;
}

std::string nested(std::size_t levels, const std::string& inner) {
  return std::string(levels, '[') + inner + std::string(levels, ']');
}

TEST(PlainJson, WritesEveryType) {
  const Item map{{"z", AttributeValue(Number{"1"})}, {"a\"\n", AttributeValue(List{})}, {"B", AttributeValue()}};
  EXPECT_EQ(to_plain_json(AttributeValue(map)), R"({"B":null,"a\"\n":[],"z":1})");
  EXPECT_EQ(to_plain_json(AttributeValue(Binary{"\xff\0x"s})), R"("/wB4")");
  EXPECT_EQ(to_plain_json(AttributeValue(StringSet{{"b", "a"}})), R"(["b","a"])");
  EXPECT_EQ(to_plain_json(AttributeValue(NumberSet{{"2", "1.50"}})), "[2,1.50]");
  EXPECT_EQ(to_plain_json(AttributeValue(BinarySet{{"a", ""}})), R"(["YQ==",""])");
  EXPECT_EQ(to_plain_json(AttributeValue(List{AttributeValue(true), AttributeValue(false)})), "[true,false]");
  EXPECT_EQ(to_plain_json(AttributeValue("\x01\x1f\x7f</\u2028\xff")), "\"\\u0001\\u001f\x7f</\u2028\xEF\xBF\xBD\"");
}

TEST(PlainJson, NumbersKeepAllTheirDigits) {
  const std::string digits = "-1234567890123456789012345678.9012345678";
  EXPECT_EQ(to_plain_json(AttributeValue(Number{digits})), digits);
  const Result<AttributeValue> value =
      from_plain_json("[" + digits + ",1.10,1E-130,9.9999999999999999999999999999999999999E+125,-0]");
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ(to_plain_json(*value), "[" + digits + ",1.10,1E-130,9.9999999999999999999999999999999999999E+125,-0]");
}

TEST(PlainJson, NumbersThatJsonCannotSpellAreMended) {
  const std::pair<std::string, std::string> cases[] = {
      {"+5", "5"},         {".5", "0.5"},    {"-.5e3", "-0.5e3"}, {"5.", "5"},        {"007", "7"}, {"000", "0"},
      {"-00.10", "-0.10"}, {"1E+5", "1E+5"}, {"5.E2", "5E2"},     {"abc", "\"abc\""}, {"", "\"\""}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(to_plain_json(AttributeValue(Number{text})), expected);
  }
}

TEST(PlainJson, ReadsEveryType) {
  const Result<AttributeValue> value = from_plain_json(R"( {"a":[1,"x",true,false,null,{}],"b":{"c":[]}} )");
  ASSERT_TRUE(value) << value.error().message;
  const Map expected{{"a", List{Number{"1"}, AttributeValue("x"), AttributeValue(true), AttributeValue(false),
                                AttributeValue(), AttributeValue(Map{})}},
                     {"b", Map{{"c", AttributeValue(List{})}}}};
  EXPECT_EQ(*value, AttributeValue(expected));
  EXPECT_EQ(*from_plain_json("\"\\u0000\\ud83d\\ude00\""), AttributeValue("\0\U0001F600"s));
}

TEST(PlainJson, RefusesDuplicateKeys) {
  EXPECT_EQ(plain_failure("{\"a\":1,\n \"a\":2}"),
            "the JSON is wrong at line 2, column 6: the name \"a\" is there twice");
  EXPECT_NE(plain_failure(R"({"x":{"\u0061":1,"a":2}})").find("\"a\" is there twice"), std::string::npos);
  EXPECT_NE(plain_failure("{\"k\\n\":1,\"k\\n\":2}").find("\"k\\n\" is there twice"), std::string::npos);
}

TEST(PlainJson, DepthIsDynamoDbs) {
  // Checked against the emulator: 31 lists around a number are stored, 32 are not; 32 lists around nothing are.
  EXPECT_TRUE(from_plain_json(nested(31, "1")).has_value());
  EXPECT_TRUE(from_plain_json(nested(32, "")).has_value());
  EXPECT_NE(plain_failure(nested(32, "1")).find("32 levels"), std::string::npos);
  EXPECT_NE(plain_failure(nested(33, "")).find("32 levels"), std::string::npos);
  EXPECT_NE(plain_failure(std::string(1'000'000, '[')).find("32 levels"), std::string::npos);
}

TEST(PlainJson, RefusesNumbersThatDynamoDbCannotHold) {
  EXPECT_EQ(plain_failure("[1,\n1" + std::string(38, '1') + "]"),
            "the JSON is wrong at line 2, column 40: DynamoDB cannot hold the number 1" + std::string(38, '1') +
                ": it has 39 significant digits and DynamoDB keeps 38");
  for (const std::string& text :
       {"1e126"s, "-1E+126"s, "10e125"s, "1e-131"s, "0.1e-130"s, "1e99999999999999999999"s, "-1e-99999999999999999999"s,
        "1" + std::string(126, '0'), "0." + std::string(130, '0') + "1"}) {
    EXPECT_NE(plain_failure(text).find("DynamoDB cannot hold"), std::string::npos) << text;
  }
}

TEST(PlainJson, HoldsNumbersThatDynamoDbCan) {
  for (const std::string& text : {"0"s, "0.000"s, std::string(38, '9'), std::string(38, '9') + std::string(88, '0'),
                                  "0." + std::string(129, '0') + "1"s, "1e125"s, "0.01e127"s, "1000e-133"s,
                                  "1e0000000000000000000000001"s, "1.5e+0"s}) {
    EXPECT_TRUE(from_plain_json(text).has_value()) << text << ": " << plain_failure(text);
  }
  EXPECT_EQ(*from_plain_json("0e999999999999999999999"), AttributeValue(Number{"0"}));
}

TEST(PlainJson, RefusesBadTextAndTruncations) {
  EXPECT_NE(plain_failure("\"\xff\"").find("not UTF-8"), std::string::npos);
  EXPECT_NE(plain_failure("\"\\ud800\"").find("surrogate"), std::string::npos);
  EXPECT_NE(plain_failure("{\"a\":1} x").find("more text"), std::string::npos);
  EXPECT_EQ(plain_failure(""), "the JSON is wrong at line 1, column 1: a value is expected");
  const std::string json = R"({"a":[1.5e3,"x\u00e9",true,null,{"b":"c"}],"d":-1})";
  for (std::size_t size = 0; size < json.size(); ++size) {
    ASSERT_FALSE(from_plain_json(json.substr(0, size)).has_value()) << size;
  }
}

TEST(PlainJson, SizeIsLimited) {
  EXPECT_NE(plain_failure("\"" + std::string(kMaxPlainJsonBytes, 'x') + "\"").find("16 MiB"), std::string::npos);
}

TEST(NumberObjection, IsEmptyForWhatFits) {
  EXPECT_EQ(number_objection("1"), "");
  EXPECT_EQ(number_objection("-0.00120"), "");
  EXPECT_EQ(number_objection("x"), "it is not a number");
  EXPECT_NE(number_objection("1e126"), "");
  EXPECT_NE(number_objection("1e-131"), "");
}

}  // namespace
}  // namespace sluice::dynamo
