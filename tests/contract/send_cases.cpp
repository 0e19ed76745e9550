#include <set>

#include "tests/contract/store_contract.hpp"

// What `send` promises: own ids, duplicates, batches, limits.
namespace sluice::test {

using queue::NewMessage;
using queue::SendStatus;
using ::testing::IsEmpty;

TEST_P(StoreContract, SendMakesAnIdWhereNoneIsGiven) {
  const std::vector<NewMessage> batch(3, NewMessage{.id = {}, .body = "x"});
  const auto results = desk().send(queue_name(), batch, soon());
  ASSERT_EQ(results.size(), 3U);
  std::set<std::string> ids;
  for (const auto& result : results) {
    EXPECT_EQ(result.status, SendStatus::sent) << result.error.message();
    EXPECT_EQ(result.id.size(), traits().made_id);
    EXPECT_EQ(get(result.id).message.body, "x");
    ids.insert(result.id);
  }
  EXPECT_EQ(ids.size(), 3U);
}

TEST_P(StoreContract, SendRefusesAnIdThatIsThere) {
  send("A-1");
  NewMessage again{.id = "A-1", .body = "another body"};
  const auto results = desk().send(queue_name(), std::span(&again, 1), soon());
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].status, SendStatus::duplicate_id);
  EXPECT_EQ(results[0].id, "A-1");
  EXPECT_EQ(get("A-1").message.body, "body of A-1");
  EXPECT_EQ(stats(standard()).total(), 1U);
}

TEST_P(StoreContract, SendRefusesAnIdThatIsInFlightOrInTheDlq) {
  send_to_dlq("dead", failure("no"));
  send("flying");
  claim_one(standard());
  const std::vector<NewMessage> batch{
      {.id = "dead", .body = "x"}, {.id = "new", .body = "x"}, {.id = "flying", .body = "x"}};
  const auto results = desk().send(queue_name(), batch, soon());
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].status, SendStatus::duplicate_id);
  EXPECT_EQ(results[1].status, SendStatus::sent);
  EXPECT_EQ(results[2].status, SendStatus::duplicate_id);
  EXPECT_EQ(get("dead").message.body, "body of dead");
}

TEST_P(StoreContract, SendRefusesTheSecondOfOneIdInABatch) {
  std::vector<NewMessage> batch{{.id = "A-1", .body = "first"},
                                {.id = "A-2", .body = "x"},
                                {.id = "A-1", .body = "second"},
                                {.id = "A-1", .body = "third"}};
  const auto results = desk().send(queue_name(), batch, soon());
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0].status, SendStatus::sent) << results[0].error.message();
  EXPECT_EQ(results[1].status, SendStatus::sent) << results[1].error.message();
  EXPECT_EQ(results[2].status, SendStatus::duplicate_id) << results[2].error.message();
  EXPECT_EQ(results[3].status, SendStatus::duplicate_id) << results[3].error.message();
  EXPECT_EQ(get("A-1").message.body, "first");
  EXPECT_EQ(stats(standard()).total(), 2U);
}

TEST_P(StoreContract, AnIdIsFreeAgainOnceItsMessageIsGone) {
  for (int round = 0; round < 3; ++round) {
    send("A-1");
    const queue::Delivery claimed = claim_one(standard());
    EXPECT_EQ(claimed.message.attempt, 1U);
    EXPECT_EQ(settle(standard(), claimed.receipt, queue::CompletionAction::remove), queue::SettleStatus::applied);
  }
  EXPECT_TRUE(absent("A-1"));
}

TEST_P(StoreContract, SendsBatchesOfEverySize) {
  EXPECT_THAT(desk().send(queue_name(), {}, soon()), IsEmpty());
  std::size_t total = 0;
  for (const std::size_t size : {1U, 25U, 26U, 1000U}) {
    std::vector<NewMessage> batch(size);
    for (std::size_t i = 0; i < size; ++i) {
      batch[i].id = "b" + std::to_string(size) + "-" + std::to_string(i);
      batch[i].body = std::string(100, 'x');
    }
    const auto results = desk().send(queue_name(), batch, soon());
    ASSERT_EQ(results.size(), size);
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_EQ(results[i].status, SendStatus::sent) << results[i].error.message();
      EXPECT_EQ(results[i].id, batch[i].id);
    }
    total += size;
    EXPECT_EQ(stats(standard()).ready, total);
  }
}

TEST_P(StoreContract, OddIdsWork) {
  const std::vector<std::string> ids{"with space",
                                     "quote'\"`;--",
                                     "größe-日本語-🙂",
                                     "tab\tnewline\n",
                                     "{\"json\":1}",
                                     "../../etc/passwd",
                                     "%s%n",
                                     std::string(traits().max_id, 'k'),
                                     " ",
                                     "0"};
  for (const std::string& id : ids) {
    send(id);
  }
  const auto claims = claim_all(standard());
  EXPECT_EQ(ids_of(claims), ids);
  for (const queue::Delivery& claimed : claims) {
    EXPECT_EQ(get(claimed.message.id).version, claimed.receipt.version);
    EXPECT_EQ(settle(standard(), claimed.receipt, queue::CompletionAction::remove), queue::SettleStatus::applied);
    EXPECT_TRUE(absent(claimed.message.id));
  }
}

TEST_P(StoreContract, RefusesAnIdThatIsTooLongAndTakesTheOthers) {
  const std::vector<NewMessage> batch{{.id = "A-1", .body = "x"},
                                      {.id = std::string(traits().max_id + 1, 'k'), .body = "x"},
                                      {.id = "A-2", .body = "x"}};
  const auto results = desk().send(queue_name(), batch, soon());
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].status, SendStatus::sent) << results[0].error.message();
  EXPECT_EQ(results[1].status, SendStatus::failed);
  EXPECT_EQ(results[1].error.code(), ErrorCode::invalid) << results[1].error.message();
  EXPECT_EQ(results[2].status, SendStatus::sent) << results[2].error.message();
  EXPECT_EQ(stats(standard()).total(), 2U);
}

TEST_P(StoreContract, InOrderNoneOfAGroupIsStoredBehindOneThatIsRefused) {
  const std::vector<NewMessage> batch{{.id = "A-1", .body = "x", .group = "a"},
                                      {.id = std::string(traits().max_id + 1, 'k'), .body = "x", .group = "a"},
                                      {.id = "B-1", .body = "x", .group = "b"},
                                      {.id = "A-2", .body = "x", .group = "a", .dedup_id = "A-2"},
                                      {.id = std::string(traits().max_id + 1, 'k'), .body = "x"},
                                      {.id = "C-1", .body = "x"},
                                      {.id = "A-3", .body = "x", .group = "a"}};
  const auto results = desk().sender(queue_name()).send_in_order(batch, soon());
  ASSERT_EQ(results.size(), batch.size());
  for (const std::size_t place : {0U, 2U, 5U}) {
    EXPECT_EQ(results[place].status, SendStatus::sent) << results[place].error.message();
  }
  for (const std::size_t place : {1U, 4U}) {
    EXPECT_EQ(results[place].error.code(), ErrorCode::invalid) << results[place].error.message();
    EXPECT_FALSE(results[place].left);
  }
  for (const std::size_t place : {3U, 6U}) {
    EXPECT_EQ(results[place].status, SendStatus::failed);
    EXPECT_TRUE(results[place].left);
    EXPECT_TRUE(absent(batch[place].id));
  }
}

TEST_P(StoreContract, APriorityIsKeptOrRefused) {
  const NewMessage urgent{.id = "A-1", .body = "x", .priority = queue::Priority::critical};
  const auto sent = desk().send(queue_name(), std::span(&urgent, 1), soon()).front();
  if (desk().source(standard()).traits().priorities) {
    ASSERT_EQ(sent.status, SendStatus::sent) << sent.error.message();
    EXPECT_EQ(claim_one(standard()).message.priority, queue::Priority::critical);
  } else {
    EXPECT_EQ(sent.status, SendStatus::failed);
    EXPECT_EQ(sent.error.code(), ErrorCode::invalid);
    EXPECT_THAT(sent.error.message(), ::testing::HasSubstr("has no priorities"));
    EXPECT_TRUE(absent("A-1"));
  }
}

TEST_P(StoreContract, RefusesABodyThatIsTooLargeAndTakesTheOthers) {
  if (traits().max_body == 0) {
    GTEST_SKIP() << "this store names no limit";
  }
  const std::vector<NewMessage> batch{{.id = "A-1", .body = "x"},
                                      {.id = "big", .body = std::string(traits().max_body + 1, 'k')},
                                      {.id = "A-2", .body = "x"}};
  const auto results = desk().send(queue_name(), batch, soon());
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].status, SendStatus::sent) << results[0].error.message();
  EXPECT_EQ(results[1].status, SendStatus::failed);
  EXPECT_EQ(results[1].error.code(), ErrorCode::invalid) << results[1].error.message();
  EXPECT_FALSE(results[1].error.message().empty());
  EXPECT_EQ(results[2].status, SendStatus::sent) << results[2].error.message();
  EXPECT_TRUE(absent("big"));
}

}  // namespace sluice::test
