// What operators do to messages by id: conditions, races, and what stays as it was.

#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using dynamo::AttributeValue;
using queue::Change;
using queue::ChangeAction;
using queue::ChangeStatus;

constexpr ChangeAction kAll[] = {ChangeAction::remove,        ChangeAction::set_visibility, ChangeAction::delay,
                                 ChangeAction::move_to_front, ChangeAction::dead_letter,    ChangeAction::redrive,
                                 ChangeAction::reset};

class StoreChange : public StoreOnEmulator {
 protected:
  std::vector<queue::ChangeResult> change(const std::vector<Change>& changes) {
    return desk().change("orders", changes, soon());
  }
  queue::ChangeResult change(Change one) { return change(std::vector<Change>{std::move(one)})[0]; }
  queue::ChangeResult change(const std::string& id, ChangeAction action, std::optional<std::int64_t> version = {}) {
    return change({.id = id, .action = action, .version = version});
  }

  // Another host does something to a record just before this host's next write to it.
  void before_next_write(std::function<void()> work) {
    auto left = std::make_shared<int>(1);
    host().faults().choose([left, work = std::move(work)](const std::string& operation, const std::string&) {
      if (operation == "BatchExecuteStatement" && (*left)-- > 0) {
        work();
      }
      return HttpFault::none;
    });
  }
};

TEST_F(StoreChange, AbsentMessageIsNotFoundWhateverIsAsked) {
  for (const ChangeAction action : kAll) {
    for (const std::optional<std::int64_t> version : {std::optional<std::int64_t>(), {1}, {0}}) {
      const auto result = change("absent", action, version);
      EXPECT_EQ(result.status, ChangeStatus::not_found) << static_cast<int>(action);
      EXPECT_EQ(result.error.code(), ErrorCode::not_found);
      EXPECT_THAT(result.error.message(), ::testing::HasSubstr("\"absent\""));
    }
  }
  EXPECT_EQ(change("", ChangeAction::remove).status, ChangeStatus::not_found);
}

TEST_F(StoreChange, IdThatCannotBeThereDoesNotTakeTheOthersWithIt) {
  send(2);
  for (const std::string& id : {std::string(3'000, 'x'), std::string("\xff"), std::string()}) {
    const auto results = change(std::vector<Change>{{.id = "m0", .action = ChangeAction::reset},
                                                    {.id = id, .action = ChangeAction::reset},
                                                    {.id = "m1", .action = ChangeAction::reset}});
    EXPECT_EQ(results[0].status, ChangeStatus::applied) << results[0].error.message();
    EXPECT_EQ(results[1].status, ChangeStatus::not_found);
    EXPECT_EQ(results[2].status, ChangeStatus::applied);
    EXPECT_EQ(desk().get("orders", id, soon()).error().code(), ErrorCode::not_found);
  }
}

TEST_F(StoreChange, AnotherVersionIsAConflictAndChangesNothing) {
  send(1);
  const auto before = raw("m0");
  for (const ChangeAction action : kAll) {
    for (const std::int64_t version : {0, 2, 7}) {
      const auto result = change("m0", action, version);
      EXPECT_EQ(result.status, ChangeStatus::conflict) << static_cast<int>(action);
      EXPECT_FALSE(result.error.message().empty());
    }
  }
  EXPECT_EQ(raw("m0"), before);
}

TEST_F(StoreChange, RightVersionIsAppliedWithoutAReadAndGrowsByOne) {
  send(1);
  host().usage().reset();
  EXPECT_EQ(change("m0", ChangeAction::set_visibility, 1).version, 2);
  EXPECT_EQ(change("m0", ChangeAction::delay, 2).version, 3);
  EXPECT_EQ(change("m0", ChangeAction::dead_letter, 3).version, 4);
  EXPECT_EQ(change("m0", ChangeAction::redrive, 4).version, 5);
  EXPECT_EQ(host().usage().requests(), 4U);
  EXPECT_EQ(change("m0", ChangeAction::reset, 5).version, 6);
  EXPECT_EQ(change("m0", ChangeAction::move_to_front, 6).version, 7);
  EXPECT_EQ(get("m0").version, 7);
  EXPECT_EQ(change("m0", ChangeAction::remove, 7).status, ChangeStatus::applied);
  EXPECT_EQ(desk().get("orders", "m0", soon()).error().code(), ErrorCode::not_found);
}

TEST_F(StoreChange, StaleHolderCanNeverSettleAfterAChange) {
  for (const ChangeAction action : kAll) {
    if (action == ChangeAction::redrive) {
      continue;
    }
    const std::string prefix = "a" + std::to_string(static_cast<int>(action)) + "-";
    send(1, 20, prefix);
    const auto held = claim(1);
    ASSERT_EQ(ids_of(held), std::set<std::string>{prefix + "0"});
    ASSERT_EQ(change({.id = prefix + "0", .action = action, .after = 1h}).status, ChangeStatus::applied);
    EXPECT_EQ(settle(desk(), held, queue::CompletionAction::remove)[0].status, queue::SettleStatus::lost);
    change(prefix + "0", ChangeAction::remove);
  }
}

TEST_F(StoreChange, WithoutAVersionItIsTriedAgainWhenSomebodyComesInBetween) {
  const auto other = make_host("worker-b", 2);
  for (const ChangeAction action : {ChangeAction::set_visibility, ChangeAction::delay, ChangeAction::dead_letter,
                                    ChangeAction::move_to_front, ChangeAction::reset}) {
    const std::string prefix = "a" + std::to_string(static_cast<int>(action)) + "-";
    send(1, 20, prefix);
    before_next_write([&] { EXPECT_EQ(claim(other->desk(), 1).size(), 1U); });
    const auto result = change({.id = prefix + "0", .action = action, .after = 1h});
    EXPECT_EQ(result.status, ChangeStatus::applied) << static_cast<int>(action) << result.error.message();
    EXPECT_EQ(result.version, 3);
    host().faults().choose({});
    change(prefix + "0", ChangeAction::remove);
  }
}

TEST_F(StoreChange, EndlessRacesEndAsAConflict) {
  send(1);
  const auto other = make_host("worker-b", 2);
  host().faults().choose([&](const std::string& operation, const std::string&) {
    if (operation == "BatchExecuteStatement") {
      const Change touch{.id = "m0", .action = ChangeAction::set_visibility};
      EXPECT_EQ(other->desk().change("orders", std::span(&touch, 1), soon())[0].status, ChangeStatus::applied);
    }
    return HttpFault::none;
  });
  EXPECT_EQ(change("m0", ChangeAction::reset).status, ChangeStatus::conflict);
}

TEST_F(StoreChange, MessageThatGoesInBetweenIsNotFound) {
  const auto other = make_host("worker-b", 2);
  for (const ChangeAction action : {ChangeAction::delay, ChangeAction::reset, ChangeAction::remove}) {
    for (const std::optional<std::int64_t> version : {std::optional<std::int64_t>(), {1}}) {
      send(1);
      before_next_write([&] { ASSERT_TRUE(other->desk().remove("orders", "m0", soon())); });
      EXPECT_EQ(change("m0", action, version).status, ChangeStatus::not_found) << static_cast<int>(action);
      host().faults().choose({});
      EXPECT_FALSE(desk().get("orders", "m0", soon())) << "nothing comes back to life";
    }
  }
}

TEST_F(StoreChange, RedriveAsksForTheDlqAndForNobodyAtWork) {
  send(3);
  for (const char* id : {"m0", "m1"}) {
    ASSERT_TRUE(desk().dead_letter("orders", id, {.error = "e", .handler = "h"}, soon()));
  }
  for (const std::optional<std::int64_t> version : {std::optional<std::int64_t>(), {1}}) {
    const auto elsewhere = change("m2", ChangeAction::redrive, version);
    EXPECT_EQ(elsewhere.status, ChangeStatus::conflict);
    EXPECT_THAT(elsewhere.error.message(), ::testing::HasSubstr("not in the DLQ"));
  }
  const auto claims = desk().claim(dlq(), 1, 30s, soon());
  ASSERT_EQ(claims->size(), 1U);
  const std::string held = claims->front().message.id;
  for (const std::optional<std::int64_t> version : {std::optional<std::int64_t>(), {3}}) {
    const auto busy = change(held, ChangeAction::redrive, version);
    EXPECT_EQ(busy.status, ChangeStatus::conflict);
    EXPECT_THAT(busy.error.message(), ::testing::HasSubstr("worked on"));
  }
  const std::string free = held == "m0" ? "m1" : "m0";
  EXPECT_EQ(change(free, ChangeAction::redrive, 2).status, ChangeStatus::applied);
  EXPECT_TRUE(get(free).failure.empty());
  EXPECT_EQ(get(free).message.attempt, 0U);
  clock().advance(30s);
  EXPECT_EQ(change(held, ChangeAction::redrive, 3).status, ChangeStatus::conflict) << "its very last instant";
  clock().advance(1ns);
  EXPECT_EQ(change(held, ChangeAction::redrive, 3).status, ChangeStatus::applied);
}

TEST_F(StoreChange, RedriveUnderstandsTimesHoweverTheyAreSpelt) {
  const std::string now = format_timestamp(clock().wall_now());  // "…:05.000000000Z"
  const std::string second = now.substr(0, 19);
  int number = 0;
  for (const std::string& until : {second + "Z", std::string("whenever"), std::string()}) {
    const std::string id = "odd" + std::to_string(number++);
    clock().advance(500ms);
    put({{"id", id},
         {"data", "x"},
         {"queue_type", "DLQ"},
         {"version", AttributeValue::number(4)},
         {"receive_count", AttributeValue::number(2)},
         {"sent_at", now},
         {"received_at", now},
         {"invisible_until_at", until}});
    const auto result = change(id, ChangeAction::redrive, 4);
    EXPECT_EQ(result.status, ChangeStatus::applied) << until << ": " << result.error.message();
  }
  put({{"id", "bare"}, {"queue_type", "DLQ"}, {"sent_at", now}});
  EXPECT_EQ(change("bare", ChangeAction::redrive, 0).version, 1);
}

TEST_F(StoreChange, DeadLetterOfWhatLiesThereAlreadyChangesNothing) {
  send(1);
  ASSERT_TRUE(desk().dead_letter("orders", "m0", {.error = "first", .handler = "h"}, soon()));
  const auto before = raw("m0");
  Change again{.id = "m0", .action = ChangeAction::dead_letter, .failure = {.error = "second", .handler = "h"}};
  EXPECT_EQ(change(again).status, ChangeStatus::applied);
  again.version = 2;
  const auto result = change(again);
  EXPECT_EQ(result.status, ChangeStatus::applied);
  EXPECT_EQ(result.version, 2);
  again.version = 1;
  EXPECT_EQ(change(again).status, ChangeStatus::conflict) << "not what the operator has seen";
  EXPECT_EQ(raw("m0"), before);
}

TEST_F(StoreChange, DeadLetterWithoutRoomForItsReasonMovesTheMessage) {
  queue::NewMessage message{.id = "A-1", .body = std::string(400 * 1024 - 450, 'x')};
  ASSERT_EQ(desk().send("orders", std::span(&message, 1), soon())[0].status, queue::SendStatus::sent);
  const auto moved = desk().dead_letter("orders", "A-1", {.error = std::string(2000, 'e'), .handler = "h"}, soon());
  EXPECT_TRUE(moved) << moved.error().message();
  EXPECT_EQ(get("A-1").half, queue::Half::dlq);
}

TEST_F(StoreChange, MessagesOfAHalfThatNobodyKnowsCanBeMoved) {
  put({{"id", "odd"},
       {"data", "x"},
       {"queue_type", "CUSTOM"},
       {"sent_at", "2020-01-01T00:00:00Z"},
       {"version", AttributeValue::number(3)}});
  EXPECT_EQ(change("odd", ChangeAction::dead_letter, 3).status, ChangeStatus::applied);
  EXPECT_EQ(get("odd").half, queue::Half::dlq);
}

TEST_F(StoreChange, MovedToTheFrontIsClaimedNextLastMovedFirst) {
  send(50);
  ASSERT_EQ(claim(10).size(), 10U);  // the cursor of this host is past the head
  const auto results = change(std::vector<Change>{{.id = "m30", .action = ChangeAction::move_to_front},
                                                  {.id = "m40", .action = ChangeAction::move_to_front},
                                                  {.id = "m3", .action = ChangeAction::move_to_front}});
  for (const auto& result : results) {
    EXPECT_EQ(result.status, ChangeStatus::applied) << result.error.message();
  }
  EXPECT_LT(get("m3").message.sent_at, get("m40").message.sent_at);
  EXPECT_LT(get("m40").message.sent_at, get("m30").message.sent_at);
  clock().advance(2s);
  const auto other = make_host("worker-b", 2);
  const auto first = claim(other->desk(), 3);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[0].message.id, "m3") << "though it had been in flight: it is visible now";
  EXPECT_EQ(first[1].message.id, "m40");
  EXPECT_EQ(first[2].message.id, "m30");
}

TEST_F(StoreChange, FrontIsNeverInTheFuture) {
  const std::vector<queue::NewMessage> later{{.id = "d1", .body = "x", .delay = 1h},
                                             {.id = "d2", .body = "x", .delay = 2h}};
  desk().send("orders", later, soon());
  ASSERT_EQ(change("d2", ChangeAction::move_to_front).status, ChangeStatus::applied);
  EXPECT_EQ(ids_of(claim(2)), std::set<std::string>{"d2"});
}

TEST_F(StoreChange, WhatThisHostKnewIsForgotten) {
  send(3);
  ASSERT_EQ(claim(1).size(), 1U);  // the other two are in its buffer
  ASSERT_EQ(change({.id = "m1", .action = ChangeAction::delay, .after = 1h}).status, ChangeStatus::applied);
  ASSERT_EQ(change("m2", ChangeAction::remove).status, ChangeStatus::applied);
  host().usage().reset();
  EXPECT_TRUE(claim(5).empty());
  EXPECT_EQ(host().usage().requests("BatchExecuteStatement"), 0U) << "no vain claim of what was changed";
}

TEST_F(StoreChange, LongestDelaysEndAtTheEndOfTime) {
  send(1);
  ASSERT_EQ(change({.id = "m0", .action = ChangeAction::delay, .after = Duration::max()}).status,
            ChangeStatus::applied);
  EXPECT_EQ(format_timestamp(get("m0").message.sent_at).substr(0, 4), "2261");
  ASSERT_EQ(change({.id = "m0", .action = ChangeAction::set_visibility, .after = Duration::min()}).status,
            ChangeStatus::applied);
  EXPECT_EQ(get("m0").invisible_until, WallTime{});
}

TEST_F(StoreChange, BulkOperationsStayWithinATenthOfARequestAMessage) {
  constexpr std::size_t kMessages = 1'000;
  send(kMessages, 300);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < kMessages; ++i) {
    changes.push_back({.id = "m" + std::to_string(i), .action = ChangeAction::dead_letter, .version = 1});
  }
  for (const auto& result : change(changes)) {
    ASSERT_EQ(result.status, ChangeStatus::applied) << result.error.message();
  }
  clock().advance(1ms);
  host().usage().reset();
  std::size_t redriven = 0;
  queue::ListRequest request{.half = dlq().half, .limit = 500, .cursor = {}, .content = false};
  do {
    const auto page = desk().list("orders", request, soon());
    ASSERT_TRUE(page);
    changes.clear();
    for (const auto& found : page->messages) {
      changes.push_back({.id = found.message.id, .action = ChangeAction::redrive, .version = found.version});
    }
    for (const auto& result : change(changes)) {
      redriven += result.status == ChangeStatus::applied ? 1 : 0;
    }
    request.cursor = page->next;
  } while (!request.cursor.empty());
  EXPECT_EQ(redriven, kMessages);
  EXPECT_LE(host().usage().requests(), kMessages * 45 / 1'000) << "25 a batch, and the pages";
  EXPECT_LE(host().usage().capacity().write, 3.0 * kMessages) << "one write, and two of the index, whose key changes";
  host().usage().reset();
  EXPECT_EQ(purge(), kMessages);
  EXPECT_LE(host().usage().requests(), kMessages * 45 / 1'000);
  EXPECT_LE(host().usage().capacity().write, 2.0 * kMessages);
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 0U);
}

}  // namespace
}  // namespace sluice::test
