#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "base/timestamp.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/item_values.hpp"

// Keys and items of the leased layout: what was written is read, and what is odd is named and hurts nobody.
namespace sluice::queue::leased {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

constexpr WallTime kNow = WallTime(1'780'000'000s) + 123ms;

class LeasedRecordTest : public ::testing::Test {
 protected:
  Place place(Priority priority = Priority::normal, WallTime due = kNow, Half half = Half::standard) {
    return {partition_of("orders", half, 3), sort_key_of(priority, due, random_)};
  }
  Item written(const NewMessage& message, const NewRecord& record) {
    const auto item = encode_record(message, record);
    EXPECT_TRUE(item) << item.error().message();
    return item ? *item : Item{};
  }

  SeededRandom random_{7};
};

std::size_t overhead_of(const Item& item, const NewMessage& message) {
  return table::item_bytes(item) - message.body.size();
}

TEST_F(LeasedRecordTest, APlainMessageHasThreeAttributesAndFortyBytesAtMost) {
  for (const std::string& body : {std::string("hello"), std::string(), std::string("\xFF\x00", 2)}) {
    const NewMessage message{
        .id = {}, .body = body, .content_type = std::string(body.starts_with('\xFF') ? kOctetStream : kTextPlain)};
    const Item item = written(message, {.place = place(), .own_id = {}, .now = kNow});
    EXPECT_EQ(item.size(), 3U);
    EXPECT_LE(overhead_of(item, message), 40U);
    const StoredMessage read = decode_record(item);
    EXPECT_EQ(read.message.body, body);
    EXPECT_EQ(read.message.content_type, message.content_type);
    EXPECT_EQ(read.message.sent_at, kNow);
    EXPECT_EQ(read.created_at, kNow);
    EXPECT_EQ(read.updated_at, kNow);
    EXPECT_EQ(read.version, 1);
    EXPECT_EQ(read.message.attempt, 0U);
    EXPECT_THAT(read.odd, IsEmpty());
  }
}

TEST_F(LeasedRecordTest, JsonCostsThreeBytesMoreAndKeepsItsSpelling) {
  const NewMessage message{.id = {}, .body = R"({"n": 1.50, "n": 2})", .content_type = std::string(kJson)};
  const Item item = written(message, {.place = place(), .own_id = {}, .now = kNow});
  EXPECT_LE(overhead_of(item, message), 43U);
  EXPECT_EQ(decode_record(item).message.body, message.body);
  EXPECT_EQ(decode_record(item).message.content_type, kJson);
}

TEST_F(LeasedRecordTest, WhatASenderSaysComesBack) {
  const NewMessage message{.id = "A-1",
                           .body = "a;b",
                           .content_type = "text/csv",
                           .attributes = {{"tenant", "t1"}},
                           .group = "g",
                           .priority = Priority::high};
  const Item item = written(message, {.place = place(Priority::high, kNow + 60s), .own_id = "A-1", .now = kNow});
  const StoredMessage read = decode_record(item);
  EXPECT_EQ(read.message.id, "A-1");
  EXPECT_EQ(read.message.body, "a;b");
  EXPECT_EQ(read.message.content_type, "text/csv");
  EXPECT_EQ(read.message.attributes, message.attributes);
  EXPECT_EQ(read.message.group, "g");
  EXPECT_EQ(read.message.priority, Priority::high);
  EXPECT_EQ(read.message.sent_at, kNow + 60s);
  EXPECT_EQ(read.created_at, kNow);
  EXPECT_EQ(read.updated_at, kNow);
  EXPECT_EQ(read.state(kNow), MessageState::delayed);
  EXPECT_EQ(id_of(item), "A-1");
  EXPECT_EQ(shard_of(item), 3U);
  const core::MessageState state = state_of(item);
  EXPECT_EQ(state.sent_at, kNow + 60s);
  EXPECT_EQ(state.group, "g");
  EXPECT_EQ(state.priority, Priority::high);
  EXPECT_THAT(oddity_of(item), IsEmpty());
  EXPECT_THAT(held_sort(item), IsEmpty());
}

TEST_F(LeasedRecordTest, TextThatIsNoneOrNamedOtherwiseKeepsBytesAndType) {
  for (const auto& [type, body] : std::vector<std::pair<std::string, std::string>>{{"text/plain", "\xFF"},
                                                                                   {"image/png", "\x89PNG"},
                                                                                   {"application/octet-stream", "text"},
                                                                                   {"application/json", "\xFF"},
                                                                                   {"text/html", "<p>"}}) {
    const NewMessage message{.id = {}, .body = body, .content_type = type};
    const StoredMessage read = decode_record(written(message, {.place = place(), .own_id = {}, .now = kNow}));
    EXPECT_EQ(read.message.body, body);
    EXPECT_EQ(read.message.content_type, type);
  }
}

TEST_F(LeasedRecordTest, KeysSortByPriorityAndThenByTime) {
  std::vector<std::string> keys;
  for (const Priority priority : {Priority::critical, Priority::high, Priority::normal, Priority::low}) {
    for (const WallTime due : {WallTime{}, WallTime(1ms), kNow, kNow + 1ms, kNow + 1000s, kEndOfTime}) {
      keys.push_back(sort_key_of(priority, due, random_));
      EXPECT_EQ(keys.back().size(), 27U);
      EXPECT_TRUE(is_sort_key(keys.back()));
      EXPECT_EQ(due_of(keys.back()), whole_milliseconds(due));
      EXPECT_EQ(priority_of(keys.back()), priority);
      EXPECT_LE(first_sort_key(priority, due), keys.back());
      EXPECT_GE(last_sort_key(priority, due), keys.back());
    }
  }
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

TEST_F(LeasedRecordTest, TimesAreWholeMillisecondsRoundedDown) {
  EXPECT_EQ(whole_milliseconds(kNow + 999'999ns), kNow);
  EXPECT_EQ(whole_milliseconds(WallTime(-1ns)), WallTime{});
  EXPECT_EQ(due_of(sort_key_of(Priority::low, kNow + 999'999ns, random_)), kNow);
}

TEST_F(LeasedRecordTest, WhatIsMovedToTheFrontLiesBelowAllAndTheLastOneFirst) {
  const std::string front = front_sort_key(kNow, random_);
  EXPECT_LT(due_of(front), kFrontEnd);
  EXPECT_LT(front, sort_key_of(Priority::critical, WallTime(std::chrono::hours(24) * 365 * 31), random_));
  EXPECT_LT(front_sort_key(kNow + 1ms, random_), front);
  EXPECT_EQ(due_of(front_sort_key(WallTime(1s), random_)), kFrontEnd - 1ms) << "a clock before 2020";
  EXPECT_EQ(due_of(front_sort_key(WallTime(std::chrono::hours(24) * 365 * 200), random_)), WallTime{});
}

TEST_F(LeasedRecordTest, AMadeIdSaysWhereItsMessageLies) {
  for (const std::uint32_t shard : {0U, 7U, 31U, 32U, 1023U}) {
    const std::string sort = sort_key_of(Priority::low, kNow, random_);
    const std::string id = made_id(sort, shard);
    EXPECT_EQ(id.size(), 29U);
    const auto made = place_of_made_id(id);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->first, sort);
    EXPECT_EQ(made->second, shard);
    const Place place{partition_of("orders", Half::standard, shard), sort};
    EXPECT_EQ(made_place("orders", id), place);
    EXPECT_EQ(id_of(place.key()), id);
  }
  for (const std::string id : {"", "A-1", "21K000000000000000000000000000", "21K00000000000000000000000000",
                               "41K0000000000000000000000000U", "9b2f7a54-3a53-4b51-9a0c-0d3b0c6bd1f5"}) {
    EXPECT_FALSE(place_of_made_id(id) && id.size() != 29) << id;
  }
  EXPECT_FALSE(place_of_made_id("41K00000000000000000000000000"));
  EXPECT_FALSE(place_of_made_id("2IK00000000000000000000000000"));
}

TEST_F(LeasedRecordTest, PartitionsAreToldApart) {
  for (const Half half : {Half::standard, Half::dlq}) {
    const auto partition = parse_partition(partition_of("orders", half, 12));
    ASSERT_TRUE(partition);
    EXPECT_EQ(partition->queue, "orders");
    EXPECT_EQ(partition->half, half);
    EXPECT_EQ(partition->shard, 12U);
  }
  for (const char* none : {"", "orders", "orders@", "orders#", "orders#01", "orders#1024", "orders#-1", "orders#1x",
                           "#1", "orders#id/7", "@hosts", "sluice:key/x", "orders%3"}) {
    EXPECT_FALSE(parse_partition(none)) << none;
  }
  EXPECT_EQ(shard_of_ownership(ownership_sort(7)), 7U);
  EXPECT_EQ(shard_of_ownership(ownership_sort(0)), 0U);
  EXPECT_EQ(shard_of_ownership(ownership_sort(1023)), 1023U);
  for (const char* none : {"", "7", "shards", "1024", "00x7", "00007"}) {
    EXPECT_FALSE(shard_of_ownership(none)) << none;
  }
}

TEST_F(LeasedRecordTest, AWholeRecordComesBack) {
  StoredMessage record;
  record.message = {
      .id = "A-1", .body = "x", .attributes = {{"k", "v"}}, .group = "g", .attempt = 4, .sent_at = kNow - 5s};
  record.half = Half::dlq;
  record.version = 41;
  record.created_at = kNow - 9s;
  record.updated_at = kNow - 1s;
  record.received_at = kNow - 2s;
  record.invisible_until = kNow + 30s;
  record.marks = core::kSuspect;
  record.failure = {.error = "no", .handler = "h", .host = "w", .attempts = 3, .failed_at = kNow};
  const auto item = encode_stored(record, place(Priority::normal, kNow, Half::dlq));
  ASSERT_TRUE(item) << item.error().message();
  const StoredMessage read = decode_record(*item);
  EXPECT_EQ(read.message.id, record.message.id);
  EXPECT_EQ(read.half, Half::dlq);
  EXPECT_EQ(read.message.attempt, 4U);
  EXPECT_EQ(read.message.sent_at, record.message.sent_at);
  EXPECT_EQ(read.version, 41);
  EXPECT_EQ(read.created_at, record.created_at);
  EXPECT_EQ(read.updated_at, record.updated_at);
  EXPECT_EQ(read.received_at, record.received_at);
  EXPECT_EQ(read.invisible_until, record.invisible_until);
  EXPECT_EQ(read.marks, core::kSuspect);
  EXPECT_EQ(read.failure.error, "no");
  EXPECT_EQ(read.failure.failed_at, kNow);
  EXPECT_THAT(read.odd, IsEmpty());
}

TEST_F(LeasedRecordTest, ARecordThatMovesKeepsItsIdAndItsTimes) {
  const NewMessage message{.id = {}, .body = "x"};
  const Place from = place();
  const Item item = written(message, {.place = from, .own_id = {}, .now = kNow - 60s});
  const std::string id = made_id(from.sort, 3);
  const Place to{from.partition, front_sort_key(kNow, random_)};
  StoredMessage moved = decode_record(moved_item(item, to));
  EXPECT_EQ(moved.message.id, id);
  EXPECT_EQ(moved.message.sent_at, kNow);
  EXPECT_EQ(moved.created_at, kNow - 60s);
  EXPECT_EQ(moved.message.priority, Priority::normal) << "whatever the key says";
  moved = decode_record(moved_item(moved_item(item, to), place(), kNow));
  EXPECT_EQ(moved.message.id, id);
  EXPECT_EQ(moved.created_at, kNow - 60s);
  EXPECT_EQ(moved_item(item, place(), kNow).count(attribute::kSentAt), 0U) << "the key says so";
}

TEST_F(LeasedRecordTest, TakenAwayIsAsAbsent) {
  Item item = place().key();
  for (const std::string_view name : {attribute::kNotBefore, attribute::kReceived, attribute::kMarks}) {
    item.emplace(name, AttributeValue::number(0));
  }
  const StoredMessage read = decode_record(item);
  EXPECT_EQ(read.invisible_until, std::nullopt);
  EXPECT_EQ(read.received_at, std::nullopt);
  EXPECT_EQ(read.marks, 0U);
  EXPECT_THAT(read.odd, IsEmpty());
  EXPECT_FALSE(state_of(item).received_at);
}

TEST_F(LeasedRecordTest, VersionsAreComparedAsTheyAreSpelt) {
  EXPECT_EQ(version_of(place().key()).stored, std::nullopt);
  EXPECT_EQ(version_of(place().key()).number, 1);
  EXPECT_EQ(version_mark(1).stored, std::nullopt);
  EXPECT_EQ(version_mark(2).stored, AttributeValue::number(2));
  Item item = place().key();
  item.emplace(attribute::kVersion, AttributeValue::number(7));
  EXPECT_EQ(version_of(item).number, 7);
  item.insert_or_assign(std::string(attribute::kVersion), AttributeValue::number(1));
  EXPECT_EQ(version_of(item).number, 0) << "nobody here writes it so, and IS MISSING would not hold";
  EXPECT_THAT(oddity_of(item), HasSubstr("version"));
}

TEST_F(LeasedRecordTest, OddItemsAreNamedAndHurtNobody) {
  Item wrong = place().key();
  wrong.emplace(attribute::kBody, dynamo::List{AttributeValue("x")});
  wrong.emplace(attribute::kContentType, true);
  wrong.emplace(attribute::kReceiveCount, "many");
  wrong.emplace(attribute::kVersion, dynamo::Number{"1.5"});
  wrong.emplace(attribute::kNotBefore, AttributeValue::number(-5));
  wrong.emplace(attribute::kSentAt, "yesterday");
  wrong.emplace(attribute::kFailure, "f");
  wrong.emplace(attribute::kAttributes, dynamo::Map{{"a", AttributeValue::number(1)}});
  const StoredMessage read = decode_record(wrong);
  EXPECT_EQ(read.message.body, R"(["x"])");
  EXPECT_EQ(read.version, 0);
  EXPECT_THAT(read.odd, AllOf(Contains(Key("version")), Contains(Key("receive_count")), Contains(Key("sent_at")),
                              Contains(Key("invisible_until_at"))));
  EXPECT_EQ(read.odd.at("sent_at"), "yesterday");
  for (const Item& foreign :
       {Item{}, Item{{"id", "x"}}, Item{{"p", AttributeValue::number(1)}}, Item{{"p", "orders#3"}},
        Item{{"p", "orders#3"}, {"s", "zz"}}, Item{{"p", "elsewhere"}, {"s", "-"}},
        Item{{"p", dynamo::Binary{"\xFF"}}, {"s", dynamo::Binary{"\xFF"}}}, wrong}) {
    EXPECT_THAT(oddity_of(foreign), ::testing::Not(IsEmpty()));
    EXPECT_THAT(decode_record(foreign).odd, ::testing::Not(IsEmpty()));
    static_cast<void>(moved_item(foreign, place()));
  }
}

TEST_F(LeasedRecordTest, RefusesWhatItCannotKeep) {
  const NewRecord record{.place = place(), .own_id = {}, .now = kNow};
  for (const NewMessage& message : {NewMessage{.id = {}, .body = std::string(400 * 1024, 'x')},
                                    NewMessage{.id = {}, .body = "x", .content_type = "\xFF"},
                                    NewMessage{.id = {}, .body = "x", .attributes = {{"a", "\xFF"}}},
                                    NewMessage{.id = {}, .body = "x", .group = "\xFF"}}) {
    const auto refused = encode_record(message, record);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid);
  }
  EXPECT_TRUE(is_storable_id("orders", std::string(most_id_bytes("orders"), 'k')));
  EXPECT_FALSE(is_storable_id("orders", std::string(most_id_bytes("orders") + 1, 'k')));
  EXPECT_FALSE(is_storable_id("orders", ""));
  EXPECT_FALSE(is_storable_id("orders", "\xFF"));
  EXPECT_LE(alias_place("orders", std::string(most_id_bytes("orders"), 'k')).partition.size(), 2048U);
}

}  // namespace
}  // namespace sluice::queue::leased
