#include "tests/contract/store_contract.hpp"

// What a record keeps of the attempts that failed, and how an overview groups them.
namespace sluice::test {

using queue::CompletionAction;
using queue::Half;
using queue::ListRequest;
using queue::SettleStatus;
using ::testing::ElementsAre;

TEST_P(StoreContract, ARecordKeepsItsLastFiveFailures) {
  send("m");
  for (int attempt = 1; attempt <= 7; ++attempt) {
    const auto delivery = claim_one(standard());
    auto why = failure("failure " + std::to_string(attempt));
    why.attempts = static_cast<std::uint32_t>(attempt);
    why.wait = attempt * 1000ms;
    why.took = attempt * 10ms;
    ASSERT_EQ(settle(standard(), delivery.receipt, CompletionAction::retry, 1ms, why), SettleStatus::applied);
    clock().advance(10ms);
  }
  const queue::Failure kept = get("m").failure;
  EXPECT_EQ(kept.error, "failure 7");
  EXPECT_EQ(kept.wait, 7s);
  EXPECT_EQ(kept.took, 70ms);
  ASSERT_EQ(kept.earlier.size(), queue::kEarlierFailures);
  for (std::size_t index = 0; index < kept.earlier.size(); ++index) {
    const int attempt = 6 - static_cast<int>(index);
    EXPECT_EQ(kept.earlier[index].error, "failure " + std::to_string(attempt));
    EXPECT_EQ(kept.earlier[index].attempt, static_cast<std::uint32_t>(attempt));
    EXPECT_EQ(kept.earlier[index].host, "worker-a");
    EXPECT_EQ(kept.earlier[index].wait, attempt * 1000ms);
    EXPECT_EQ(kept.earlier[index].took, attempt * 10ms);
    EXPECT_LT(kept.earlier[index].failed_at, kept.failed_at);
  }
}

TEST_P(StoreContract, ADeadLetterTellsOfItsAttempts) {
  send("m");
  ASSERT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, 1ms, failure("first")),
            SettleStatus::applied);
  clock().advance(10ms);
  ASSERT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::dead_letter, {}, failure("second")),
            SettleStatus::applied);
  const auto dead = get("m");
  EXPECT_EQ(dead.half, Half::dlq);
  EXPECT_EQ(dead.failure.error, "second");
  ASSERT_EQ(dead.failure.earlier.size(), 1U);
  EXPECT_EQ(dead.failure.earlier[0].error, "first");
}

TEST_P(StoreContract, AnOperatorsReasonIsKeptWithThoseBeforeIt) {
  for (const bool seen : {false, true}) {
    const std::string id = seen ? "seen" : "unseen";
    send(id);
    ASSERT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, 1ms, failure("first")),
              SettleStatus::applied);
    queue::Change dead{.id = id, .action = queue::ChangeAction::dead_letter, .failure = failure("by hand")};
    if (seen) {
      dead.version = get(id).version;
    }
    ASSERT_EQ(change(dead).status, queue::ChangeStatus::applied);
    const queue::Failure kept = get(id).failure;
    EXPECT_EQ(kept.error, "by hand");
    ASSERT_EQ(kept.earlier.size(), 1U) << id;
    EXPECT_EQ(kept.earlier[0].error, "first");
  }
}

TEST_P(StoreContract, ARedrivenMessageBeginsAnew) {
  send("m");
  ASSERT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::dead_letter, {}, failure("before")),
            SettleStatus::applied);
  ASSERT_TRUE(desk().redrive(queue_name(), "m", soon()));
  clock().advance(10ms);
  ASSERT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, 1ms, failure("after")),
            SettleStatus::applied);
  EXPECT_TRUE(get("m").failure.earlier.empty());
}

TEST_P(StoreContract, ErrorsThatDifferInNumbersAloneAreOneGroup) {
  send_to_dlq("a", failure("timed out after 1000 ms"));
  clock().advance(1h);
  auto elsewhere = failure("timed out after 2000 ms");
  elsewhere.host = "worker-b";
  send_to_dlq("b", elsewhere);
  send_to_dlq("c", failure("timed out after 3 ms"));
  send_to_dlq("d", failure("refused"));
  clock().advance(1ms);
  auto seen = desk().overview(queue_name(), {.half = Half::dlq, .errors = 1}, soon());
  ASSERT_TRUE(seen) << seen.error().message();
  ASSERT_EQ(seen->errors.size(), 1U);
  const queue::ErrorGroup& group = seen->errors[0];
  EXPECT_EQ(group.count, 3U);
  EXPECT_EQ(group.pattern, "timed out after # ms");
  EXPECT_EQ(group.first_failed_at, get("a").failure.failed_at);
  EXPECT_EQ(group.last_failed_at, get("c").failure.failed_at);
  EXPECT_EQ(group.hosts, (std::map<std::string, std::uint64_t>{{"worker-a", 2}, {"worker-b", 1}}));
  EXPECT_EQ(group.handlers, (std::map<std::string, std::uint64_t>{{"verify-file", 3}}));
  EXPECT_EQ(group.per_hour[0], 2U);
  EXPECT_EQ(group.per_hour[1], 1U);
  EXPECT_EQ(seen->unlisted_errors, 1U);
}

TEST_P(StoreContract, ListsTheNewestFirst) {
  std::vector<std::string> ids;
  for (int i = 0; i < 7; ++i) {
    ids.insert(ids.begin(), "m" + std::to_string(i));
    send(ids.front());
    clock().advance(1ms);
  }
  claim(standard(), 2);
  std::vector<std::string> seen;
  ListRequest request{.limit = 3, .newest_first = true};
  do {
    const auto page = desk().list(queue_name(), request, soon());
    ASSERT_TRUE(page) << page.error().message();
    EXPECT_LE(page->messages.size(), 3U);
    for (const auto& stored : page->messages) {
      seen.push_back(stored.message.id);
    }
    request.cursor = page->next;
  } while (!request.cursor.empty() && seen.size() < 20);
  EXPECT_EQ(seen, ids);
}

// Whatever the store accepts can be retried, dead-lettered and redriven: of the reason as much is kept as there is room
// for.
TEST_P(StoreContract, TheLargestMessageCanFailInEveryWay) {
  if (traits().max_body == 0) {
    GTEST_SKIP() << "there is no largest message";
  }
  const auto send_of = [this](const std::string& id, std::size_t bytes) {
    queue::NewMessage message;
    message.id = id;
    message.body = std::string(bytes, 'x');
    message.content_type = queue::kTextPlain;
    return desk().send(queue_name(), std::span(&message, 1), soon()).at(0);
  };
  std::size_t fits = 0;
  std::size_t too_large = traits().max_body + 1;
  while (fits + 1 < too_large) {
    const std::size_t middle = (fits + too_large) / 2;
    const std::string id = "probe" + std::to_string(middle);
    if (send_of(id, middle).status == queue::SendStatus::sent) {
      fits = middle;
      ASSERT_EQ(change({.id = id}).status, queue::ChangeStatus::applied);
    } else {
      too_large = middle;
    }
  }
  ASSERT_EQ(send_of("large", fits).status, queue::SendStatus::sent);
  const queue::Failure why = failure(std::string(2000, 'w'));
  clock().advance(1ms);
  ASSERT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, {}, why), SettleStatus::applied);
  clock().advance(1ms);
  ASSERT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::dead_letter, {}, why),
            SettleStatus::applied);
  EXPECT_EQ(get("large").half, queue::Half::dlq);
  ASSERT_EQ(change({.id = "large", .action = queue::ChangeAction::redrive}).status, queue::ChangeStatus::applied);
  ASSERT_EQ(change({.id = "large", .action = queue::ChangeAction::dead_letter, .failure = why}).status,
            queue::ChangeStatus::applied);
  EXPECT_EQ(get("large").half, queue::Half::dlq);
}

}  // namespace sluice::test
