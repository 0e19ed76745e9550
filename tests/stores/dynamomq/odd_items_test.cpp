// Items that other writers left in the table: nothing in them may stop the queue or get lost.

#include "base/timestamp.hpp"
#include "host/stores/table/item_values.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;
using queue::CompletionAction;

class OddItems : public StoreOnEmulator {
 protected:
  Item item(const std::string& id) {
    const std::string now = format_timestamp(clock().wall_now() - 1s);
    return {{"id", id},
            {"data", "body of " + id},
            {"receive_count", AttributeValue::number(0)},
            {"queue_type", "STANDARD"},
            {"version", AttributeValue::number(1)},
            {"created_at", now},
            {"updated_at", now},
            {"sent_at", now},
            {"received_at", ""},
            {"invisible_until_at", ""}};
  }
  Item without(const std::string& id, const std::string& attribute) {
    Item odd = item(id);
    odd.erase(attribute);
    return odd;
  }
  Item with(const std::string& id, const std::string& attribute, AttributeValue value) {
    Item odd = item(id);
    odd[attribute] = std::move(value);
    return odd;
  }
};

TEST_F(OddItems, AreAllClaimedAndSettled) {
  const std::vector<Item> items{
      without("no-version", "version"),
      without("no-count", "receive_count"),
      without("no-data", "data"),
      without("no-created", "created_at"),
      without("no-received", "received_at"),
      without("no-invisible", "invisible_until_at"),
      with("null-version", "version", dynamo::Null{}),
      with("text-version", "version", "seven"),
      with("fraction-version", "version", dynamo::Number{"1.5"}),
      with("huge-version", "version", dynamo::Number{"99999999999999999999999999"}),
      with("highest-version", "version", dynamo::Number{"9223372036854775807"}),
      with("null-count", "receive_count", dynamo::Null{}),
      with("text-count", "receive_count", "many"),
      with("negative-count", "receive_count", dynamo::Number{"-3"}),
      with("garbage-created", "created_at", "yesterday"),
      with("number-created", "created_at", dynamo::Number{"5"}),
      with("null-invisible", "invisible_until_at", dynamo::Null{}),
      with("garbage-invisible", "invisible_until_at", "tomorrow"),
      with("list-received", "received_at", dynamo::List{}),
      with("set-data", "data", dynamo::StringSet{{"a", "b"}}),
      with("odd-attributes", "sluice_attributes", "none"),
      with("odd-failure", "sluice_failure", dynamo::List{AttributeValue(true)}),
      with("odd-nonce", "sluice_nonce", dynamo::Number{"1"}),
      with("odd-type", "sluice_content_type", dynamo::Null{}),
      with("garbage-sent", "sent_at", "whenever"),
      with("ancient-sent", "sent_at", "0001-01-01T00:00:00Z"),
      with("offset-sent", "sent_at", "2020-01-01T00:00:00+09:00"),
  };
  for (const auto& odd : items) {
    put(odd);
  }
  std::vector<queue::Delivery> claims;
  for (auto more = claim(100); !more.empty(); more = claim(100)) {
    std::move(more.begin(), more.end(), std::back_inserter(claims));
  }
  const auto ids = ids_of(claims);
  for (const auto& odd : items) {
    EXPECT_EQ(ids.count(*dynamo::find<std::string>(odd, "id")), 1U) << *dynamo::find<std::string>(odd, "id");
  }
  for (const auto& claimed : claims) {
    EXPECT_EQ(claimed.message.attempt, 1U) << claimed.message.id;
    EXPECT_EQ(get(claimed.message.id).version, claimed.receipt.version);
  }
  EXPECT_EQ(applied(settle(desk(), claims, CompletionAction::retry)), items.size());
  claims = claim(100);
  EXPECT_EQ(claims.size(), items.size());
  EXPECT_EQ(applied(settle(desk(), claims, CompletionAction::remove)), items.size());
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 0U);
}

TEST_F(OddItems, GarbageSentAtIsFoundBehindManyDelayedMessages) {
  std::vector<queue::NewMessage> batch(200);
  for (auto& message : batch) {
    message.body = std::string(600, 'x');
    message.delay = 24h;
  }
  desk().send("orders", batch, soon());
  put(with("garbage-sent", "sent_at", "whenever"));
  bool found = false;
  for (int second = 0; second < 70 && !found; ++second) {
    found = !claim(10).empty();
    clock().advance(1s);
  }
  EXPECT_TRUE(found);
}

TEST_F(OddItems, UnknownAttributesAndDataSurviveAWholeLife) {
  Item odd = item("A-1");
  odd["theirs"] = dynamo::Map{{"deep", dynamo::List{dynamo::NumberSet{{"1", "2"}}, dynamo::Binary{"\x01\xff"}}}};
  odd["data"] = dynamo::Map{{"n", dynamo::Number{"0.12345678901234567890123"}}, {"s", dynamo::StringSet{{"x"}}}};
  put(odd);
  const auto check = [&](const char* when) {
    const Item now = raw("A-1");
    EXPECT_EQ(now.at("theirs"), odd.at("theirs")) << when;
    EXPECT_EQ(now.at("data"), odd.at("data")) << when;
    EXPECT_EQ(now.at("created_at"), odd.at("created_at")) << when;
  };
  auto claims = claim(1);
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims[0].message.body, R"({"n":0.12345678901234567890123,"s":["x"]})");
  check("claimed");
  claims[0].receipt = desk().extend(standard(), std::span(&claims[0].receipt, 1), 60s, soon())[0].receipt;
  check("extended");
  EXPECT_EQ(applied(settle(desk(), claims, CompletionAction::retry)), 1U);
  check("put back");
  ASSERT_TRUE(desk().dead_letter("orders", "A-1",
                                 {.error = "e", .handler = "h", .host = {}, .attempts = 1, .failed_at = {}}, soon()));
  check("dead");
  ASSERT_TRUE(desk().redrive("orders", "A-1", soon()));
  check("redriven");
}

TEST_F(OddItems, ItemWithoutRoomForAClaimDoesNotStopTheOthers) {
  Item full = item("full");
  full["data"] = std::string(400 * 1024 - queue::table::item_bytes(full) + 12, 'x');
  put(full);
  send(3);
  EXPECT_EQ(ids_of(claim(10)), (std::set<std::string>{"m0", "m1", "m2"}));
  EXPECT_EQ(get("full").message.attempt, 0U);
}

TEST_F(OddItems, FailureThatFindsNoRoomIsLeftOutAndTheMessageMoves) {
  queue::NewMessage message{.id = "A-1", .body = std::string(400 * 1024 - 450, 'x')};
  ASSERT_EQ(desk().send("orders", std::span(&message, 1), soon())[0].status, queue::SendStatus::sent);
  const auto claims = claim(1);
  ASSERT_EQ(claims.size(), 1U);
  const queue::Completion completion{
      .receipt = claims[0].receipt,
      .action = CompletionAction::dead_letter,
      .delay = {},
      .failure = {.error = std::string(2000, 'e'), .handler = "h", .host = "w", .attempts = 1, .failed_at = {}}};
  const auto results = desk().settle(standard(), std::span(&completion, 1), soon());
  EXPECT_EQ(results[0].status, queue::SettleStatus::applied) << results[0].error.message();
  EXPECT_EQ(get("A-1").half, queue::Half::dlq);
}

TEST_F(OddItems, TooLargeMessageIsRefusedWithoutARequest) {
  const std::vector<queue::NewMessage> batch{{.id = "big", .body = std::string(400 * 1024, 'x')},
                                             {.id = "", .body = "x"}};
  host().usage().reset();
  const auto results = desk().send("orders", std::span(batch).first(1), soon());
  EXPECT_EQ(results[0].error.code(), ErrorCode::invalid);
  EXPECT_THAT(results[0].error.message(), ::testing::HasSubstr("409600"));
  EXPECT_EQ(results[0].error.message().find('\n'), std::string::npos);
  EXPECT_EQ(host().usage().requests(), 0U);
}

TEST_F(OddItems, NumbersThatDynamoDbCannotHoldAreRefusedAlone) {
  const std::vector<queue::NewMessage> batch{
      {.id = "ok", .body = "{}", .content_type = std::string(queue::kJson)},
      {.id = "huge", .body = "[1e300]", .content_type = std::string(queue::kJson)},
      {.id = "bad", .body = "{", .content_type = std::string(queue::kJson)}};
  const auto results = desk().send("orders", batch, soon());
  EXPECT_EQ(results[0].status, queue::SendStatus::sent);
  EXPECT_EQ(results[1].error.code(), ErrorCode::invalid) << results[1].error.message();
  EXPECT_EQ(results[2].error.code(), ErrorCode::invalid) << results[2].error.message();
}

}  // namespace
}  // namespace sluice::test
