#include "host/queue/effects.hpp"
#include "tests/contract/store_contract.hpp"

// Idempotency keys: of the messages with one key, one is worked on.
namespace sluice::test {

using queue::IdempotencyKeys;
using queue::KeyClaim;
using queue::KeyState;
using ::testing::UnorderedElementsAre;

namespace {

std::unique_ptr<IdempotencyKeys> open_keys(queue::Queues& queues, const std::string& queue) {
  auto opened = queues.open_keys(queue);
  if (!opened) {
    ADD_FAILURE() << opened.error().message();
    return nullptr;
  }
  return std::move(*opened);
}

KeyClaim claim_of(const std::string& key, const std::string& owner, Duration hold_for = 60s) {
  return {.job = "pay", .key = key, .owner = owner, .hold_for = hold_for, .fence = 1};
}

/// What one claim comes to; the test's clock decides about time.
queue::KeyAnswer begin(IdempotencyKeys& keys, const KeyClaim& claim, Deadline deadline) {
  auto answers = keys.begin(std::span(&claim, 1), deadline);
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_NE(answers.at(0).state, KeyState::failed) << answers.at(0).error.message();
  return answers.at(0);
}

void release(IdempotencyKeys& keys, const KeyClaim& claim, Deadline deadline) {
  const auto released = keys.release(std::span(&claim, 1), deadline);
  EXPECT_TRUE(released) << released.error().message();
}

std::vector<std::string> names(const std::vector<queue::StoredKey>& keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const queue::StoredKey& key : keys) {
    names.push_back(key.job + ":" + key.key);
  }
  return names;
}

}  // namespace

TEST_P(StoreContract, AKeyIsOneMessagesUntilItIsReleased) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  const auto first = begin(*keys, claim_of("order-1", "a"), soon());
  EXPECT_EQ(first.state, KeyState::ours);
  const auto second = begin(*keys, claim_of("order-1", "b"), soon());
  EXPECT_EQ(second.state, KeyState::running);
  EXPECT_EQ(second.owner, "a");
  EXPECT_GT(second.until, clock().wall_now() + 30s);
  EXPECT_EQ(begin(*keys, claim_of("order-1", "a"), soon()).state, KeyState::ours) << "its own next attempt";
  EXPECT_EQ(begin(*keys, claim_of("order-2", "b"), soon()).state, KeyState::ours) << "another key";
  release(*keys, claim_of("order-1", "b"), soon());
  EXPECT_EQ(begin(*keys, claim_of("order-1", "b"), soon()).state, KeyState::running) << "it was not b's to release";
  release(*keys, claim_of("order-1", "a"), soon());
  EXPECT_EQ(begin(*keys, claim_of("order-1", "b"), soon()).state, KeyState::ours);
}

TEST_P(StoreContract, AMarkIsVoidOnceItsTimeHasPassed) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  EXPECT_EQ(begin(*keys, claim_of("order-1", "a", 60s), soon()).state, KeyState::ours);
  clock().advance(59s);
  EXPECT_EQ(begin(*keys, claim_of("order-1", "b"), soon()).state, KeyState::running);
  clock().advance(2s);
  EXPECT_EQ(begin(*keys, claim_of("order-1", "b"), soon()).state, KeyState::ours)
      << "whoever made the mark may be dead";
}

TEST_P(StoreContract, AMarkThatIsMadeAgainHoldsFromThen) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  EXPECT_EQ(begin(*keys, claim_of("order-1", "a", 60s), soon()).state, KeyState::ours);
  clock().advance(50s);
  EXPECT_EQ(begin(*keys, claim_of("order-1", "a", 60s), soon()).state, KeyState::ours);
  clock().advance(50s);
  EXPECT_EQ(begin(*keys, claim_of("order-1", "b"), soon()).state, KeyState::running);
}

TEST_P(StoreContract, ALateReleaseDoesNotTakeTheMarkOfTheNextDelivery) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  KeyClaim again = claim_of("order-1", "a");
  again.fence = 2;
  begin(*keys, claim_of("order-1", "a"), soon());
  begin(*keys, again, soon());
  release(*keys, claim_of("order-1", "a"), soon());
  EXPECT_EQ(begin(*keys, claim_of("order-1", "b"), soon()).state, KeyState::running);
  release(*keys, again, soon());
  EXPECT_EQ(begin(*keys, claim_of("order-1", "b"), soon()).state, KeyState::ours);
}

TEST_P(StoreContract, OfTwoMessagesInOneCallOneHasTheKey) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  const std::vector<KeyClaim> both{claim_of("order-1", "a"), claim_of("order-2", "c"), claim_of("order-1", "b")};
  const auto answers = keys->begin(both, soon());
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_THAT((std::vector{answers[0].state, answers[2].state}),
              UnorderedElementsAre(KeyState::ours, KeyState::running));
  EXPECT_EQ(answers[1].state, KeyState::ours);
}

TEST_P(StoreContract, KeysOfTwoJobsAreTwo) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  KeyClaim other = claim_of("order-1", "a");
  other.job = "ship";
  EXPECT_EQ(begin(*keys, claim_of("order-1", "b"), soon()).state, KeyState::ours);
  EXPECT_EQ(begin(*keys, other, soon()).state, KeyState::ours);
}

TEST_P(StoreContract, KeysOfTwoQueuesAreTwo) {
  send("other");
  queue::NewMessage message;
  message.body = "it makes the queue, where a queue is made so";
  ASSERT_EQ(desk().send(other().queue, std::span(&message, 1), soon()).at(0).status, queue::SendStatus::sent);
  const auto ours = open_keys(under_test().queues(), queue_name());
  const auto theirs = open_keys(under_test().queues(), other().queue);
  EXPECT_EQ(begin(*ours, claim_of("order-1", "a"), soon()).state, KeyState::ours);
  EXPECT_EQ(begin(*theirs, claim_of("order-1", "b"), soon()).state, KeyState::ours)
      << "a job of that name works on another queue, too";
  begin(*theirs, claim_of("order-2", "c"), soon());
  for (const std::string job : {"", "pay"}) {
    const auto listed = ours->list(job, 10, {}, soon());
    ASSERT_TRUE(listed) << listed.error().message();
    EXPECT_THAT(names(listed->keys), ::testing::ElementsAre("pay:order-1")) << "each queue sees its own";
  }
  const auto forgotten = ours->forget("pay", "order-2", soon());
  ASSERT_TRUE(forgotten);
  EXPECT_FALSE(*forgotten);
  EXPECT_EQ(begin(*theirs, claim_of("order-2", "d"), soon()).state, KeyState::running);
}

TEST_P(StoreContract, WhereTheKeyIsTheMessagesOwnIdNothingIsMarked) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  EXPECT_EQ(begin(*keys, claim_of("a", "a", {}), soon()).state, KeyState::ours);
  const auto found = keys->get("pay", "a", soon());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_FALSE(*found);
}

TEST_P(StoreContract, KeysMayHoldAnyBytes) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  const std::string odd("a\0b\xff/'\"\n", 8);
  const std::string shorter = odd.substr(0, 7);
  EXPECT_EQ(begin(*keys, claim_of(odd, "a"), soon()).state, KeyState::ours);
  EXPECT_EQ(begin(*keys, claim_of(odd, "b"), soon()).state, KeyState::running);
  EXPECT_EQ(begin(*keys, claim_of(shorter, "b"), soon()).state, KeyState::ours);
  EXPECT_EQ(begin(*keys, claim_of(std::string(1'024, 'k'), "a"), soon()).state, KeyState::ours);
  EXPECT_EQ(begin(*keys, claim_of(std::string(1'024, 'k'), "b"), soon()).state, KeyState::running);
  const auto found = keys->get("pay", odd, soon());
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->key, odd);
}

TEST_P(StoreContract, OperatorsListShowAndForgetKeys) {
  send("other");
  const auto keys = open_keys(under_test().queues(), queue_name());
  std::vector<std::string> all;
  for (int i = 0; i < 7; ++i) {
    const std::string key = "order-" + std::to_string(i);
    begin(*keys, claim_of(key, "a" + std::to_string(i)), soon());
    all.push_back("pay:" + key);
  }
  KeyClaim other = claim_of("order-0", "x");
  other.job = "ship";
  begin(*keys, other, soon());
  std::vector<std::string> listed;
  std::string cursor;
  do {
    const auto page = keys->list("pay", 3, cursor, soon());
    ASSERT_TRUE(page) << page.error().message();
    EXPECT_LE(page->keys.size(), 3U);
    for (const std::string& name : names(page->keys)) {
      listed.push_back(name);
    }
    cursor = page->next;
  } while (!cursor.empty());
  EXPECT_THAT(listed, ::testing::UnorderedElementsAreArray(all));
  const auto everybodys = keys->list({}, 100, {}, soon());
  ASSERT_TRUE(everybodys);
  EXPECT_EQ(everybodys->keys.size(), 8U);

  const auto shown = keys->get("pay", "order-3", soon());
  ASSERT_TRUE(shown && *shown);
  EXPECT_EQ((*shown)->owner, "a3");
  EXPECT_FALSE((*shown)->done);
  const auto forgotten = keys->forget("pay", "order-3", soon());
  ASSERT_TRUE(forgotten) << forgotten.error().message();
  EXPECT_TRUE(*forgotten);
  EXPECT_FALSE(*keys->forget("pay", "order-3", soon())) << "it is gone";
  EXPECT_EQ(begin(*keys, claim_of("order-3", "b"), soon()).state, KeyState::ours);
  clock().advance(120s);
  EXPECT_TRUE(keys->list({}, 100, {}, soon())->keys.empty()) << "those whose time has passed are not shown";
}

TEST_P(StoreContract, KeysAreNoMessages) {
  send("one");
  const auto keys = open_keys(under_test().queues(), queue_name());
  begin(*keys, claim_of("order-1", "one"), soon());
  EXPECT_EQ(list_all(standard()).size(), 1U);
  EXPECT_TRUE(list_all(dlq()).empty());
  EXPECT_EQ(stats(standard()).total(), 1U);
  EXPECT_EQ(claim_all(standard()).size(), 1U);
}

}  // namespace sluice::test
