#include "dynamo/codec/json_codec.hpp"

#include <gtest/gtest.h>

namespace sluice::dynamo {
namespace {

using std::string_literals::operator""s;

Item every_type() {
  Item inner{{"k", AttributeValue("v")}, {"", AttributeValue(Number{"0"})}};
  return Item{
      {"b", Binary{"\0\1\2\xff"s}},
      {"bool", AttributeValue(true)},
      {"bs", BinarySet{{"a", ""}}},
      {"l", List{AttributeValue("x"), AttributeValue(), AttributeValue(List{}), AttributeValue(false)}},
      {"m", inner},
      {"n", Number{"-12345678901234567890.123456789012345678"}},
      {"ns", NumberSet{{"1", "2.50"}}},
      {"null", AttributeValue()},
      {"s", AttributeValue("text")},
      {"ss", StringSet{{"a", "b\n"}}},
  };
}

constexpr std::string_view kEveryType =
    R"({"b":{"B":"AAEC/w=="},"bool":{"BOOL":true},"bs":{"BS":["YQ==",""]},)"
    R"("l":{"L":[{"S":"x"},{"NULL":true},{"L":[]},{"BOOL":false}]},"m":{"M":{"":{"N":"0"},"k":{"S":"v"}}},)"
    R"("n":{"N":"-12345678901234567890.123456789012345678"},"ns":{"NS":["1","2.50"]},"null":{"NULL":true},)"
    R"("s":{"S":"text"},"ss":{"SS":["a","b\n"]}})";

std::string failure(std::string_view json) {
  const Result<Item> item = decode_item(json);
  if (item) {
    return "it was accepted";
  }
  EXPECT_EQ(item.error().kind, ErrorKind::malformed_response);
  EXPECT_EQ(item.error().message.find('\n'), std::string::npos);
  return item.error().message;
}

/// Reads a value where the product reads them, in an item.
Result<Item> decode_one(const std::string& value) { return decode_item("{\"a\":" + value + "}"); }

TEST(JsonCodec, EncodesEveryType) { EXPECT_EQ(encode_item(every_type()), kEveryType); }

TEST(JsonCodec, DecodesEveryType) {
  const Result<Item> item = decode_item(kEveryType);
  ASSERT_TRUE(item) << item.error().message;
  EXPECT_EQ(*item, every_type());
}

TEST(JsonCodec, EmptyItemAndWhiteSpace) {
  EXPECT_EQ(encode_item({}), "{}");
  EXPECT_EQ(*decode_item(" { } "), Item{});
  EXPECT_EQ(*decode_item("{ \"a\" :\t{\"S\" : \"x\" } }\r\n"), (Item{{"a", AttributeValue("x")}}));
}

TEST(JsonCodec, StringsSurviveWithAllTheirCharacters) {
  std::string all;
  for (int c = 0; c < 128; ++c) {
    all.push_back(static_cast<char>(c));
  }
  all += "\u00e9\u2028\u2029\ufeff\uffff\U0001F600\U0010FFFF";
  const Item item{{all, AttributeValue(all)}};
  const std::string json = encode_item(item);
  for (const char c : json) {
    EXPECT_GE(static_cast<unsigned char>(c), 0x20) << "control characters must be escaped";
  }
  EXPECT_EQ(*decode_item(json), item);
}

TEST(JsonCodec, BytesThatAreNotUtf8AreReplacedWhenWritten) {
  const Item item{{"a", AttributeValue("x\xff\xc3(\xed\xa0\x80")}};
  const Result<Item> back = decode_item(encode_item(item));
  ASSERT_TRUE(back);
  EXPECT_EQ(*find<std::string>(*back, "a"), "x\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(JsonCodec, BadTextFromAServerIsReplacedNotRefused) {
  const Result<Item> item = decode_item("{\"a\":{\"S\":\"\\ud800 \xff\"}}");
  ASSERT_TRUE(item) << item.error().message;
  EXPECT_EQ(*find<std::string>(*item, "a"), "\xEF\xBF\xBD \xEF\xBF\xBD");
}

TEST(JsonCodec, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < kEveryType.size(); ++size) {
    ASSERT_FALSE(decode_item(kEveryType.substr(0, size)).has_value()) << size;
  }
}

TEST(JsonCodec, RefusesWrongShapes) {
  for (const std::string& json : {""s,
                                  "null"s,
                                  "[]"s,
                                  "1"s,
                                  "\"a\""s,
                                  R"({"a":1})"s,
                                  R"({"a":"x"})"s,
                                  R"({"a":null})"s,
                                  R"({"a":[]})"s,
                                  R"({"a":{}})"s,
                                  R"({"a":{"X":"x"}})"s,
                                  R"({"a":{"s":"x"}})"s,
                                  R"({"a":{"S":1}})"s,
                                  R"({"a":{"S":null}})"s,
                                  R"({"a":{"S":"x","N":"1"}})"s,
                                  R"({"a":{"S":"x","S":"y"}})"s,
                                  R"({"a":{"N":1}})"s,
                                  R"({"a":{"BOOL":"true"}})"s,
                                  R"({"a":{"BOOL":1}})"s,
                                  R"({"a":{"NULL":false}})"s,
                                  R"({"a":{"NULL":null}})"s,
                                  R"({"a":{"L":{}}})"s,
                                  R"({"a":{"L":[1]}})"s,
                                  R"({"a":{"M":[]}})"s,
                                  R"({"a":{"M":{"b":1}}})"s,
                                  R"({"a":{"SS":"x"}})"s,
                                  R"({"a":{"SS":[1]}})"s,
                                  R"({"a":{"NS":["x"]}})"s,
                                  R"({"a":{"NS":[1]}})"s,
                                  R"({"a":{"BS":["!"]}})"s,
                                  R"({"a":{"S":"x"}} {})"s,
                                  R"({"a":{"S":"x"}}x)"s,
                                  "{\"a\":{\"S\":\"x\"}}\0"s}) {
    EXPECT_FALSE(decode_item(json).has_value()) << json;
  }
}

TEST(JsonCodec, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(failure(R"({"a":{"S":"1"},"a":{"S":"2"}})"),
            "the item cannot be read: the name \"a\" is there twice (line 1, column 20)");
  EXPECT_EQ(failure("{\"a\":\n{\"Q\":1}}"), "the item cannot be read: a value has an unknown type (line 2, column 6)");
  EXPECT_NE(failure(R"({"a":{"B":"a"}})").find("B is not base64"), std::string::npos);
  EXPECT_NE(failure(R"({"a":{"M":{"x":{"S":""},"x":{"S":""}}}})").find("there twice"), std::string::npos);
}

TEST(JsonCodec, NumbersKeepTheirTextAndMustBeNumbers) {
  for (const std::string& text : {"0"s, "-0"s, "1E5"s, "1e-130"s, "9.9E+125"s, "00012"s, "+5"s, ".5"s, "5."s,
                                  "0." + std::string(129, '0') + "1"}) {
    const Result<Item> item = decode_one(R"({"N":")" + text + R"("})");
    ASSERT_TRUE(item) << text;
    EXPECT_EQ(item->at("a").get<Number>()->text, text);
  }
  for (const std::string& text : {""s, "-"s, "."s, "e5"s, "1e"s, "1e+"s, "0x10"s, "1,000"s, "NaN"s, "Infinity"s, " 1"s,
                                  "1 "s, "1.2.3"s, "--1"s, std::string(600, '1')}) {
    EXPECT_FALSE(decode_one(R"({"N":")" + text + R"("})").has_value()) << text;
  }
}

TEST(JsonCodec, DepthIsLimited) {
  const auto nested = [](std::size_t levels) {
    std::string json;
    for (std::size_t i = 0; i < levels; ++i) {
      json += "{\"L\":[";
    }
    for (std::size_t i = 0; i < levels; ++i) {
      json += "]}";
    }
    return json;
  };
  EXPECT_TRUE(decode_one(nested(kMaxValueDepth)).has_value());
  EXPECT_FALSE(decode_one(nested(kMaxValueDepth + 1)).has_value());
  EXPECT_FALSE(decode_one(nested(200'000)).has_value());
  std::string maps;
  for (int i = 0; i < 100'000; ++i) {
    maps += "{\"M\":{\"a\":";
  }
  EXPECT_FALSE(decode_one(maps).has_value());
}

TEST(JsonCodec, SizeIsLimited) {
  const std::string json = "{\"a\":{\"S\":\"" + std::string(kMaxItemJsonBytes, 'x') + "\"}}";
  EXPECT_NE(failure(json).find("16 MiB"), std::string::npos);
}

TEST(AttributeValue, NothingTurnsIntoABoolByAccident) {
  static_assert(!std::is_constructible_v<AttributeValue, int>);
  static_assert(!std::is_constructible_v<AttributeValue, const void*>);
  static_assert(!std::is_constructible_v<AttributeValue, double>);
  EXPECT_TRUE(AttributeValue("x").is<std::string>());
  EXPECT_TRUE(AttributeValue(std::string_view("x")).is<std::string>());
  EXPECT_TRUE(AttributeValue(true).is<bool>());
  EXPECT_TRUE(AttributeValue().is<Null>());
  EXPECT_EQ(AttributeValue::number(-7).get<Number>()->text, "-7");
}

TEST(AttributeValue, FindGivesOnlyTheAskedType) {
  const Item item{{"a", AttributeValue("x")}};
  EXPECT_EQ(*find<std::string>(item, "a"), "x");
  EXPECT_EQ(find<Number>(item, "a"), nullptr);
  EXPECT_EQ(find<std::string>(item, "b"), nullptr);
}

}  // namespace
}  // namespace sluice::dynamo
