#include <optional>
#include <string>

#include "tests/contract/store_contract.hpp"

// Changes: every action on a message in every state it can be in, their conditions, and batches of them.
namespace sluice::test {

using queue::Change;
using queue::ChangeAction;
using queue::ChangeResult;
using queue::ChangeStatus;
using queue::CompletionAction;
using queue::Half;
using queue::MessageState;
using queue::SettleStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

bool in_dlq(const Actor& actor) { return actor.id.starts_with("dead"); }

bool is_flying(const Actor& actor) { return actor.id.ends_with("flying"); }

bool same_failure(const queue::Failure& a, const queue::Failure& b) {
  return a.error == b.error && a.handler == b.handler && a.host == b.host && a.attempts == b.attempts &&
         a.failed_at == b.failed_at;
}

}  // namespace

TEST_P(StoreContract, ChangeSetVisibilityHidesWhateverItIsAndMovesNothingElse) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    const queue::StoredMessage before = get(actor.id);
    const WallTime now = clock().wall_now();
    const queue::StoredMessage after =
        change_actor(actor, {.id = {}, .action = ChangeAction::set_visibility, .after = 600s});
    EXPECT_EQ(after.invisible_until, now + 600s);
    EXPECT_EQ(after.half, before.half);
    EXPECT_EQ(after.message.sent_at, before.message.sent_at);
    EXPECT_EQ(after.message.attempt, before.message.attempt);
    EXPECT_EQ(after.received_at, before.received_at);
    EXPECT_EQ(after.created_at, before.created_at);
    EXPECT_TRUE(same_failure(after.failure, before.failure));
  }
  EXPECT_THAT(claim(standard(), 100), IsEmpty());
  EXPECT_THAT(claim(dlq(), 100), IsEmpty());
  clock().advance(1200s);
  EXPECT_EQ(claim_all(standard()).size(), 5U);
  EXPECT_EQ(claim_all(dlq()).size(), 3U);
}

TEST_P(StoreContract, ChangeSetVisibilityToNothingShowsAtOnceWhatIsDue) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    const Duration after = actor.id == "waiting" ? Duration(-5s) : Duration::zero();
    const queue::StoredMessage before = get(actor.id);
    const WallTime now = clock().wall_now();
    const queue::StoredMessage shown =
        change_actor(actor, {.id = {}, .action = ChangeAction::set_visibility, .after = after});
    EXPECT_EQ(shown.message.sent_at, before.message.sent_at);
    EXPECT_EQ(shown.message.attempt, before.message.attempt);
    // As DynamoMQ leaves it: a time that has passed, never none; at once is the last instant before now.
    EXPECT_EQ(shown.invisible_until, kept(now + std::min(after, Duration(-1))));
    // A delay is in sent_at too, and that stays.
    EXPECT_EQ(state(actor.id), actor.id == "delayed" ? MessageState::delayed : MessageState::ready);
  }
  EXPECT_EQ(claim_all(standard()).size(), 4U);
  EXPECT_EQ(claim_all(dlq()).size(), 3U);
}

TEST_P(StoreContract, ChangeDelayPutsBackAsIfSentWithADelay) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    const queue::StoredMessage before = get(actor.id);
    const WallTime now = clock().wall_now();
    const queue::StoredMessage after = change_actor(actor, {.id = {}, .action = ChangeAction::delay, .after = 600s});
    EXPECT_EQ(after.message.sent_at, now + 600s);
    EXPECT_EQ(after.half, before.half);
    EXPECT_EQ(after.message.attempt, before.message.attempt);
    EXPECT_EQ(after.created_at, before.created_at);
    EXPECT_EQ(after.received_at, std::nullopt);
    EXPECT_EQ(state(actor.id), MessageState::delayed);
  }
  EXPECT_EQ(stats(standard()).delayed, 5U);
  clock().advance(599s);
  EXPECT_EQ(claim_all(standard()).size() + claim_all(dlq()).size(), 0U);
  clock().advance(10s);
  EXPECT_EQ(claim_all(standard()).size(), 5U);
  EXPECT_EQ(claim_all(dlq()).size(), 3U);
}

TEST_P(StoreContract, ChangeDelayOfNothingMakesItReadyAndYoungest) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    change_actor(actor, {.id = {}, .action = ChangeAction::delay});
    EXPECT_EQ(state(actor.id), MessageState::ready);
  }
  EXPECT_THAT(ids_of(claim_all(standard())), ElementsAre("expired", "flying", "waiting", "delayed", "ready"));
  EXPECT_THAT(ids_of(claim_all(dlq())), ElementsAre("dead-waiting", "dead-flying", "dead"));
}

TEST_P(StoreContract, ChangeMoveToFrontIsClaimedFirstWhateverItWas) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    const queue::StoredMessage before = get(actor.id);
    const queue::StoredMessage after = change_actor(actor, {.id = {}, .action = ChangeAction::move_to_front});
    EXPECT_EQ(after.half, before.half);
    EXPECT_EQ(after.message.attempt, before.message.attempt);
    EXPECT_EQ(state(actor.id), MessageState::ready);
  }
  // Each went before all others, so the last one is first now.
  EXPECT_THAT(ids_of(claim_all(standard())), ElementsAre("ready", "delayed", "waiting", "flying", "expired"));
  EXPECT_THAT(ids_of(claim_all(dlq())), ElementsAre("dead", "dead-flying", "dead-waiting"));
}

TEST_P(StoreContract, ChangeMoveToFrontGoesBeforeALongQueue) {
  send_many(60);
  send("urgent");
  claim(standard(), 5);
  ASSERT_EQ(change({.id = "urgent", .action = ChangeAction::move_to_front}).status, ChangeStatus::applied);
  EXPECT_EQ(claim_one(standard()).message.id, "urgent");
}

TEST_P(StoreContract, ChangeDeadLetterTakesItFromAnyState) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    if (in_dlq(actor)) {
      const queue::StoredMessage before = get(actor.id);
      const ChangeResult result =
          change({.id = actor.id, .action = ChangeAction::dead_letter, .failure = failure("again")});
      EXPECT_EQ(result.status, ChangeStatus::applied) << result.error.message();
      const queue::StoredMessage after = get(actor.id);
      EXPECT_EQ(after.version, before.version);
      EXPECT_EQ(after.message.sent_at, before.message.sent_at);
      EXPECT_TRUE(same_failure(after.failure, before.failure));
      if (actor.receipt) {
        EXPECT_EQ(settle(dlq(), *actor.receipt, CompletionAction::retry), SettleStatus::applied);
      }
      continue;
    }
    const queue::Failure why = actor.id == "waiting" ? queue::Failure{} : failure("given up");
    const queue::StoredMessage after =
        change_actor(actor, {.id = {}, .action = ChangeAction::dead_letter, .failure = why});
    EXPECT_EQ(after.half, Half::dlq);
    EXPECT_EQ(after.message.attempt, 0U);
    EXPECT_EQ(after.received_at, std::nullopt);
    EXPECT_EQ(after.failure.error, actor.id == "waiting" ? "once" : "given up");
    EXPECT_EQ(state(actor.id), MessageState::ready);
  }
  EXPECT_EQ(stats(standard()).total(), 0U);
  EXPECT_EQ(stats(dlq()).total(), 8U);
}

TEST_P(StoreContract, ChangeRedriveTakesItBackUnlessItIsInFlight) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    if (!in_dlq(actor) || is_flying(actor)) {
      const queue::StoredMessage before = get(actor.id);
      const ChangeResult result = change({.id = actor.id, .action = ChangeAction::redrive});
      EXPECT_EQ(result.status, ChangeStatus::conflict);
      EXPECT_EQ(result.error.code(), ErrorCode::conflict) << result.error.message();
      EXPECT_EQ(get(actor.id).version, before.version);
      continue;
    }
    const WallTime now = clock().wall_now();
    const queue::StoredMessage after = change_actor(actor, {.id = {}, .action = ChangeAction::redrive});
    EXPECT_EQ(after.half, Half::standard);
    EXPECT_EQ(after.message.attempt, 0U);
    EXPECT_EQ(after.message.sent_at, now);
    EXPECT_TRUE(after.failure.empty());
    EXPECT_EQ(state(actor.id), MessageState::ready);
  }
}

TEST_P(StoreContract, ChangeResetMakesItNewWhateverItWas) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    const WallTime now = clock().wall_now();
    const queue::StoredMessage after = change_actor(actor, {.id = {}, .action = ChangeAction::reset});
    EXPECT_EQ(after.half, Half::standard);
    EXPECT_EQ(after.message.attempt, 0U);
    EXPECT_EQ(after.message.sent_at, now);
    EXPECT_EQ(after.created_at, now);
    EXPECT_EQ(after.received_at, std::nullopt);
    EXPECT_TRUE(after.failure.empty()) << after.failure.error;
    EXPECT_EQ(state(actor.id), MessageState::ready);
  }
  EXPECT_EQ(stats(dlq()).total(), 0U);
  EXPECT_EQ(claim_all(standard()).size(), 8U);
}

TEST_P(StoreContract, ChangeRemoveTakesIt) {
  for (const Actor& actor : one_in_each_state()) {
    SCOPED_TRACE(actor.id);
    const ChangeResult result = change({.id = actor.id, .action = ChangeAction::remove});
    EXPECT_EQ(result.status, ChangeStatus::applied) << result.error.message();
    EXPECT_EQ(result.version, 0);
    EXPECT_TRUE(absent(actor.id));
    const ChangeResult again = change({.id = actor.id, .action = ChangeAction::remove});
    EXPECT_EQ(again.status, ChangeStatus::not_found);
    EXPECT_EQ(again.error.code(), ErrorCode::not_found) << again.error.message();
    if (actor.receipt) {
      EXPECT_EQ(settle(actor.address, *actor.receipt, CompletionAction::retry), SettleStatus::lost);
    }
  }
  EXPECT_EQ(stats(standard()).total() + stats(dlq()).total(), 0U);
}

TEST_P(StoreContract, ChangeKeepsToTheVersionItIsGiven) {
  for (const ChangeAction action :
       {ChangeAction::set_visibility, ChangeAction::delay, ChangeAction::move_to_front, ChangeAction::dead_letter,
        ChangeAction::redrive, ChangeAction::reset, ChangeAction::remove}) {
    SCOPED_TRACE(static_cast<int>(action));
    const std::string id = "m" + std::to_string(static_cast<int>(action));
    send(id);
    if (action == ChangeAction::redrive) {
      ASSERT_TRUE(desk().dead_letter(queue_name(), id, failure("no"), soon()));
      clock().advance(1ms);
    }
    const queue::StoredMessage before = get(id);
    for (const std::int64_t wrong : {before.version - 1, before.version + 1, std::int64_t{0}}) {
      const ChangeResult refused = change({.id = id, .action = action, .version = wrong, .after = 5s});
      EXPECT_EQ(refused.status, ChangeStatus::conflict) << wrong;
      EXPECT_EQ(refused.error.code(), ErrorCode::conflict) << refused.error.message();
      EXPECT_FALSE(refused.error.message().empty());
    }
    EXPECT_EQ(get(id).version, before.version);
    EXPECT_EQ(get(id).updated_at, before.updated_at);
    const ChangeResult applied = change({.id = id, .action = action, .version = before.version, .after = 5s});
    EXPECT_EQ(applied.status, ChangeStatus::applied) << applied.error.message();
  }
}

TEST_P(StoreContract, ChangesOfABatchHaveAResultEach) {
  send("a");
  send("b");
  send("c");
  send_to_dlq("dead", failure("no"));
  const std::vector<Change> changes{
      {.id = "a", .action = ChangeAction::remove},
      {.id = "ghost", .action = ChangeAction::reset},
      {.id = "b", .action = ChangeAction::delay, .version = 99, .after = 60s},
      {.id = "c", .action = ChangeAction::redrive},
      {.id = "dead", .action = ChangeAction::redrive},
      {.id = "", .action = ChangeAction::remove},
  };
  const auto results = desk().change(queue_name(), changes, soon());
  std::vector<ChangeStatus> statuses;
  for (const ChangeResult& result : results) {
    statuses.push_back(result.status);
    EXPECT_EQ(result.error.message().empty(), result.status == ChangeStatus::applied);
  }
  EXPECT_THAT(statuses, ElementsAre(ChangeStatus::applied, ChangeStatus::not_found, ChangeStatus::conflict,
                                    ChangeStatus::conflict, ChangeStatus::applied, ChangeStatus::not_found));
  EXPECT_TRUE(absent("a"));
  EXPECT_EQ(get("b").version, 1);
  EXPECT_EQ(get("dead").half, Half::standard);
}

TEST_P(StoreContract, ChangesOfALargeBatchAreCutAsTheyMustBe) {
  const auto ids = send_many(1100);
  std::vector<Change> changes;
  changes.reserve(ids.size());
  for (const std::string& id : ids) {
    changes.push_back({.id = id, .action = ChangeAction::dead_letter, .failure = failure("bulk")});
  }
  const auto results = desk().change(queue_name(), changes, soon());
  ASSERT_EQ(results.size(), ids.size());
  for (const ChangeResult& result : results) {
    ASSERT_EQ(result.status, ChangeStatus::applied) << result.error.message();
  }
  EXPECT_EQ(stats(standard()).total(), 0U);
  EXPECT_EQ(stats(dlq()).total(), 1100U);
  EXPECT_TRUE(desk().change(queue_name(), {}, soon()).empty());
}

TEST_P(StoreContract, ChangeRefusalsReadTheSameOnEveryStore) {
  send("waiting");
  send_to_dlq("dead", failure("no"));
  claim_one(dlq());
  const std::string place = "of queue \"" + queue_name() + "\" ";
  const std::string absent = "no message \"ghost\" in queue \"" + queue_name() + "\"";
  for (const auto action : {ChangeAction::set_visibility, ChangeAction::dead_letter, ChangeAction::redrive,
                            ChangeAction::reset, ChangeAction::remove, ChangeAction::move_to_front}) {
    EXPECT_EQ(change({.id = "ghost", .action = action}).error.message(), absent);
  }
  EXPECT_EQ(desk().get(queue_name(), "ghost", soon()).error().message(), absent);
  EXPECT_EQ(desk().edit(queue_name(), "ghost", 1, {}, soon()).error().message(), absent);
  EXPECT_EQ(change({.id = "waiting", .action = ChangeAction::redrive}).error.message(),
            "message \"waiting\" " + place + "is not in the DLQ");
  EXPECT_EQ(change({.id = "dead", .action = ChangeAction::redrive}).error.message(),
            "message \"dead\" " + place + "is being worked on in the DLQ; try again when that has ended");
  EXPECT_EQ(change({.id = "waiting", .action = ChangeAction::delay, .version = 7}).error.message(),
            "message \"waiting\" " + place + "was changed in between; look at it again");
}

TEST_P(StoreContract, ChangeInAQueueThatIsNotThereFindsNothing) {
  const Change change{.id = "A-1", .action = ChangeAction::reset};
  const auto results = desk().change(under_test().absent_queue(), std::span(&change, 1), soon());
  ASSERT_EQ(results.size(), 1U);
  if (traits().makes_queues) {
    EXPECT_EQ(results[0].status, ChangeStatus::not_found);
  } else {
    EXPECT_EQ(results[0].status, ChangeStatus::failed);
    EXPECT_EQ(results[0].error.code(), ErrorCode::queue_missing) << results[0].error.message();
  }
}

TEST_P(StoreContract, ChangeAfterItsDeadlineDoesNothing) {
  send("A-1");
  const Change change{.id = "A-1", .action = ChangeAction::remove};
  const auto results = desk().change(queue_name(), std::span(&change, 1), passed());
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].status, ChangeStatus::failed);
  EXPECT_EQ(results[0].error.code(), ErrorCode::timeout) << results[0].error.message();
  EXPECT_EQ(get("A-1").version, 1);
}

}  // namespace sluice::test
