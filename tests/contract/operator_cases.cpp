#include <algorithm>
#include <set>
#include <utility>

#include "tests/contract/store_contract.hpp"
#include "tests/support/meddling_store.hpp"

// What operators use: get, list, stats, and the short forms remove, purge, dead_letter, redrive.
namespace sluice::test {

using queue::ListRequest;
using queue::MessageState;
using queue::QueueType;
using queue::SettleAction;
using queue::SettleStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_P(StoreContract, GetFindsBothHalvesAndNothingElse) {
  send("alive");
  send_to_dlq("dead", failure("no"));
  EXPECT_EQ(get("alive").queue_type, QueueType::standard);
  EXPECT_EQ(get("dead").queue_type, QueueType::dlq);
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
  ListRequest request{.address = standard(), .limit = 10, .cursor = {}};
  for (int pages = 0; pages < 10; ++pages) {
    const auto page = store().list(request, soon());
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
  const auto first = store().list({.address = standard(), .limit = 4, .cursor = {}}, soon());
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_EQ(first->messages.size(), 4U);
  ASSERT_TRUE(store().remove(queue_name(), first->messages.back().message.id, soon()));
  const auto rest = store().list({.address = standard(), .limit = 100, .cursor = first->next}, soon());
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_EQ(rest->messages.size(), 6U);
  EXPECT_TRUE(rest->next.empty());
}

TEST_P(StoreContract, ListShowsTheWholeRecord) {
  send_to_dlq("dead", failure("why it died"));
  const auto page = store().list({.address = dlq(), .limit = 10, .cursor = {}}, soon());
  ASSERT_TRUE(page) << page.error().message();
  ASSERT_EQ(page->messages.size(), 1U);
  EXPECT_EQ(page->messages[0].message.body, "body of dead");
  EXPECT_EQ(page->messages[0].failure.error, "why it died");
  EXPECT_EQ(page->messages[0].queue_type, QueueType::dlq);
  const auto other = store().list({.address = standard(), .limit = 10, .cursor = {}}, soon());
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
  EXPECT_EQ(dead[0].queue_type, QueueType::dlq);
}

TEST_P(StoreContract, ListRefusesACursorThatIsNone) {
  send("A-1");
  const auto page = store().list({.address = standard(), .limit = 10, .cursor = "garbage!"}, soon());
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
  settle(standard(), claim_one(standard()).receipt, SettleAction::retry, 60s);
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
  const queue::Claim flying = claim_one(standard());
  for (const std::string id : {"ready", "dead", "late"}) {
    const auto removed = store().remove(queue_name(), id, soon());
    EXPECT_TRUE(removed) << id << ": " << (removed ? "" : removed.error().message());
    EXPECT_TRUE(absent(id));
    const auto again = store().remove(queue_name(), id, soon());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), ErrorCode::not_found);
  }
  EXPECT_EQ(settle(standard(), flying.receipt, SettleAction::retry), SettleStatus::lost);
  EXPECT_EQ(stats(standard()).total() + stats(dlq()).total(), 0U);
}

TEST_P(StoreContract, OperatorDeadLetterWorksInWhateverState) {
  send("flying");
  const queue::Claim claimed = claim_one(standard());
  const queue::Failure why = failure("given up by hand");
  ASSERT_TRUE(store().dead_letter(queue_name(), "flying", why, soon()));
  const queue::StoredMessage stored = get("flying");
  EXPECT_EQ(stored.queue_type, QueueType::dlq);
  EXPECT_EQ(stored.message.attempt, 0U);
  EXPECT_EQ(stored.failure.error, "given up by hand");
  EXPECT_EQ(settle(standard(), claimed.receipt, SettleAction::remove), SettleStatus::lost);
  const auto again = store().dead_letter(queue_name(), "flying", failure("again"), soon());
  EXPECT_TRUE(again) << "in the DLQ already is a success";
  EXPECT_EQ(get("flying").queue_type, QueueType::dlq);
  const auto ghost = store().dead_letter(queue_name(), "ghost", why, soon());
  ASSERT_FALSE(ghost);
  EXPECT_EQ(ghost.error().code(), ErrorCode::not_found);
  send("late", 60s);
  ASSERT_TRUE(store().dead_letter(queue_name(), "late", why, soon()));
  clock().advance(1ms);
  EXPECT_THAT(ids_of(claim(dlq())), ElementsAre("flying", "late"));
}

TEST_P(StoreContract, RedriveGivesAFreshStart) {
  send("A-1");
  claim_one(standard());
  ASSERT_TRUE(store().dead_letter(queue_name(), "A-1", failure("no"), soon()));
  clock().advance(1ms);
  EXPECT_EQ(settle(dlq(), claim_one(dlq()).receipt, SettleAction::retry), SettleStatus::applied);
  EXPECT_EQ(get("A-1").message.attempt, 1U);
  const WallTime now = clock().wall_now();
  const auto redriven = store().redrive(queue_name(), "A-1", soon());
  ASSERT_TRUE(redriven) << redriven.error().message();
  const queue::StoredMessage stored = get("A-1");
  EXPECT_EQ(stored.queue_type, QueueType::standard);
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
  const auto alive = store().redrive(queue_name(), "alive", soon());
  ASSERT_FALSE(alive);
  EXPECT_EQ(alive.error().code(), ErrorCode::conflict) << alive.error().message();
  send_to_dlq("flying", failure("no"));
  const queue::Claim claimed = claim_one(dlq());
  const auto flying = store().redrive(queue_name(), "flying", soon());
  ASSERT_FALSE(flying);
  EXPECT_EQ(flying.error().code(), ErrorCode::conflict) << flying.error().message();
  EXPECT_EQ(settle(dlq(), claimed.receipt, SettleAction::remove), SettleStatus::applied);
  const auto ghost = store().redrive(queue_name(), "ghost", soon());
  ASSERT_FALSE(ghost);
  EXPECT_EQ(ghost.error().code(), ErrorCode::not_found) << ghost.error().message();
}

TEST_P(StoreContract, PurgeEmptiesOneHalfOnly) {
  send_many(60);
  send("late", 60s);
  send_to_dlq("dead", failure("no"));
  const auto purged = store().purge(standard(), {}, soon());
  ASSERT_TRUE(purged) << purged.error().message();
  EXPECT_EQ(purged->done, 61U);
  EXPECT_EQ(purged->skipped, 0U);
  EXPECT_EQ(stats(standard()).total(), 0U);
  EXPECT_EQ(stats(dlq()).total(), 1U);
  const auto again = store().purge(standard(), {}, soon());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->done, 0U);
  send("m0000");
}

TEST_P(StoreContract, PurgeCountsWhatIsInFlightOneWayOrTheOther) {
  send_many(10);
  const auto claims = claim(standard(), 4);
  const auto purged = store().purge(standard(), {}, soon());
  ASSERT_TRUE(purged) << purged.error().message();
  EXPECT_EQ(purged->done + purged->skipped, 10U);
  EXPECT_EQ(stats(standard()).total(), purged->skipped);
}

TEST_P(StoreContract, PurgeStopsWhenToldTo) {
  send_many(1500);
  std::uint64_t told = 0;
  const auto purged = store().purge(
      standard(),
      [&](std::uint64_t done) {
        told = done;
        return false;
      },
      soon());
  ASSERT_TRUE(purged) << purged.error().message();
  EXPECT_GT(purged->done, 0U);
  EXPECT_LT(purged->done, 1500U);
  EXPECT_EQ(told, purged->done);
  EXPECT_EQ(stats(standard()).total(), 1500 - purged->done);
}

TEST_P(StoreContract, PurgeProgressMayUseTheStore) {
  send_many(600);
  const auto purged = store().purge(
      standard(),
      [&](std::uint64_t done) {
        EXPECT_GT(done, 0U);
        EXPECT_TRUE(store().stats(standard(), soon()));
        return true;
      },
      soon());
  ASSERT_TRUE(purged) << purged.error().message();
  EXPECT_EQ(purged->done, 600U);
}

/// A handler rejects a message, and somebody redrives another, while a purge is on its way.
TEST_P(StoreContract, PurgeLeavesWhatMovesToTheOtherHalfMeanwhile) {
  send_many(3);
  const queue::Claim held = claim_one(standard());
  MeddlingStore rejected(
      store(), [&](queue::Store&) { settle(standard(), held.receipt, SettleAction::dead_letter, {}, failure("no")); });
  const auto purged = rejected.purge(standard(), {}, soon());
  ASSERT_TRUE(purged) << purged.error().message();
  EXPECT_EQ(purged->done, 2U);
  EXPECT_EQ(purged->skipped, 1U);
  EXPECT_EQ(stats(standard()).total(), 0U);
  EXPECT_EQ(get(held.message.id).queue_type, queue::QueueType::dlq);

  MeddlingStore redriven(store(), [&](queue::Store& beneath) {
    static_cast<void>(beneath.redrive(queue_name(), held.message.id, soon()));
  });
  const auto again = redriven.purge(dlq(), {}, soon());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->done, 0U);
  EXPECT_EQ(again->skipped, 1U);
  EXPECT_EQ(get(held.message.id).queue_type, queue::QueueType::standard);
}

TEST_P(StoreContract, PurgeTakesWhatChangesInItsHalfMeanwhile) {
  send_many(30);
  const queue::Claim held = claim_one(standard());
  bool first = true;
  MeddlingStore meddled(store(), [&](queue::Store& beneath) {
    if (std::exchange(first, false)) {
      EXPECT_EQ(beneath.extend(standard(), std::span(&held.receipt, 1), 60s, soon()).front().status,
                SettleStatus::applied);
      EXPECT_EQ(claim(standard(), 4).size(), 4U);
      EXPECT_TRUE(beneath.remove(queue_name(), "m0029", soon()));
    }
  });
  const auto purged = meddled.purge(standard(), {}, soon());
  ASSERT_TRUE(purged) << purged.error().message();
  EXPECT_EQ(purged->done, 29U) << "those in flight too";
  EXPECT_EQ(purged->skipped, 1U) << "the one that is gone";
  EXPECT_EQ(stats(standard()).total(), 0U);
}

/// Nobody is to wait for ever for one message.
TEST_P(StoreContract, PurgeGivesUpOnWhatIsChangedAllTheTime) {
  send_many(2);
  MeddlingStore meddled(store(), [&](queue::Store& beneath) {
    const queue::Change touched{.id = "m0001", .action = queue::ChangeAction::move_to_front};
    EXPECT_EQ(beneath.change(queue_name(), std::span(&touched, 1), soon()).front().status,
              queue::ChangeStatus::applied);
  });
  const auto purged = meddled.purge(standard(), {}, soon());
  ASSERT_TRUE(purged) << purged.error().message();
  EXPECT_EQ(purged->done, 1U);
  EXPECT_EQ(purged->skipped, 1U);
  EXPECT_EQ(stats(standard()).total(), 1U);
}

}  // namespace sluice::test
