// Whole records to items and back, without an item beside them and with one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::test {
namespace {

using dynamo::AttributeValue;
using dynamo::Binary;
using dynamo::Item;
using dynamo::Map;
using dynamo::Number;
using queue::StoredMessage;
using queue::dynamomq::decode_record;
using queue::dynamomq::encode_stored;
using queue::dynamomq::says_all;

Item plain() {
  return {{"id", "A-1"},
          {"data", Map{{"n", Number{"1.50"}}}},
          {"receive_count", AttributeValue::number(2)},
          {"queue_type", "DLQ"},
          {"version", AttributeValue::number(7)},
          {"created_at", "2026-11-20T23:14:00.000000001Z"},
          {"updated_at", "2026-11-20T23:14:00.000000002Z"},
          {"sent_at", "2026-11-20T23:14:00.000000003Z"},
          {"received_at", ""},
          {"invisible_until_at", ""},
          {"sluice_attributes", Map{{"k", "v"}}},
          {"sluice_group", "g"},
          {"sluice_failure", Map{{"error", "boom"},
                                 {"handler", "h"},
                                 {"host", "w"},
                                 {"attempts", AttributeValue::number(3)},
                                 {"failed_at", "2026-11-20T23:14:00.000000000Z"}}}};
}

Item with(const std::string& name, AttributeValue value) {
  Item item = plain();
  item.insert_or_assign(name, std::move(value));
  return item;
}

Item without(const std::string& name) {
  Item item = plain();
  item.erase(name);
  return item;
}

StoredMessage read_with_native(const Item& item) {
  StoredMessage record = decode_record(item);
  record.native = dynamo::encode_item(item);
  return record;
}

Item written(const StoredMessage& record) {
  const auto item = encode_stored(record);
  EXPECT_TRUE(item) << item.error().message();
  return item ? *item : Item();
}

TEST(StoredRecordTest, FieldsAloneGiveAPlainItemBack) {
  EXPECT_TRUE(says_all(decode_record(plain()), plain()));
  EXPECT_EQ(written(decode_record(plain())), plain());
}

TEST(StoredRecordTest, NoncesAndSpellingsOfTimesAreNothingToKeep) {
  for (const Item& item : {with("sluice_nonce", "abc"), with("sent_at", "2026-11-20T23:14:00.5Z"),
                           with("created_at", "2026-11-21T08:14:00+09:00")}) {
    EXPECT_TRUE(says_all(decode_record(item), item));
  }
}

TEST(StoredRecordTest, WhatFieldsCannotSayIsToldApart) {
  const std::vector<Item> odd{
      with("theirs", "x"),
      with("data", Map{{"set", dynamo::StringSet{{"a"}}}}),
      with("data", Map{{"bytes", Binary{"\xff"}}}),
      with("queue_type", "CUSTOM"),
      with("version", "seven"),
      with("receive_count", Number{"1.5"}),
      with("received_at", dynamo::Null{}),
      with("received_at", "garbage"),
      with("sluice_attributes", Map{{"k", Number{"1"}}}),
      with("sluice_failure", Map{{"error", "boom"}, {"more", "x"}}),
      with("sluice_content_type", "application/json"),
      without("version"),
      without("data"),
      without("invisible_until_at"),
  };
  for (const Item& item : odd) {
    EXPECT_FALSE(says_all(decode_record(item), item)) << dynamo::encode_item(item);
    EXPECT_EQ(written(read_with_native(item)), item) << "byte for byte, where it comes with its item";
  }
}

TEST(StoredRecordTest, FieldsWinOverTheItemThatTheyComeWith) {
  const Item odd = with("data", Map{{"set", dynamo::StringSet{{"a"}}}});
  StoredMessage record = read_with_native(odd);
  record.message.id = "B-1";
  record.message.attempt = 0;
  record.half = queue::Half::standard;
  record.failure = {};
  record.version = 1;
  record.invisible_until = parse_timestamp("2027-01-01T00:00:00Z");
  record.message.attributes = {{"new", "1"}};
  Item expected = odd;
  expected["id"] = "B-1";
  expected["receive_count"] = AttributeValue::number(0);
  expected["queue_type"] = "STANDARD";
  expected["version"] = AttributeValue::number(1);
  expected["invisible_until_at"] = "2027-01-01T00:00:00.000000000Z";
  expected["sluice_attributes"] = Map{{"new", "1"}};
  expected.erase("sluice_failure");
  EXPECT_EQ(written(record), expected);
  record.message.body = R"({"set":["b"]})";
  expected["data"] = Map{{"set", dynamo::List{"b"}}};
  EXPECT_EQ(written(record), expected) << "a changed body is what its text says";
}

TEST(StoredRecordTest, WhatCannotBeStoredIsRefused) {
  StoredMessage record = decode_record(plain());
  const auto refused = [](const StoredMessage& wrong) {
    const auto item = encode_stored(wrong);
    return !item && item.error().code() == ErrorCode::invalid && item.error().message().find('\n') == std::string::npos;
  };
  for (const char* native : {"{", R"({"id":{"S":"A-1"},"data":{"N":"1e500"}})"}) {
    record.native = native;
    EXPECT_TRUE(refused(record)) << native;
    EXPECT_THAT(encode_stored(record).error().message(), ::testing::HasSubstr("the native form of message 'A-1' "));
  }
  record.native.clear();
  record.message.id.clear();
  EXPECT_TRUE(refused(record));
  record.message.id = std::string(2049, 'x');
  EXPECT_TRUE(refused(record));
  record.message.id = "A-1";
  record.message.body = "{";
  EXPECT_TRUE(refused(record)) << "JSON that is none";
}

}  // namespace
}  // namespace sluice::test
