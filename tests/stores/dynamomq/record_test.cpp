#include "host/stores/dynamomq/record.hpp"

#include <gmock/gmock.h>

#include "base/timestamp.hpp"
#include "host/queue/message.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/table_clock.hpp"

namespace sluice::queue::dynamomq {
namespace {

using namespace std::chrono_literals;
using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::Number;
using ::testing::ElementsAre;

const WallTime kNow = *parse_timestamp("2026-11-20T23:14:00.5Z");

NewRecord record_of(const std::string& id) { return {id, kNow, "AAAAABBBBBBBBBBB"}; }

TEST(Record, NewOneHasDynamoMqsAttributesAndANonce) {
  const auto item = encode_record({.id = {}, .body = "hello"}, record_of("A-1"));
  ASSERT_TRUE(item);
  std::vector<std::string> names;
  for (const auto& [name, value] : *item) {
    names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("created_at", "data", "id", "invisible_until_at", "queue_type", "receive_count",
                                 "received_at", "sent_at", "sluice_nonce", "updated_at", "version"));
  EXPECT_EQ(item->at("sent_at"), AttributeValue("2026-11-20T23:14:00.500000000Z"));
  EXPECT_EQ(item->at("received_at"), AttributeValue(""));
  EXPECT_EQ(item->at("invisible_until_at"), AttributeValue(""));
  EXPECT_EQ(item->at("version"), AttributeValue(Number{"1"}));
  EXPECT_EQ(item->at("receive_count"), AttributeValue(Number{"0"}));
}

TEST(Record, DelayHoldsForThoseWhoLookAtEitherTime) {
  const auto item = encode_record({.id = {}, .body = "x", .delay = 10s}, record_of("A-1"));
  ASSERT_TRUE(item);
  EXPECT_EQ(item->at("sent_at"), AttributeValue("2026-11-20T23:14:10.500000000Z"));
  EXPECT_EQ(item->at("invisible_until_at"), item->at("sent_at"));
  EXPECT_EQ(item->at("created_at"), AttributeValue("2026-11-20T23:14:00.500000000Z"));
}

TEST(Record, EndlessDelayStaysWithinWhatCanBeWritten) {
  const auto item = encode_record({.id = {}, .body = "x", .delay = Duration::max()}, record_of("A-1"));
  ASSERT_TRUE(item);
  EXPECT_EQ(item->at("sent_at"), AttributeValue("2261-12-31T23:59:59.000000000Z"));
  EXPECT_EQ(decode_record(*item).message.sent_at, kEndOfTime);
  EXPECT_EQ(later(kEndOfTime, 1ns), kEndOfTime);
  EXPECT_EQ(later(kNow, -1s), kNow);
}

TEST(Record, EverythingComesBack) {
  NewMessage message{.id = {}, .body = "a,b", .content_type = "text/csv"};
  message.attributes = {{"k", "v"}, {"", "empty name"}};
  message.group = "g";
  const auto item = encode_record(message, record_of("A-1"));
  ASSERT_TRUE(item);
  const StoredMessage stored = decode_record(*item);
  EXPECT_EQ(stored.message.body, "a,b");
  EXPECT_EQ(stored.message.content_type, "text/csv");
  EXPECT_EQ(stored.message.attributes, message.attributes);
  EXPECT_EQ(stored.message.group, "g");
  EXPECT_EQ(stored.version, 1);
  EXPECT_EQ(stored.created_at, kNow);
  EXPECT_EQ(stored.received_at, std::nullopt);
  EXPECT_EQ(stored.state(kNow), MessageState::ready);
}

TEST(Record, RefusesWhatCannotBeStored) {
  const auto code_of = [](const NewMessage& message, const std::string& id) {
    const auto item = encode_record(message, record_of(id));
    return item ? std::string() : item.error().message();
  };
  EXPECT_THAT(code_of({.id = {}, .body = "x"}, ""), testing::HasSubstr("id"));
  EXPECT_THAT(code_of({.id = {}, .body = "x"}, std::string(2049, 'x')), testing::HasSubstr("2048"));
  EXPECT_THAT(code_of({.id = {}, .body = "x"}, "\xff"), testing::HasSubstr("UTF-8"));
  EXPECT_THAT(code_of({.id = {}, .body = std::string(table::kMaxItemBytes, 'x')}, "A"), testing::HasSubstr("409600"));
  NewMessage message{.id = {}, .body = "x"};
  message.attributes = {{"bad", "\xff"}};
  EXPECT_THAT(code_of(message, "A"), testing::HasSubstr("'bad'"));
  message = {.id = {}, .body = "x"};
  message.group = "\xff";
  EXPECT_NE(code_of(message, "A"), "");
}

TEST(Record, FailureIsCutAndComesBack) {
  Item item{{"sluice_failure", table::encode_failure({std::string(5000, 'e') + "\xff", "h", "w", 3, kNow})}};
  const Failure failure = decode_record(item).failure;
  EXPECT_EQ(failure.error, std::string(table::kMaxFailureBytes, 'e'));
  EXPECT_EQ(failure.handler, "h");
  EXPECT_EQ(failure.host, "w");
  EXPECT_EQ(failure.attempts, 3U);
  EXPECT_EQ(failure.failed_at, kNow);
}

TEST(Record, AnEmptyItemIsStillAMessage) {
  const StoredMessage stored = decode_record({});
  EXPECT_EQ(stored.message.id, "");
  EXPECT_EQ(stored.message.body, "null");
  EXPECT_EQ(stored.version, 0);
  EXPECT_EQ(stored.message.attempt, 0U);
  EXPECT_EQ(stored.half, Half::standard);
}

TEST(VersionMark, KeepsWhatIsStoredForTheCondition) {
  EXPECT_FALSE(version_of({}).stored);
  EXPECT_EQ(version_of({}).next(), 1);
  const auto mark = [](AttributeValue value) { return version_of({{"version", std::move(value)}}); };
  EXPECT_EQ(mark(Number{"41"}).next(), 42);
  EXPECT_EQ(mark(Number{"-1"}).number, -1);
  EXPECT_EQ(mark("41").number, 0);
  EXPECT_EQ(*mark("41").stored, AttributeValue("41"));
  EXPECT_EQ(mark(Number{"1.5"}).next(), 1);
  EXPECT_EQ(mark(Number{"99999999999999999999"}).next(), 1);
  EXPECT_EQ(mark(Number{"9223372036854775807"}).next(), 1);
}

TEST(Candidate, IsDueAsGoSeesIt) {
  const auto due = [](const std::string& invisible, WallTime at) {
    return Candidate::of({{"sent_at", "2026-11-20T00:00:00Z"}, {"invisible_until_at", invisible}}).due(at);
  };
  EXPECT_TRUE(due("", kNow));
  EXPECT_TRUE(due("garbage", kNow));
  EXPECT_FALSE(due("2026-11-20T23:14:00.5Z", kNow)) << "exactly at the instant it is still hidden";
  EXPECT_TRUE(due("2026-11-20T23:14:00.5Z", kNow + 1ns));
  EXPECT_FALSE(due("2026-11-21T09:14:00.5+09:00", kNow));
  EXPECT_TRUE(due("2026-11-21T08:14:00.4+09:00", kNow));
  Candidate later_sent = Candidate::of({{"sent_at", "2026-11-20T23:14:00.500000001Z"}});
  EXPECT_FALSE(later_sent.due(kNow));
  EXPECT_TRUE(later_sent.due(kNow + 1ns));
}

TEST(Candidate, HiddenBeyondTheYear2261IsNotReady) {
  for (const std::string last : {"9999-12-31T23:59:59Z", "2262-01-01T00:00:00.5+09:00", "2400-02-29T00:00:00Z"}) {
    const Item item{{"id", "A-1"}, {"sent_at", "2026-11-20T23:00:00Z"}, {"invisible_until_at", last}};
    EXPECT_FALSE(Candidate::of(item).due(kNow)) << last;
    EXPECT_EQ(decode_record(item).state(kNow), MessageState::delayed) << last;
    const Item later{{"id", "A-1"}, {"sent_at", last}, {"invisible_until_at", ""}};
    EXPECT_FALSE(Candidate::of(later).due(kNow)) << last;
    EXPECT_EQ(decode_record(later).message.sent_at, kEndOfTime) << last;
  }
  for (const std::string garbage : {"9999", "9999-13-31T23:59:59Z", "99999-12-31T23:59:59Z", "soon and very soon"}) {
    const Item item{{"id", "A-1"}, {"sent_at", "2026-11-20T23:00:00Z"}, {"invisible_until_at", garbage}};
    EXPECT_TRUE(Candidate::of(item).due(kNow)) << garbage << ": as Go reads it";
  }
}

TEST(Candidate, CountsAreWithinTheirRange) {
  const auto count = [](AttributeValue value) {
    return Candidate::of({{"receive_count", std::move(value)}}).state.receives;
  };
  EXPECT_EQ(count(Number{"7"}), 7U);
  EXPECT_EQ(count(Number{"-7"}), 0U);
  EXPECT_EQ(count(Number{"99999999999"}), 2147483646U) << "so that the next one does not wrap";
  EXPECT_EQ(count("7"), 0U);
  EXPECT_EQ(count(dynamo::Null{}), 0U);
}

TEST(ItemBytes, CountsNamesAndValues) {
  EXPECT_EQ(table::item_bytes({}), 0U);
  EXPECT_EQ(table::item_bytes({{"id", "abc"}}), 5U);
  EXPECT_EQ(table::item_bytes({{"b", dynamo::Binary{"xyz"}}, {"t", true}, {"z", dynamo::Null{}}}), 8U);
  EXPECT_GE(table::item_bytes({{"m", dynamo::Map{{"k", dynamo::List{AttributeValue("v")}}}}}), 1U + 3 + 1 + 3 + 1);
}

}  // namespace
}  // namespace sluice::queue::dynamomq
