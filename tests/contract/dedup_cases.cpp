#include "tests/contract/store_contract.hpp"

// What `send` promises of messages that are not to be there twice: deduplication ids and unique keys.
namespace sluice::test {

using queue::CompletionAction;
using queue::NewMessage;
using queue::SendResult;
using queue::SendStatus;
using queue::SettleStatus;
using queue::UniqueUntil;
using ::testing::HasSubstr;

namespace {

NewMessage deduplicated(const std::string& id, const std::string& dedup_id, Duration window = queue::kDedupWindow) {
  NewMessage message{.id = id, .body = "body of " + id};
  message.dedup_id = dedup_id;
  message.dedup_window = window;
  return message;
}

NewMessage unique(const std::string& id, const std::string& key, UniqueUntil until) {
  NewMessage message{.id = id, .body = "body of " + id};
  message.unique_key = key;
  message.unique_until = until;
  return message;
}

SendResult send_one(Desk& desk, const std::string& queue, const NewMessage& message, Deadline deadline) {
  auto results = desk.send(queue, std::span(&message, 1), deadline);
  EXPECT_EQ(results.size(), 1U);
  return std::move(results.front());
}

}  // namespace

#define EXPECT_SENT(result) EXPECT_EQ((result).status, SendStatus::sent) << (result).error.message()
#define EXPECT_DUPLICATE(result, first)                                       \
  do {                                                                        \
    const SendResult& told = (result);                                        \
    EXPECT_EQ(told.status, SendStatus::deduplicated) << told.error.message(); \
    EXPECT_EQ(told.id, first);                                                \
  } while (false)

TEST_P(StoreContract, DedupAnswersADuplicateWithTheFirstOnesId) {
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-1", "order 7"), soon()));
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-2", "order 7"), soon()), "A-1");
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("", "order 7"), soon()), "A-1");
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-3", "order 8"), soon()));
  EXPECT_TRUE(absent("A-2"));
  EXPECT_EQ(get("A-1").message.body, "body of A-1");
  EXPECT_EQ(stats(standard()).total(), 2U);
}

TEST_P(StoreContract, DedupRemembersAMessageThatIsDoneAndGone) {
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-1", "order 7"), soon()));
  clock().advance(1s);
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_TRUE(absent("A-1"));
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-2", "order 7"), soon()), "A-1");
  EXPECT_EQ(stats(standard()).total(), 0U);
}

TEST_P(StoreContract, DedupEndsWithItsWindow) {
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-1", "order 7"), soon()));
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("B-1", "order 8", 1h), soon()));
  clock().advance(queue::kDedupWindow - 1s);
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-2", "order 7"), soon()), "A-1");
  // The duplicate has not begun a window of its own.
  clock().advance(1s);
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-3", "order 7"), soon()));
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-4", "order 7"), soon()), "A-3");
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("B-2", "order 8"), soon()), "B-1");
  EXPECT_EQ(stats(standard()).total(), 3U);
}

TEST_P(StoreContract, DedupWithinABatchKeepsTheFirst) {
  std::vector<NewMessage> batch;
  batch.reserve(61);
  for (int i = 0; i < 60; ++i) {
    batch.push_back(deduplicated("m" + std::to_string(i), "key " + std::to_string(i % 20)));
  }
  batch.push_back({.id = "plain", .body = "x"});
  const auto results = desk().send(queue_name(), batch, soon());
  ASSERT_EQ(results.size(), batch.size());
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_SENT(results[i]);
    EXPECT_EQ(results[i].id, batch[i].id);
    EXPECT_DUPLICATE(results[i + 20], batch[i].id);
    EXPECT_DUPLICATE(results[i + 40], batch[i].id);
  }
  EXPECT_SENT(results.back());
  EXPECT_EQ(stats(standard()).total(), 21U);
}

TEST_P(StoreContract, DedupIsOfOneQueue) {
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-1", "order 7"), soon()));
  EXPECT_SENT(send_one(desk(), under_test().other_queue(), deduplicated("A-1", "order 7"), soon()));
}

TEST_P(StoreContract, AnIdThatIsTakenIsRefusedAndTakesNoDedupId) {
  send("A-1");
  EXPECT_EQ(send_one(desk(), queue_name(), deduplicated("A-1", "order 7"), soon()).status, SendStatus::duplicate_id);
  // Nothing was sent with it, so that nothing is a duplicate.
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-2", "order 7"), soon()));
  // Sent again as it was, it is the duplicate that counts, not the id.
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-2", "order 7"), soon()), "A-2");
}

TEST_P(StoreContract, AClockThatIsSetBackNeitherEndsAWindowNorKeepsItOpen) {
  if (!traits().windows_by_own_clock) {
    GTEST_SKIP() << "windows are measured by the store's own clock, which the test cannot set back";
  }
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-1", "order 7"), soon()));
  clock().set_wall(clock().wall_now() - 24h);
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-2", "order 7"), soon()), "A-1");
  clock().advance(queue::kDedupWindow - 1s);
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-2", "order 7"), soon()), "A-1");
  clock().advance(1s);
  EXPECT_SENT(send_one(desk(), queue_name(), deduplicated("A-3", "order 7"), soon()));
  // And forward again: time does not jump on, as it had not been set back for the windows.
  clock().set_wall(clock().wall_now() + 1s);
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-4", "order 7"), soon()), "A-3");
}

TEST_P(StoreContract, KeysThatCannotBeKeptAreRefusedByThemselves) {
  std::vector<NewMessage> batch{deduplicated("long", std::string(10'000, 'k')), deduplicated("fine", "order 7"),
                                deduplicated("bytes", "\xff\xfe"), unique("wide", std::string(1025, 'k'), {}),
                                deduplicated("forever", "order 8", std::chrono::hours(24 * 1000))};
  const auto results = desk().send(queue_name(), batch, soon());
  ASSERT_EQ(results.size(), batch.size());
  for (const std::size_t bad : {0U, 2U, 3U, 4U}) {
    EXPECT_EQ(results[bad].status, SendStatus::failed) << bad;
    EXPECT_EQ(results[bad].error.code(), ErrorCode::invalid) << results[bad].error.message();
    EXPECT_TRUE(absent(batch[bad].id));
  }
  EXPECT_THAT(results[0].error.message(), HasSubstr("deduplication id"));
  EXPECT_THAT(results[0].error.message(), HasSubstr("(10000 bytes) has more than 1024 bytes; send a hash"));
  EXPECT_THAT(results[2].error.message(), HasSubstr("is not UTF-8"));
  EXPECT_THAT(results[3].error.message(), HasSubstr("unique key"));
  EXPECT_THAT(results[4].error.message(), HasSubstr("between one second and 366 days"));
  EXPECT_SENT(results[1]);
}

TEST_P(StoreContract, AMessageIsUniqueWhileItIsQueued) {
  EXPECT_SENT(send_one(desk(), queue_name(), unique("A-1", "report", UniqueUntil::claimed), soon()));
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), unique("A-2", "report", UniqueUntil::claimed), soon()), "A-1");
  EXPECT_SENT(send_one(desk(), queue_name(), unique("B-1", "bill", UniqueUntil::claimed), soon()));
  // A window does not end it.
  clock().advance(48h);
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), unique("A-2", "report", UniqueUntil::claimed), soon()), "A-1");
  const auto held = claim_one(standard());
  EXPECT_EQ(held.message.id, "A-1");
  EXPECT_SENT(send_one(desk(), queue_name(), unique("A-3", "report", UniqueUntil::claimed), soon()));
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), unique("A-4", "report", UniqueUntil::claimed), soon()), "A-3");
}

TEST_P(StoreContract, AMessageIsUniqueUntilItIsDone) {
  EXPECT_SENT(send_one(desk(), queue_name(), unique("A-1", "report", UniqueUntil::done), soon()));
  clock().advance(1s);
  const auto held = claim_one(standard());
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), unique("A-2", "report", UniqueUntil::done), soon()), "A-1");
  EXPECT_EQ(settle(standard(), held.receipt, CompletionAction::retry, 10s, failure("again")), SettleStatus::applied);
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), unique("A-2", "report", UniqueUntil::done), soon()), "A-1");
  clock().advance(11s);
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_SENT(send_one(desk(), queue_name(), unique("A-3", "report", UniqueUntil::done), soon()));
}

TEST_P(StoreContract, ADeadLetterGivesItsUniqueKeyUpAndHasItAgainOnceRedriven) {
  EXPECT_SENT(send_one(desk(), queue_name(), unique("A-1", "report", UniqueUntil::done), soon()));
  clock().advance(1s);
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::dead_letter, {}, failure("no")),
            SettleStatus::applied);
  const auto redriven = change({.id = "A-1", .action = queue::ChangeAction::redrive});
  EXPECT_EQ(redriven.status, queue::ChangeStatus::applied) << redriven.error.message();
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), unique("A-2", "report", UniqueUntil::done), soon()), "A-1");
  clock().advance(1s);
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::dead_letter, {}, failure("no")),
            SettleStatus::applied);
  EXPECT_SENT(send_one(desk(), queue_name(), unique("A-3", "report", UniqueUntil::done), soon()));
  // The key is somebody else's by now: both may lie there, and the newcomer is the one who has it.
  EXPECT_EQ(change({.id = "A-1", .action = queue::ChangeAction::redrive}).status, queue::ChangeStatus::applied);
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), unique("A-4", "report", UniqueUntil::done), soon()), "A-3");
  EXPECT_EQ(stats(standard()).total(), 2U);
}

TEST_P(StoreContract, AUniqueKeyIsOfTheMessageThatTookItAndNotOfAnotherUnderItsId) {
  EXPECT_SENT(send_one(desk(), queue_name(), unique("A-1", "report", UniqueUntil::done), soon()));
  clock().advance(1s);
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::remove), SettleStatus::applied);
  clock().advance(1s);
  send("A-1");
  EXPECT_SENT(send_one(desk(), queue_name(), unique("A-2", "report", UniqueUntil::done), soon()));
}

TEST_P(StoreContract, UniqueWithinABatchKeepsTheFirst) {
  const std::vector<NewMessage> batch{unique("A-1", "report", UniqueUntil::done),
                                      unique("A-2", "report", UniqueUntil::done),
                                      {.id = "A-3", .body = "x"},
                                      unique("A-4", "report", UniqueUntil::claimed)};
  const auto results = desk().send(queue_name(), batch, soon());
  ASSERT_EQ(results.size(), 4U);
  EXPECT_SENT(results[0]);
  EXPECT_DUPLICATE(results[1], "A-1");
  EXPECT_SENT(results[2]);
  EXPECT_DUPLICATE(results[3], "A-1");
}

TEST_P(StoreContract, AMessageMayHaveBothKeys) {
  NewMessage first = deduplicated("A-1", "order 7");
  first.unique_key = "customer 3";
  EXPECT_SENT(send_one(desk(), queue_name(), first, soon()));
  NewMessage other = deduplicated("A-2", "order 8");
  other.unique_key = "customer 3";
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), other, soon()), "A-1");
  clock().advance(1s);
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::remove), SettleStatus::applied);
  // What was refused for its unique key has not begun a window.
  EXPECT_SENT(send_one(desk(), queue_name(), other, soon()));
  EXPECT_DUPLICATE(send_one(desk(), queue_name(), deduplicated("A-3", "order 8"), soon()), "A-2");
}

}  // namespace sluice::test
