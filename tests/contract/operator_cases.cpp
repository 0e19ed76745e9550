#include <algorithm>
#include <set>
#include <utility>

#include "host/queue/operator.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/support/meddling_operator.hpp"

// What operators use: get, list, stats, and the removal of what was listed.
namespace sluice::test {

using queue::CompletionAction;
using queue::Half;
using queue::ListRequest;
using queue::MessageState;
using queue::SettleStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

/// How many messages went, and how many stayed.
using Removed = std::pair<std::size_t, std::size_t>;

/// Removes what one look at the half lists.
Removed remove_all(queue::Operator& queue, Half half, Deadline deadline) {
  const auto page = queue.list({.half = half, .limit = 500, .content = false}, deadline);
  if (!page) {
    ADD_FAILURE() << page.error().message();
    return {};
  }
  std::vector<queue::Change> removals;
  for (const queue::StoredMessage& found : page->messages) {
    removals.push_back({.id = found.message.id, .action = queue::ChangeAction::remove, .version = found.version});
  }
  Removed removed;
  for (const queue::ChangeResult& result : remove_from_half(queue, half, std::move(removals), deadline)) {
    EXPECT_NE(result.status, queue::ChangeStatus::failed) << result.error.message();
    ++(result.status == queue::ChangeStatus::applied ? removed.first : removed.second);
  }
  return removed;
}

}  // namespace

TEST_P(StoreContract, GetFindsBothHalvesAndNothingElse) {
  send("alive");
  send_to_dlq("dead", failure("no"));
  EXPECT_EQ(get("alive").half, Half::standard);
  EXPECT_EQ(get("dead").half, Half::dlq);
  EXPECT_TRUE(absent("neither"));
  EXPECT_TRUE(absent("aliv"));
}

TEST_P(StoreContract, ListPagesOldestFirst) {
  std::vector<std::string> ids;
  for (int i = 0; i < 25; ++i) {
    ids.push_back("m" + std::to_string(24 - i));
    send(ids.back());
  }
  claim(standard(), 3);
  send("late", 60s);
  ids.push_back("late");
  std::vector<std::string> seen;
  ListRequest request{.limit = 10};
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = desk().list(queue_name(), request, soon());
    ASSERT_TRUE(page) << page.error().message();
    EXPECT_LE(page->messages.size(), 10U);
    for (const auto& stored : page->messages) {
      seen.push_back(stored.message.id);
    }
    request.cursor = page->next;
    if (request.cursor.empty()) {
      break;
    }
  }
  EXPECT_EQ(seen, ids);
}

TEST_P(StoreContract, ListGoesOnAfterItsLastMessageIsGone) {
  send_many(10);
  const auto first = desk().list(queue_name(), {.limit = 4}, soon());
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_EQ(first->messages.size(), 4U);
  ASSERT_TRUE(desk().remove(queue_name(), first->messages.back().message.id, soon()));
  const auto rest = desk().list(queue_name(), {.limit = 100, .cursor = first->next}, soon());
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_EQ(rest->messages.size(), 6U);
  EXPECT_TRUE(rest->next.empty());
}

TEST_P(StoreContract, ListShowsTheWholeRecord) {
  send_to_dlq("dead", failure("why it died"));
  const auto page = desk().list(queue_name(), {.half = queue::Half::dlq, .limit = 10}, soon());
  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->messages.size(), 1U);
  EXPECT_EQ(page->messages[0].message.body, "body of dead");
  EXPECT_EQ(page->messages[0].failure.error, "why it died");
  EXPECT_EQ(page->messages[0].half, Half::dlq);
  const auto other = desk().list(queue_name(), {.limit = 10}, soon());
  ASSERT_TRUE(other);
  EXPECT_THAT(other->messages, IsEmpty());
}

TEST_P(StoreContract, ListWithoutContentStillTellsWhereMessagesStand) {
  send_content("json", R"({"large":true})", queue::kJson);
  send("late", 60s);
  send_to_dlq("dead", failure("why it died"));
  claim_one(standard());
  const auto heads = list_all(standard(), false);
  ASSERT_EQ(heads.size(), 2U);
  const WallTime now = clock().wall_now();
  for (const auto& head : heads) {
    const queue::StoredMessage whole = get(head.message.id);
    EXPECT_EQ(head.version, whole.version);
    EXPECT_EQ(head.message.attempt, whole.message.attempt);
    EXPECT_EQ(head.message.sent_at, whole.message.sent_at);
    EXPECT_EQ(head.state(now), whole.state(now));
    EXPECT_EQ(head.created_at, whole.created_at);
    EXPECT_EQ(head.updated_at, whole.updated_at);
    EXPECT_EQ(head.received_at, whole.received_at);
  }
  const auto dead = list_all(dlq(), false);
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].failure.error, "why it died");
  EXPECT_EQ(dead[0].half, Half::dlq);
}

TEST_P(StoreContract, ListRefusesACursorThatIsNone) {
  send("A-1");
  const auto page = desk().list(queue_name(), {.limit = 10, .cursor = "garbage!"}, soon());
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code(), ErrorCode::invalid) << page.error().message();
}

TEST_P(StoreContract, StatsCountByState) {
  EXPECT_EQ(stats(standard()).total(), 0U);
  send("a");
  send("b");
  send("c");
  send("d");
  send("late", 60s);
  claim(standard(), 2, 30s);
  settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, 60s);
  send_to_dlq("dead", failure("no"));
  const queue::QueueStats now = stats(standard());
  EXPECT_EQ(now.ready, 1U);
  EXPECT_EQ(now.in_flight, 2U);
  EXPECT_EQ(now.delayed, 2U);
  EXPECT_EQ(stats(dlq()).ready, 1U);
  EXPECT_EQ(stats(dlq()).total(), 1U);
  if (now.oldest_ready) {
    EXPECT_EQ(*now.oldest_ready, get("d").message.sent_at);
  }
  clock().advance(40s);
  EXPECT_EQ(stats(standard()).ready, 3U);
  EXPECT_EQ(stats(standard()).in_flight, 0U);
  clock().advance(60s);
  EXPECT_EQ(stats(standard()).ready, 5U);
}

TEST_P(StoreContract, RemoveTakesAMessageInWhateverState) {
  send("ready");
  send_to_dlq("dead", failure("no"));
  send("late", 60s);
  const queue::Delivery flying = claim_one(standard());
  for (const std::string id : {"ready", "dead", "late"}) {
    const auto removed = desk().remove(queue_name(), id, soon());
    EXPECT_TRUE(removed) << id << ": " << (removed ? "" : removed.error().message());
    EXPECT_TRUE(absent(id));
    const auto again = desk().remove(queue_name(), id, soon());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), ErrorCode::not_found);
  }
  EXPECT_EQ(settle(standard(), flying.receipt, CompletionAction::retry), SettleStatus::lost);
  EXPECT_EQ(stats(standard()).total() + stats(dlq()).total(), 0U);
}

TEST_P(StoreContract, OperatorDeadLetterWorksInWhateverState) {
  send("flying");
  const queue::Delivery claimed = claim_one(standard());
  const queue::Failure why = failure("given up by hand");
  ASSERT_TRUE(desk().dead_letter(queue_name(), "flying", why, soon()));
  const queue::StoredMessage stored = get("flying");
  EXPECT_EQ(stored.half, Half::dlq);
  EXPECT_EQ(stored.message.attempt, 0U);
  EXPECT_EQ(stored.failure.error, "given up by hand");
  EXPECT_EQ(settle(standard(), claimed.receipt, CompletionAction::remove), SettleStatus::lost);
  const auto again = desk().dead_letter(queue_name(), "flying", failure("again"), soon());
  EXPECT_TRUE(again) << "in the DLQ already is a success";
  EXPECT_EQ(get("flying").half, Half::dlq);
  const auto ghost = desk().dead_letter(queue_name(), "ghost", why, soon());
  ASSERT_FALSE(ghost);
  EXPECT_EQ(ghost.error().code(), ErrorCode::not_found);
  send("late", 60s);
  ASSERT_TRUE(desk().dead_letter(queue_name(), "late", why, soon()));
  clock().advance(1ms);
  EXPECT_THAT(ids_of(claim(dlq())), ElementsAre("flying", "late"));
}

TEST_P(StoreContract, RedriveGivesAFreshStart) {
  send("A-1");
  claim_one(standard());
  ASSERT_TRUE(desk().dead_letter(queue_name(), "A-1", failure("no"), soon()));
  clock().advance(1ms);
  EXPECT_EQ(settle(dlq(), claim_one(dlq()).receipt, CompletionAction::retry), SettleStatus::applied);
  EXPECT_EQ(get("A-1").message.attempt, 1U);
  const WallTime now = clock().wall_now();
  const auto redriven = desk().redrive(queue_name(), "A-1", soon());
  ASSERT_TRUE(redriven) << redriven.error().message();
  const queue::StoredMessage stored = get("A-1");
  EXPECT_EQ(stored.half, Half::standard);
  EXPECT_EQ(stored.message.attempt, 0U);
  EXPECT_EQ(stored.message.sent_at, now);
  EXPECT_EQ(stored.received_at, std::nullopt);
  clock().advance(1ms);
  EXPECT_EQ(stored.state(clock().wall_now()), MessageState::ready);
  EXPECT_EQ(claim_one(standard()).message.attempt, 1U);
  EXPECT_THAT(claim(dlq()), IsEmpty());
}

TEST_P(StoreContract, RedriveRefusesWhatItMust) {
  send("alive");
  const auto alive = desk().redrive(queue_name(), "alive", soon());
  ASSERT_FALSE(alive);
  EXPECT_EQ(alive.error().code(), ErrorCode::conflict) << alive.error().message();
  send_to_dlq("flying", failure("no"));
  const queue::Delivery claimed = claim_one(dlq());
  const auto flying = desk().redrive(queue_name(), "flying", soon());
  ASSERT_FALSE(flying);
  EXPECT_EQ(flying.error().code(), ErrorCode::conflict) << flying.error().message();
  EXPECT_EQ(settle(dlq(), claimed.receipt, CompletionAction::remove), SettleStatus::applied);
  const auto ghost = desk().redrive(queue_name(), "ghost", soon());
  ASSERT_FALSE(ghost);
  EXPECT_EQ(ghost.error().code(), ErrorCode::not_found) << ghost.error().message();
}

/// A handler rejects a message, and somebody redrives another, while what was listed is being removed.
TEST_P(StoreContract, RemovalLeavesWhatMovesToTheOtherHalfMeanwhile) {
  send_many(3);
  const queue::Delivery held = claim_one(standard());
  MeddlingOperator rejected(desk().oper(queue_name()), [&] {
    settle(standard(), held.receipt, CompletionAction::dead_letter, {}, failure("no"));
  });
  EXPECT_EQ(remove_all(rejected, Half::standard, soon()), (Removed{2, 1}));
  EXPECT_EQ(stats(standard()).total(), 0U);
  EXPECT_EQ(get(held.message.id).half, Half::dlq);

  MeddlingOperator redriven(desk().oper(queue_name()),
                            [&] { static_cast<void>(desk().redrive(queue_name(), held.message.id, soon())); });
  EXPECT_EQ(remove_all(redriven, Half::dlq, soon()), (Removed{0, 1}));
  EXPECT_EQ(get(held.message.id).half, Half::standard);
}

TEST_P(StoreContract, RemovalTakesWhatChangesInItsHalfMeanwhile) {
  send_many(30);
  const queue::Delivery held = claim_one(standard());
  bool first = true;
  MeddlingOperator meddled(desk().oper(queue_name()), [&] {
    if (std::exchange(first, false)) {
      EXPECT_EQ(desk().extend(standard(), std::span(&held.receipt, 1), 60s, soon()).front().status,
                SettleStatus::applied);
      EXPECT_EQ(claim(standard(), 4).size(), 4U);
      EXPECT_TRUE(desk().remove(queue_name(), "m0029", soon()));
    }
  });
  // Those in flight too, but for the one that is gone.
  EXPECT_EQ(remove_all(meddled, Half::standard, soon()), (Removed{29, 1}));
  EXPECT_EQ(stats(standard()).total(), 0U);
}

/// Nobody is to wait for ever for one message.
TEST_P(StoreContract, RemovalGivesUpOnWhatIsChangedAllTheTime) {
  send_many(2);
  MeddlingOperator meddled(desk().oper(queue_name()), [&] {
    const queue::Change touched{.id = "m0001", .action = queue::ChangeAction::move_to_front};
    EXPECT_EQ(desk().change(queue_name(), std::span(&touched, 1), soon()).front().status, queue::ChangeStatus::applied);
  });
  EXPECT_EQ(remove_all(meddled, Half::standard, soon()), (Removed{1, 1}));
  EXPECT_EQ(stats(standard()).total(), 1U);
}

}  // namespace sluice::test
