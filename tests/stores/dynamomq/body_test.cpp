#include "host/stores/dynamomq/body.hpp"

#include <gmock/gmock.h>

#include "host/stores/dynamomq/utf8.hpp"
#include "host/queue/message.hpp"

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

TEST(Utf8, AcceptsExactlyWhatIsWellFormed) {
  for (const char* good : {"", "a", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << testing::PrintToString(good);
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xe2\x28\xa1"}) {
    EXPECT_FALSE(is_utf8(bad)) << testing::PrintToString(bad);
  }
}

TEST(Utf8, ClipsBetweenCharacters) {
  EXPECT_EQ(clip_utf8("grüße", 3), "gr");
  EXPECT_EQ(clip_utf8("grüße", 4), "grü");
  EXPECT_EQ(clip_utf8("a\xff"
                      "b",
                      10),
            "a?b");
  EXPECT_EQ(clip_utf8("", 10), "");
  for (std::size_t limit = 0; limit < 12; ++limit) {
    const std::string clipped = clip_utf8("日\xf0本🙂", limit);
    EXPECT_TRUE(is_utf8(clipped));
    EXPECT_LE(clipped.size(), limit);
  }
}

}  // namespace
}  // namespace sluice::queue::dynamomq
