// What owners make of tables, hosts and items that are not as they should be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "dynamo/item_reading.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

namespace leased = queue::leased;
using queue::CompletionAction;
using queue::Delivery;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::size_t work_off(OwnerHost& host, std::size_t at_once = 100) {
  std::size_t done = 0;
  for (auto claimed = host.claim(at_once); !claimed.empty(); claimed = host.claim(at_once)) {
    for (const Delivery& delivery : claimed) {
      host.settle(delivery, CompletionAction::remove);
      ++done;
    }
  }
  return done;
}

TEST(OwnerTrouble, HalfMadeAndForeignItemsAreNamedAndStopNothing) {
  OwnerWorld world({.shards = 4});
  world.put({{"p", "orders@"}, {"s", "0001"}, {"c", true}});
  world.put({{"p", "orders@"}, {"s", "0002"}, {"o", "nobody/known"}});
  world.put({{"p", "orders@"}, {"s", "read me"}});
  world.put({{"p", "orders@"}, {"s", "0003"}, {"o", ""}, {"e", dynamo::Number{"1.5"}}, {"c", true}});
  world.put({{"p", "@hosts"}, {"s", "half/1"}, {"c", dynamo::AttributeValue::number(1)}});
  world.put({{"p", "@hosts"},
             {"s", "future/1"},
             {"c", dynamo::AttributeValue::number(1)},
             {"l", dynamo::AttributeValue::number(10'000)},
             {"z", dynamo::AttributeValue::number(99'999'999'999'999)}});
  world.put({{"p", "orders#3"}, {"s", "2nonsense"}, {"b", "x"}});
  world.send(20);
  OwnerHost& a = world.add("a/1");
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("a/1") == 4; }, 15s)) << "once its owner would be dead";
  std::size_t done = 0;
  for (int round = 0; round < 300 && done < 20; ++round) {
    done += work_off(a);
    world.clock.advance(100ms);
  }
  EXPECT_EQ(done, 20U);
  EXPECT_THAT(a.warnings, Contains(HasSubstr("'0001' in partition 'orders@' is only half there")));
  EXPECT_THAT(a.warnings, Contains(HasSubstr("'read me' in partition 'orders@' is none of ours")));
  EXPECT_THAT(a.warnings, Contains(HasSubstr("the heartbeat 'half/1'")));
}

TEST(OwnerTrouble, TwoHostsOfOneNameAreTwo) {
  OwnerWorld world({});
  world.add("a/11111111");
  world.add("a/22222222");
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("a/22222222") == 4; }, 5s));
  EXPECT_EQ(world.shards_of("a/11111111"), 4);
}

// A claim that asked again at once would ask without end: nothing here takes any time.
TEST(OwnerTrouble, HeldGroupsThatCannotBeReadAreAskedForAfterAPause) {
  OwnerWorld world({.shards = 2});
  OwnerHost& a = world.add("a/1");
  world.pass(2s);
  world.send(4, 100, {}, "g");
  int asked = 0;
  world.model.inject(
      model::Fault::refuse,
      [&](const std::string& operation, const std::string&) {
        if (operation == "Query" && ++asked % 1000 == 0) {
          world.clock.advance(10s);  // ends a claim that does so
        }
        return operation == "Query";
      },
      1'000'000);
  EXPECT_THAT(a.claim(10, {.order = queue::Order::group}), IsEmpty());
  EXPECT_LE(asked, 100);
  world.model.clear_faults();
  ASSERT_TRUE(world.pass_until([&] { return !a.claim(10, {.order = queue::Order::group}).empty(); }, 5s));
}

// A host remembers ten thousand of what it has lost. An heir may be at work with any of them, and has written nothing.
TEST(OwnerTrouble, WhatWasLostIsPutBackByNobodyHoweverManyMoreWereLost) {
  constexpr std::size_t kAll = 10'050;
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.pass(2s);
  world.send(kAll, 10, -1s);
  std::vector<queue::Completion> ends;
  for (int round = 0; round < 200 && ends.size() < kAll; ++round) {
    for (const Delivery& delivery : a.claim(1'000)) {
      ends.push_back({.receipt = delivery.receipt, .action = CompletionAction::retry});
    }
    world.clock.advance(100ms);
  }
  ASSERT_EQ(ends.size(), kAll);
  world.clock.advance(world.plan.lease * 2);
  a.tend();
  ASSERT_THAT(a.out, IsEmpty());
  const auto count = [&](queue::SettleStatus status) {
    const auto results = a.settle(ends);
    return static_cast<std::size_t>(
        std::count_if(results.begin(), results.end(), [&](const auto& result) { return result.status == status; }));
  };
  EXPECT_EQ(count(queue::SettleStatus::lost), kAll);
  for (queue::Completion& end : ends) {
    end.action = CompletionAction::remove;
  }
  EXPECT_EQ(count(queue::SettleStatus::applied), kAll) << "who has done it may take it away, if nobody has changed it";
}

/// What a host does whose dead letter the owner has not heard of: the head of group g goes, and a hold comes.
void dead_letter_behind_its_back(OwnerWorld& world, const std::string& head) {
  const auto items = world.messages();
  for (const auto& item : items) {
    if (leased::id_of(item) == head) {
      world.remove(leased::Place::of(item).key());
    }
  }
  auto hold = leased::hold_place(kOwnersQueue, 0, head).key();
  hold.emplace(std::string(leased::attribute::kGroup), "g");
  world.put(std::move(hold));
}

void expect_held_until_released(OwnerWorld& world, OwnerHost& owner, const std::string& head, Duration held) {
  for (Duration passed{}; passed < held; passed += 100ms) {
    world.clock.advance(100ms);
    EXPECT_THAT(owner.claim(10, {.order = queue::Order::group}), IsEmpty());
  }
  world.remove(leased::hold_place(kOwnersQueue, 0, head).key());
  ASSERT_TRUE(world.pass_until([&] { return !owner.claim(10, {.order = queue::Order::group}).empty(); }, 40s));
}

// As after an answer that was lost: the dead letter is there, and its owner cannot know it.
TEST(OwnerTrouble, AGroupWaitsForADeadLetterThatItsOwnerDoesNotKnowOf) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(2, 100, {}, "g");
  const auto claimed = a.claim(10, {.order = queue::Order::group});
  ASSERT_THAT(claimed, SizeIs(1));
  dead_letter_behind_its_back(world, claimed.front().message.id);
  EXPECT_EQ(a.settle(claimed.front(), CompletionAction::remove).status, queue::SettleStatus::lost);
  expect_held_until_released(world, a, claimed.front().message.id, 40s);
}

// As after a dead letter of the owner before, which was long under way.
TEST(OwnerTrouble, AGroupWaitsForADeadLetterThatTookItsHeadAwayWhileItWaited) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(2, 100, {}, "g");
  const auto claimed = a.claim(10, {.order = queue::Order::group});
  ASSERT_THAT(claimed, SizeIs(1));
  ASSERT_EQ(a.settle(claimed.front(), CompletionAction::retry, 300s).status, queue::SettleStatus::applied);
  dead_letter_behind_its_back(world, claimed.front().message.id);
  expect_held_until_released(world, a, claimed.front().message.id, 100s);
}

// Its answer is lost, and so is the first try of what is written in its stead; the second one finds nothing there.
TEST(OwnerTrouble, AGroupWaitsForADeadLetterOfUnknownOutcomeBehindWhichItsMessageWasRemoved) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(2, 100, {}, "g");
  const auto claimed = a.claim(10, {.order = queue::Order::group});
  ASSERT_THAT(claimed, SizeIs(1));
  bool written = false;
  world.model.inject(
      model::Fault::commit_then_lose,
      [&](const std::string& operation, const std::string&) {
        return operation == "TransactWriteItems" && !std::exchange(written, true);
      },
      1);
  world.model.inject(
      model::Fault::refuse, [&](const std::string&, const std::string&) { return written; }, 1'000'000);
  const queue::Completion dead{
      .receipt = claimed.front().receipt, .action = CompletionAction::dead_letter, .hold_group = true};
  EXPECT_EQ(a.settle(std::vector{dead}).front().status, queue::SettleStatus::failed);
  ASSERT_TRUE(written);
  world.model.clear_faults();
  world.model.inject(
      model::Fault::lose, [](const std::string&, const std::string&) { return true; }, 1);
  EXPECT_EQ(a.settle(claimed.front(), CompletionAction::remove).status, queue::SettleStatus::applied);
  expect_held_until_released(world, a, claimed.front().message.id, 40s);
}

TEST(OwnerTrouble, AThrottledShardDelaysNoOther) {
  WorldPlan plan{.shards = 2};
  OwnerWorld world(plan);
  OwnerHost& a = world.add("a/1");
  world.pass(2s);
  world.send(50, 100, {}, {}, 0);
  world.send(50, 100, {}, {}, 1);
  world.model.inject(
      model::Fault::throttle,
      [](const std::string& operation, const std::string& body) {
        return operation == "Query" && body.find("orders#0") != std::string::npos;
      },
      1000);
  EXPECT_EQ(work_off(a), 50U);
  EXPECT_THAT(a.warnings, Contains(HasSubstr("shard 0 of 'orders' cannot be read and waits, the others go on")));
  world.model.clear_faults();
  world.clock.advance(3s);
  EXPECT_EQ(work_off(a), 50U);
}

// Nor do the others wait for its retries, each of which comes a second later, and then two: it is asked once, and again
// when its own pause is over.
TEST(OwnerTrouble, ClaimsDoNotWaitForTheRetriesOfAShardThatStaysThrottled) {
  OwnerWorld world({.shards = 2});
  OwnerHost& a = world.add("a/1");
  world.pass(2s);
  const auto is_page = [](const std::string& body) { return body.find("orders#0") != std::string::npos; };
  world.model.inject(
      model::Fault::throttle,
      [&](const std::string& operation, const std::string& body) { return operation == "Query" && is_page(body); },
      100'000);
  int asked = 0;
  a.wire().before([&](const dynamo::HttpRequest& request) { asked += is_page(request.body) ? 1 : 0; });
  int claims = 0;
  int waits = 0;
  std::size_t done = 0;
  for (int round = 0; round < 60; ++round) {
    world.send(1, 100, {}, {}, 1);
    world.clock.advance(2500ms);
    asked = 0;
    for (const auto& delivery : a.claim(10)) {
      done += a.settle(delivery, CompletionAction::remove).status == queue::SettleStatus::applied ? 1 : 0;
    }
    claims += asked > 0 ? 1 : 0;
    waits += asked > 1 ? asked - 1 : 0;
  }
  a.wire().before({});
  EXPECT_EQ(done, 60U);
  EXPECT_GE(claims, 40) << "it is asked again and again";
  EXPECT_LE(waits, 30) << "and but for the first time nobody waits longer than for a slow answer";
}

// Its heartbeat alone says how much it may have had at work.
TEST(OwnerTrouble, ADeadHostsHeartbeatStaysAsLongAsNobodyCanSeeWhatItOwned) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(600);
  for (int tries = 0; tries < 20 && a.out.size() < 500; ++tries) {
    a.claim(500 - a.out.size());
    world.pass(200ms);
  }
  ASSERT_EQ(a.out.size(), 500U);
  a.kill();
  world.add("b/1");
  world.model.inject(
      model::Fault::refuse,
      [](const std::string& operation, const std::string& body) {
        return operation == "Query" && body.find("\"orders@\"") != std::string::npos;
      },
      1'000'000'000);
  world.pass(150s);
  EXPECT_TRUE(world.item("@hosts", "a/1"));
  world.model.clear_faults();
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("b/1") == 1; }, 20s));
  EXPECT_GE(dynamo::whole_number(*world.item("orders@", "0000"), "m").value_or(0), 500);
}

TEST(OwnerTrouble, ANumberOfShardsThatCannotBeIsNamedAndTheOneBeforeStays) {
  for (const int wrong : {0, 10'000}) {
    OwnerWorld world({.shards = 4});
    world.put({{"p", "orders@"}, {"s", "shards"}, {"n", dynamo::AttributeValue::number(wrong)}});
    OwnerHost& a = world.add("a/1");
    EXPECT_EQ(world.shards_of("a/1"), 4);
    EXPECT_THAT(a.warnings,
                Contains(HasSubstr("shards, and a queue has 1 to 1024; put the number right in its attribute n")));
  }
}

TEST(OwnerTrouble, WhoStartsFirstSaysHowManyShardsThereAre) {
  OwnerWorld world({.shards = 4});
  OwnerHost& a = world.add("a/1");
  const auto item = world.item("orders@", "shards");
  ASSERT_TRUE(item);
  EXPECT_EQ(leased::shards_in(*item)->count, 4U);
  EXPECT_EQ(world.shards_of("a/1"), 4);
  EXPECT_THAT(a.warnings, IsEmpty());
}

TEST(OwnerTrouble, AHostWithAnotherNumberFollowsTheFirstAndSaysSo) {
  OwnerWorld world({.shards = 8});
  world.put({{"p", "orders@"},
             {"s", "shards"},
             {"n", dynamo::AttributeValue::number(2)},
             {"h", dynamo::AttributeValue::number(2)}});
  world.send(10, 100, {}, {}, 1);
  OwnerHost& a = world.add("a/1");
  EXPECT_EQ(world.shards_of("a/1"), 2);
  EXPECT_EQ(work_off(a), 10U);
  EXPECT_THAT(a.warnings,
              Contains("queue 'orders' has 2 shards, as the item 'shards' in partition 'orders@' of table "
                       "'sluice-queues' says, and not the 8 of this host's configuration, which the host passes over; "
                       "put shards = 2 under [queues.orders], or the number that you want into the item"));
  world.pass(300s);
  EXPECT_EQ(std::count_if(a.warnings.begin(), a.warnings.end(),
                          [](const std::string& line) { return line.find("passes over") != std::string::npos; }),
            1);
}

TEST(OwnerTrouble, ANumberThatMayNotBeWrittenDownIsGoneBy) {
  OwnerWorld world({.shards = 4});
  world.model.inject(
      model::Fault::refuse,
      [](const std::string& operation, const std::string& body) {
        return operation == "PutItem" && body.find("\"shards\"") != std::string::npos;
      },
      1000);
  OwnerHost& a = world.add("a/1");
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("a/1") == 4; }, 20s));
  EXPECT_THAT(a.warnings, Contains(HasSubstr("the number of shards of queue 'orders' cannot be written down")));
}

TEST(OwnerTrouble, ShardsAreRaisedAndLoweredWhileHostsRun) {
  OwnerWorld world({.shards = 4});
  OwnerHost& a = world.add("a/1");
  OwnerHost& b = world.add("b/1");
  const auto work = [&](const std::function<bool()>& so, Duration longest) {
    for (Duration passed{}; passed < longest && !so(); passed += 200ms) {
      world.clock.advance(200ms);
      work_off(a);
      work_off(b);
    }
    return so();
  };
  ASSERT_TRUE(work([&] { return world.shards_of("b/1") == 2; }, 10s));
  world.put({{"p", "orders@"}, {"s", "shards"}, {"n", dynamo::AttributeValue::number(6)}});
  ASSERT_TRUE(work([&] { return world.shards_of("a/1") == 3 && world.shards_of("b/1") == 3; }, 20s));
  world.put({{"p", "orders@"},
             {"s", "shards"},
             {"n", dynamo::AttributeValue::number(2)},
             {"h", dynamo::AttributeValue::number(6)}});
  world.send(30, 100, {}, {}, 5);
  world.send(30, 100, {}, {}, 1);
  EXPECT_TRUE(work([&] { return world.messages().empty(); }, 10s)) << "what lies there is drained";
  EXPECT_EQ(world.shards_of("a/1") + world.shards_of("b/1"), 6) << "senders may not know it yet";
  ASSERT_TRUE(work([&] { return world.shards_of("a/1") + world.shards_of("b/1") == 2; }, 200s));
  EXPECT_TRUE(work([&] { return world.shards_of("a/1") == 1 && world.shards_of("b/1") == 1; }, 30s));
  world.send(10, 100, {}, {}, 0);
  EXPECT_TRUE(work([&] { return world.messages().empty(); }, 5s));
}

TEST(OwnerTrouble, WhatComesBehindTheCursorIsFoundByTheSweep) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(20, 3000);
  const auto held = a.claim(10);
  ASSERT_THAT(held, SizeIs(10)) << "so that the shard is not read from its head each time";
  world.pass(10s);
  a.claim(1);
  const auto late = world.send(1, 100, -60s).front();
  bool found = false;
  for (Duration passed{}; passed < 40s && !found; passed += 100ms) {
    world.clock.advance(100ms);
    for (const Delivery& delivery : a.claim(1)) {
      found = found || delivery.message.id == late;
    }
    a.tend();
  }
  EXPECT_TRUE(found);
}

TEST(OwnerTrouble, WhatWasMovedToTheFrontIsSeenWithinASecond) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(3'000, 600);
  a.claim(8);
  SeededRandom random(3);
  const leased::Place place{"orders#0", leased::first_sort_key(queue::Priority::critical, leased::kFrontEnd - 1s)};
  world.put(*leased::encode_record({.body = "x"}, {.place = place, .own_id = "moved", .now = world.clock.wall_now()}));
  bool found = false;
  for (Duration passed{}; passed < 1200ms && !found; passed += 100ms) {
    world.clock.advance(100ms);
    for (const Delivery& delivery : a.claim(8)) {
      found = found || delivery.message.id == "moved";
    }
  }
  EXPECT_TRUE(found);
}

TEST(OwnerTrouble, AnOwnershipItemChangesHandsOnlyAsItWasRead) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  const leased::OwnershipPage nothing;
  const auto stale = leased::ownership_write(kOwnersTable, "orders@", {}, {.part = 0, .owner = "zombie", .epoch = 1});
  const auto written = a.client().write(stale, Deadline::never());
  ASSERT_FALSE(written) << "it was read before the item was made";
  EXPECT_EQ(written.error().kind, dynamo::ErrorKind::conditional_check_failed);
  EXPECT_EQ(world.owners().at(0), "a/1");
}

TEST(OwnerTrouble, AnOrderThatShardsCannotKeepIsRefused) {
  OwnerWorld world({.shards = 4});
  OwnerHost& a = world.add("a/1");
  EXPECT_THAT(a.claim(1, {.order = queue::Order::queue}), IsEmpty());
  EXPECT_THAT(a.warnings, Contains(HasSubstr("give it a single shard")));
  a.claim(1, {.max_in_flight = 3});
  EXPECT_THAT(a.warnings, Contains(HasSubstr("make that at least 4")));
}

TEST(OwnerTrouble, TheLimitOfMessagesInFlightHoldsForAllHostsTogether) {
  OwnerWorld world({.shards = 4});
  OwnerHost& a = world.add("a/1");
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("b/1") == 2; }, 5s));
  world.send(100);
  a.claim(50, {.max_in_flight = 10});
  b.claim(50, {.max_in_flight = 10});
  EXPECT_EQ(a.out.size() + b.out.size(), 10U);
  a.claim(50, {.max_in_flight = 10});
  EXPECT_THAT(a.warnings, Contains(HasSubstr("as many messages in flight as it may")));
}

// Repeated after an answer that was lost it is the same, and takes effect.
TEST(OwnershipItems, AHeartbeatThatArrivesAfterALaterOneTakesNothingBack) {
  OwnerWorld world({.shards = 1});
  OwnerHost& host = world.add("a/1", false);
  const auto put = [&](std::int64_t counter) {
    const leased::Heartbeat beat{.host = "a/1", .counter = counter, .lease = 10s};
    return host.client().write(leased::beat_write(kOwnersTable, beat, false), Deadline::never()).has_value();
  };
  EXPECT_TRUE(put(3));
  EXPECT_TRUE(put(3));
  EXPECT_FALSE(put(2));
  EXPECT_TRUE(put(4));
}

/// A claim each half second; how many of those after the first `from` fail, and how many there are.
std::pair<std::size_t, std::size_t> failing_claims(OwnerWorld& world, OwnerHost& host, Duration span, Duration from) {
  std::pair<std::size_t, std::size_t> found;
  for (Duration passed{}; passed < span; passed += 500ms) {
    world.clock.advance(500ms);
    host.warnings.clear();
    EXPECT_THAT(host.claim(10), IsEmpty());
    if (passed >= from) {
      ++found.second;
      found.first += std::any_of(host.warnings.begin(), host.warnings.end(),
                                 [](const std::string& text) { return text.starts_with("claim: "); })
                         ? 1
                         : 0;
    }
  }
  return found;
}

// An empty answer between two failures would pass for a table that works.
TEST(OwnerTrouble, NoClaimSucceedsWhileTheTableAnswersNothing) {
  for (const auto fault : {model::Fault::refuse, model::Fault::throttle, model::Fault::error_500}) {
    OwnerWorld world({.shards = 4});
    OwnerHost& a = world.add("a/1");
    world.pass(5s);
    world.model.inject(fault, {}, 1'000'000'000);
    const auto [failed, all] = failing_claims(world, a, 60s, 3s);
    EXPECT_EQ(failed, all) << model::to_string(fault);
    world.model.clear_faults();
    EXPECT_TRUE(world.pass_until([&] { return failing_claims(world, a, 500ms, 0s).first == 0; }, 5s));
  }
}

TEST(OwnerTrouble, NoClaimSucceedsWhileTheRoleMayDoNothing) {
  OwnerWorld world({.shards = 4});
  OwnerHost& a = world.add("a/1");
  world.pass(5s);
  for (const char* action : {"Query", "GetItem", "BatchGetItem", "PutItem", "UpdateItem"}) {
    world.model.deny(std::string("dynamodb:") + action);
  }
  const auto [failed, all] = failing_claims(world, a, 60s, 3s);
  EXPECT_EQ(failed, all);
}

TEST(OwnerTrouble, NoClaimFailsBecauseOneShardOfSeveralCannotBeRead) {
  OwnerWorld world({.shards = 4});
  OwnerHost& a = world.add("a/1");
  world.pass(5s);
  world.model.inject(
      model::Fault::throttle,
      [](const std::string& operation, const std::string& body) {
        return operation == "Query" && body.find("orders#2") != std::string::npos;
      },
      1'000'000'000);
  EXPECT_EQ(failing_claims(world, a, 60s, 0s).first, 0U);
}

TEST(OwnershipItems, AHeartbeatComesBackAsItWasWritten) {
  leased::Heartbeat beat{.host = "a/1",
                         .counter = 7,
                         .lease = 10s,
                         .leaving = true,
                         .works_on = {"orders", "orders!"},
                         .in_flight_bound = 164,
                         .bell = "10.0.0.1:7001",
                         .figures = {{"orders", {.ready = 1, .delayed = 2, .in_flight = 3, .unread = 4, .shards = 5}}},
                         .written_at = WallTime(1'767'323'045s)};
  auto& figures = beat.figures.at("orders");
  figures.looked_ago = 6s;
  figures.in_use = 7;
  beat.figures.at("orders").oldest_due = WallTime(1'767'323'045s);
  const auto read = leased::decode_beat(leased::encode_beat(beat, WallTime(1'767'323'045s) + 24h));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->host, "a/1");
  EXPECT_EQ(read->counter, 7);
  EXPECT_EQ(read->lease, 10s);
  EXPECT_TRUE(read->leaving);
  EXPECT_EQ(read->works_on, beat.works_on);
  EXPECT_EQ(read->in_flight_bound, beat.in_flight_bound);
  EXPECT_EQ(read->bell, "10.0.0.1:7001");
  EXPECT_EQ(read->figures, beat.figures);
  EXPECT_EQ(read->written_at, beat.written_at);
}

TEST(OwnershipItems, ASpanBeyondAllSpansIsALongOne) {
  leased::Heartbeat beat{.host = "a/1", .counter = 7, .lease = 10s, .figures = {{"orders", {.ready = 1}}}};
  dynamo::Item item = leased::encode_beat(beat, WallTime(1'767'323'045s));
  dynamo::Map figures =
      *dynamo::find<dynamo::Map>(*dynamo::find<dynamo::Map>(item, leased::attribute::kFigures), "orders");
  figures.insert_or_assign("a", dynamo::AttributeValue::number(std::numeric_limits<std::int64_t>::max()));
  item.insert_or_assign(std::string(leased::attribute::kFigures), dynamo::Map{{"orders", figures}});
  const auto read = leased::decode_beat(item);
  ASSERT_TRUE(read);
  EXPECT_GT(read->figures.at("orders").looked_ago, 24h);
}

}  // namespace
}  // namespace sluice::test
