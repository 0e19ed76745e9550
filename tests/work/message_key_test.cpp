#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/work/idempotency_gate.hpp"

namespace sluice::work {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Kind = config::IdempotencyConfig::Kind;

MessageKey key_by(Kind kind, const std::string& path = {}) {
  config::IdempotencyConfig config;
  config.kind = kind;
  config.path = path;
  return MessageKey(config);
}

std::string at(const std::string& json, const std::string& pointer) {
  const FoundKey found = key_in_json(json, pointer);
  EXPECT_THAT(found.missing, IsEmpty()) << pointer;
  return found.key;
}

TEST(MessageKeyTest, IsTheMessagesIdOrAnAttribute) {
  queue::Message message;
  message.id = "m-1";
  message.attributes["order"] = std::string("a\0\xff", 3);
  EXPECT_EQ(key_by(Kind::message).of(message).key, "m-1");
  EXPECT_TRUE(key_by(Kind::message).own_id());
  EXPECT_EQ(key_by(Kind::attribute, "order").of(message).key, message.attributes["order"]) << "any bytes";
  EXPECT_THAT(key_by(Kind::attribute, "tenant").of(message).missing, HasSubstr("no attribute 'tenant'"));
}

TEST(MessageKeyTest, AnEmptyKeyIsNone) {
  queue::Message message;
  message.attributes["order"] = "";
  message.body = R"({"order": ""})";
  EXPECT_THAT(key_by(Kind::attribute, "order").of(message).missing, HasSubstr("empty"));
  EXPECT_THAT(key_by(Kind::body, "/order").of(message).missing, HasSubstr("empty"));
}

// The examples of RFC 6901, section 5, as far as they name a string or a number.
TEST(MessageKeyTest, FollowsJsonPointers) {
  const std::string json =
      R"({"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8})";
  EXPECT_EQ(at(json, "/foo/0"), "bar");
  EXPECT_EQ(at(json, "/foo/1"), "baz");
  EXPECT_EQ(at(json, "/"), "0");
  EXPECT_EQ(at(json, "/a~1b"), "1");
  EXPECT_EQ(at(json, "/c%d"), "2");
  EXPECT_EQ(at(json, "/e^f"), "3");
  EXPECT_EQ(at(json, "/g|h"), "4");
  EXPECT_EQ(at(json, "/i\\j"), "5");
  EXPECT_EQ(at(json, "/k\"l"), "6");
  EXPECT_EQ(at(json, "/ "), "7");
  EXPECT_EQ(at(json, "/m~0n"), "8");
  EXPECT_EQ(at("\"whole\"", ""), "whole");
  EXPECT_EQ(at(R"({"~1": "tilde"})", "/~01"), "tilde");
}

TEST(MessageKeyTest, NumbersAreTheirText) {
  EXPECT_EQ(at(R"({"n": 12345678901234567890.10})", "/n"), "12345678901234567890.10");
  EXPECT_EQ(at(R"({"n": 1e3})", "/n"), "1e3");
  EXPECT_EQ(at(R"({"n": "1\u00e93"})", "/n"),
            "1\xc3\xa9"
            "3");
}

TEST(MessageKeyTest, SaysWhyThereIsNone) {
  EXPECT_THAT(key_in_json(R"({"a": 1})", "/b").missing, HasSubstr("nothing at '/b'"));
  EXPECT_THAT(key_in_json(R"({"a": [1]})", "/a/1").missing, HasSubstr("nothing at '/a/1'"));
  EXPECT_THAT(key_in_json(R"({"a": [1]})", "/a/-").missing, HasSubstr("nothing"));
  EXPECT_THAT(key_in_json(R"({"a": [1, 2]})", "/a/01").missing, HasSubstr("nothing")) << "no leading zero";
  EXPECT_THAT(key_in_json(R"({"a": {}})", "/a").missing, HasSubstr("neither a string nor a number"));
  EXPECT_THAT(key_in_json(R"({"a": true})", "/a").missing, HasSubstr("neither"));
  EXPECT_THAT(key_in_json(R"({"a": null})", "/a").missing, HasSubstr("neither"));
  EXPECT_THAT(key_in_json("plain text", "/a").missing, HasSubstr("no JSON"));
  EXPECT_THAT(key_in_json(R"({"a": "x"} and more)", "/a").missing, HasSubstr("no JSON"));
  EXPECT_THAT(key_in_json("", "/a").missing, HasSubstr("no JSON"));
  EXPECT_THAT(key_in_json(std::string(200'000, '['), "/0").missing, HasSubstr("no JSON")) << "however deep";
}

TEST(MessageKeyTest, ALongKeyStandsAsItsBeginningAndItsDigest) {
  const std::string limit(kLongestKey, 'k');
  EXPECT_EQ(kept_key(limit), limit);
  const std::string kept = kept_key(std::string(10 * 1024, 'k'));
  EXPECT_THAT(kept, StartsWith(std::string(64, 'k') + "...sha256:"));
  EXPECT_LT(kept.size(), 200U);
  EXPECT_NE(kept, kept_key(std::string(10 * 1024, 'k') + "x")) << "different keys stay different";
  EXPECT_EQ(kept_key(kept), kept) << "either spelling finds it";
}

}  // namespace
}  // namespace sluice::work
