#include <gmock/gmock.h>

#include "host/queue/message.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;
using dynamo::Binary;
using dynamo::Number;

void expect_round_trip(const std::string& bytes, const std::string& type) {
  const auto stored = store_body(bytes, type);
  ASSERT_TRUE(stored) << stored.error().message();
  const Body body = read_body(&stored->data, stored->content_type);
  EXPECT_EQ(body.bytes, bytes);
  EXPECT_EQ(body.content_type, type);
}

TEST(Body, PlainTextIsAStringAndNothingElse) {
  const auto stored = store_body("grüße", kTextPlain);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->data, AttributeValue("grüße"));
  EXPECT_EQ(stored->content_type, "");
}

TEST(Body, TextThatIsNotUtf8BecomesBinaryWithItsType) {
  const auto stored = store_body("\xff\xfe", kTextPlain);
  ASSERT_TRUE(stored);
  EXPECT_TRUE(stored->data.is<Binary>());
  EXPECT_EQ(stored->content_type, kTextPlain);
  expect_round_trip("\xff\xfe", std::string(kTextPlain));
}

TEST(Body, EveryKindComesBack) {
  for (const std::string& bytes : {std::string(), std::string("x"), std::string("\0\n", 2), std::string("\xc3\x28")}) {
    for (const std::string_view type : {kTextPlain, kOctetStream, std::string_view("text/csv")}) {
      expect_round_trip(bytes, std::string(type));
    }
  }
  for (const char* json : {R"({"a":[1,0.10,null,true]})", R"("text")", R"("")", "null", "17", "[]"}) {
    const auto stored = store_body(json, kJson);
    ASSERT_TRUE(stored) << json;
    EXPECT_EQ(read_body(&stored->data, stored->content_type).content_type, kJson) << json;
  }
  expect_round_trip(R"({"a":[1,null,true],"b":"x"})", std::string(kJson));
  expect_round_trip(R"("a \" string")", std::string(kJson));
}

TEST(Body, JsonBecomesWhatGoReadersExpect) {
  EXPECT_EQ(store_body("9007199254740993", kJson)->data, AttributeValue(Number{"9007199254740993"}));
  EXPECT_EQ(store_body(R"("text")", kJson)->data, AttributeValue("text"));
  EXPECT_TRUE(store_body(R"({"a":1})", kJson)->data.is<dynamo::Map>());
}

TEST(Body, WhatDynamoDbCannotHoldIsInvalidInOneLine) {
  for (const char* json : {"", "{", "[1e300]", "123456789012345678901234567890123456789", "{} x"}) {
    const auto stored = store_body(json, kJson);
    ASSERT_FALSE(stored) << json;
    EXPECT_EQ(stored.error().code(), ErrorCode::invalid);
    EXPECT_EQ(stored.error().message().find('\n'), std::string::npos);
  }
}

TEST(Body, ForeignDataFallsBackToJson) {
  EXPECT_EQ(read_body(nullptr, "").bytes, "null");
  const AttributeValue set = dynamo::StringSet{{"a", "b"}};
  EXPECT_EQ(read_body(&set, "").bytes, R"(["a","b"])");
  EXPECT_EQ(read_body(&set, "").content_type, kJson);
  const AttributeValue null;
  EXPECT_EQ(read_body(&null, "text/plain").bytes, "null");
  EXPECT_EQ(read_body(&null, "text/plain").content_type, kJson);
}

}  // namespace
}  // namespace sluice::queue::dynamomq
