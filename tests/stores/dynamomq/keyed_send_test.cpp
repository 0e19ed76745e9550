// Deduplication ids and unique keys on DynamoDB: what they cost, and that they hold whatever answer is lost.

#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/outside_items.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using queue::NewMessage;
using queue::SendResult;
using queue::SendStatus;

class KeyedSend : public StoreOnEmulator {
 protected:
  static NewMessage message(const std::string& id, const std::string& dedup_id, std::size_t bytes = 600) {
    NewMessage made{.id = id, .body = std::string(bytes, 'x')};
    made.dedup_id = dedup_id;
    return made;
  }
  static std::vector<NewMessage> batch(std::size_t count, const std::string& prefix) {
    std::vector<NewMessage> all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(message(prefix + std::to_string(i), "key " + std::to_string(i)));
    }
    return all;
  }
  SendResult send_one(const NewMessage& message) { return desk().send("orders", {&message, 1}, soon()).front(); }
  std::size_t count(const std::vector<SendResult>& results, SendStatus status) {
    return static_cast<std::size_t>(std::count_if(results.begin(), results.end(),
                                                  [&](const SendResult& result) { return result.status == status; }));
  }
};

TEST_F(KeyedSend, CostsWhatIsSaidOfIt) {
  host().usage().reset();
  ASSERT_EQ(send_one(message("A-1", "order 7")).status, SendStatus::sent);
  EXPECT_EQ(host().usage().requests(), 1U) << "one transaction, and no look before";
  // 2 for the message, 1 for the index, 2 for the mark.
  EXPECT_EQ(host().usage().capacity().write, 5);
  host().usage().reset();
  const auto results = desk().send("orders", batch(100, "b"), soon());
  EXPECT_EQ(count(results, SendStatus::sent), 100U);
  EXPECT_EQ(host().usage().requests("TransactWriteItems"), 4U);
  EXPECT_EQ(host().usage().requests("BatchGetItem"), 2U);
  EXPECT_EQ(host().usage().capacity().write, 500);
  host().usage().reset();
  const auto again = desk().send("orders", batch(100, "c"), soon());
  EXPECT_EQ(count(again, SendStatus::deduplicated), 100U);
  EXPECT_EQ(host().usage().requests("TransactWriteItems"), 0U) << "duplicates in a batch are read, not written";
  EXPECT_EQ(host().usage().capacity().write, 0);
}

TEST_F(KeyedSend, PlainMessagesBesideThemCostWhatTheyAlwaysDo) {
  host().usage().reset();
  send(25, 600, "plain");
  EXPECT_EQ(host().usage().requests(), 1U);
  EXPECT_EQ(host().usage().capacity().write, 50);
  EXPECT_EQ(raw("plain0").count("sluice_unique"), 0U);
}

TEST_F(KeyedSend, ALostAnswerIsNoDuplicate) {
  for (const HttpFault fault : {HttpFault::commit_then_500, HttpFault::commit_then_reset, HttpFault::error_500,
                                HttpFault::commit_then_cut, HttpFault::refuse, HttpFault::throttle_all}) {
    const std::string name = "f" + std::to_string(static_cast<int>(fault));
    host().faults().break_next(fault, "TransactItems", 2);
    const auto result = send_one(message(name, name));
    EXPECT_EQ(result.status, SendStatus::sent) << name << ": " << result.error.message();
    EXPECT_EQ(result.id, name);
    EXPECT_EQ(send_one(message(name + "-again", name)).status, SendStatus::deduplicated) << name;
    EXPECT_TRUE(raw(name + "-again").empty());
  }
}

TEST_F(KeyedSend, ABatchWhoseAnswersAreLostIsSentOnce) {
  host().faults().break_next(HttpFault::commit_then_reset, "TransactItems", 3);
  EXPECT_EQ(count(desk().send("orders", batch(60, "a"), soon()), SendStatus::sent), 60U);
  EXPECT_EQ(count(desk().send("orders", batch(60, "b"), soon()), SendStatus::deduplicated), 60U);
  EXPECT_EQ(claim(100).size() + claim(100).size(), 60U);
}

TEST_F(KeyedSend, AnUnknownOutcomeIsSaidAndSendingAgainClearsItUp) {
  // Every transaction takes effect, and nobody learns of it; nor can anything be looked up.
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::commit_then_reset : HttpFault::refuse;
  });
  host().usage().reset();
  const auto lost = send_one(message("A-1", "order 7"));
  EXPECT_EQ(lost.status, SendStatus::failed);
  EXPECT_EQ(host().usage().requests("TransactWriteItems"), 4U) << "the client repeats it, and nobody repeats that";
  EXPECT_EQ(lost.error.code(), ErrorCode::unknown_outcome) << lost.error.message();
  host().faults().choose({});
  const auto again = send_one(message("A-1", "order 7"));
  EXPECT_EQ(again.status, SendStatus::deduplicated);
  EXPECT_EQ(again.id, "A-1");
}

TEST_F(KeyedSend, AMessageWithAPriorityIsRefusedAndNotStored) {
  NewMessage urgent{.id = "A-1", .body = "x", .priority = queue::Priority::high};
  const auto plain = send_one(urgent);
  EXPECT_EQ(plain.status, SendStatus::failed);
  EXPECT_THAT(plain.error.message(), ::testing::HasSubstr("send to a queue for each class"));
  urgent.dedup_id = "order 7";
  EXPECT_EQ(send_one(urgent).status, SendStatus::failed);
  EXPECT_TRUE(raw("A-1").empty());
}

// Whoever dies before the transaction has left nothing, and whoever dies after it all: there is no third.
TEST_F(KeyedSend, ASenderThatDiesNeverMakesALaterSendVanish) {
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "TransactWriteItems" ? HttpFault::error_500 : HttpFault::refuse;
  });
  EXPECT_EQ(send_one(message("A-1", "order 7")).status, SendStatus::failed);
  host().faults().choose({});
  const auto other = make_host("worker-b", 2);
  const NewMessage mine = message("A-2", "order 7");
  EXPECT_EQ(other->desk().send("orders", {&mine, 1}, soon()).front().status, SendStatus::sent);
  EXPECT_TRUE(raw("A-1").empty());
  EXPECT_FALSE(raw("A-2").empty());
}

TEST_F(KeyedSend, OneOfABatchThatIsADuplicateHoldsUpNobody) {
  ASSERT_EQ(send_one(message("first", "key 7")).status, SendStatus::sent);
  const auto results = desk().send("orders", batch(25, "b"), soon());
  EXPECT_EQ(count(results, SendStatus::sent), 24U);
  EXPECT_EQ(results[7].status, SendStatus::deduplicated);
  EXPECT_EQ(results[7].id, "first");
}

TEST_F(KeyedSend, MarksAreNoMessages) {
  NewMessage keyed = message("A-1", "order 7");
  keyed.unique_key = "customer 3";
  ASSERT_EQ(send_one(keyed).status, SendStatus::sent);
  const dynamo::Item mark = raw("sluice:dedup/order 7");
  ASSERT_FALSE(mark.empty());
  EXPECT_EQ(mark.count("queue_type"), 0U) << "no index holds it, so that no program of DynamoMQ sees it";
  EXPECT_EQ(mark.count("sent_at"), 0U);
  EXPECT_EQ(raw("sluice:unique/customer 3").count("queue_type"), 0U);
  EXPECT_EQ(claim(10).size(), 1U);
  // An hour after the window has ended, by the clock that TTL goes by.
  const auto expires =
      std::chrono::floor<std::chrono::seconds>((clock().wall_now() + queue::kDedupWindow + 1h).time_since_epoch());
  const auto* number = dynamo::find<dynamo::Number>(mark, "sluice_key_expires");
  ASSERT_NE(number, nullptr);
  EXPECT_NEAR(std::stod(number->text), static_cast<double>(expires.count()), 2);
  const NewMessage posing{.id = "sluice:dedup/order 8", .body = "x"};
  const auto refused = send_one(posing);
  EXPECT_EQ(refused.status, SendStatus::failed);
  EXPECT_EQ(refused.error.code(), ErrorCode::invalid);
}

TEST_F(KeyedSend, AnExpiredMarkThatIsStillThereIsReplaced) {
  ASSERT_EQ(send_one(message("A-1", "order 7")).status, SendStatus::sent);
  clock().advance(queue::kDedupWindow + 1s);
  host().usage().reset();
  EXPECT_EQ(send_one(message("A-2", "order 7")).status, SendStatus::sent);
  EXPECT_EQ(host().usage().requests("TransactWriteItems"), 1U);
}

// Go's consumers delete messages and know nothing of marks: the mark of a message that is gone keeps nobody away.
TEST_F(KeyedSend, AUniqueKeyEndsWithItsMessageWhoeverRemovesIt) {
  NewMessage first{.id = "A-1", .body = "x"};
  first.unique_key = "report";
  ASSERT_EQ(send_one(first).status, SendStatus::sent);
  dynamo::ItemWrite removal{.kind = dynamo::ItemWrite::Kind::remove};
  removal.table = table();
  removal.item = {{"id", std::string("A-1")}};
  ASSERT_TRUE(host().client().write(removal, soon()));
  NewMessage second{.id = "A-2", .body = "x"};
  second.unique_key = "report";
  EXPECT_EQ(send_one(second).status, SendStatus::sent);
  EXPECT_EQ(send_one(first).status, SendStatus::deduplicated);
}

}  // namespace
}  // namespace sluice::test
