#include "host/stores/leased/leased_operator.hpp"
#include "tests/stores/leased/leased_rig.hpp"

namespace sluice::queue::leased {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class LeasedBorrowerTest : public LeasedRig {
 protected:
  double write_units() const { return model_.counters().write_units; }
};

TEST_F(LeasedBorrowerTest, ClaimsWhatWasSentAndSettlesIt) {
  const std::string id = send({.body = "hello"});
  const auto claimed = take();
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(claimed.front().message.id, id);
  EXPECT_EQ(claimed.front().message.body, "hello");
  EXPECT_EQ(claimed.front().message.attempt, 1U);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(end(claimed.front().receipt, CompletionAction::remove).status, SettleStatus::applied);
  EXPECT_THAT(items("orders#"), IsEmpty());
  EXPECT_EQ(end(claimed.front().receipt, CompletionAction::remove).status, SettleStatus::lost);
}

TEST_F(LeasedBorrowerTest, AnIdOfTheSendersOwnGoesWithItsAlias) {
  send({.id = "A-1", .body = "x"});
  EXPECT_THAT(items("orders#id/"), SizeIs(1));
  const auto claimed = take();
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(end(claimed.front().receipt, CompletionAction::remove).status, SettleStatus::applied);
  EXPECT_THAT(items("orders#"), IsEmpty());
}

TEST_F(LeasedBorrowerTest, TakesNothingFromShardsThatAHostOwns) {
  for (int i = 0; i < 20; ++i) {
    send({.body = "x"});
  }
  own_all("host-b/1");
  EXPECT_THAT(take(100), IsEmpty());
  own(2, "", 2);
  const auto claimed = take(100);
  EXPECT_THAT(claimed, SizeIs(items("orders#2").size()));
  for (const Delivery& delivery : claimed) {
    EXPECT_EQ(place_of_made_id(delivery.message.id)->second, 2U);
  }
}

// As hosts see it: they take such a shard as nobody's.
TEST_F(LeasedBorrowerTest, TakesFromAShardWhoseOwnershipItemIsOnlyHalfThere) {
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    auto half_there = Place{ownership_partition("orders", Half::standard), ownership_sort(shard)}.key();
    half_there.emplace(attribute::kOwner, std::string());
    ASSERT_TRUE(client_.write({.table = kTable, .item = half_there}, soon()));
  }
  send({.body = "x"});
  EXPECT_THAT(take(), SizeIs(1));
}

TEST_F(LeasedBorrowerTest, AHostThatTakesTheShardMeanwhileComesFirst) {
  for (int i = 0; i < 10; ++i) {
    send({.body = "x"});
  }
  bool taken = false;
  transport_.before([&](const dynamo::HttpRequest& request) {
    if (!taken && request.body.find("TransactItems") != std::string::npos) {
      taken = true;
      own_all("host-b/1");
    }
  });
  EXPECT_THAT(take(10), IsEmpty());
  EXPECT_TRUE(taken);
  for (const auto& item : items("orders#")) {
    EXPECT_FALSE(item.contains("r")) << "nothing was claimed";
  }
}

TEST_F(LeasedBorrowerTest, ARetryWaitsAndCounts) {
  send({.body = "x"});
  const auto first = take();
  ASSERT_THAT(first, SizeIs(1));
  const Completion retry{.receipt = first.front().receipt,
                         .action = CompletionAction::retry,
                         .delay = 5s,
                         .failure = {.error = "no luck", .handler = "h", .attempts = 1}};
  EXPECT_EQ(end(borrower_, retry).status, SettleStatus::applied);
  EXPECT_THAT(take(), IsEmpty());
  clock_.advance(6s);
  const auto again = take();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again.front().message.attempt, 2U);
  EXPECT_FALSE(again.front().suspect);
}

TEST_F(LeasedBorrowerTest, ADeadLetterIsFoundByItsIdInItsNewPlace) {
  const std::string id = send({.body = "x", .attributes = {{"k", "v"}}});
  const auto claimed = take();
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(end(claimed.front().receipt, CompletionAction::dead_letter, {.error = "bad", .handler = "h"}).status,
            SettleStatus::applied);
  EXPECT_THAT(items("orders!"), SizeIs(1));
  const auto dead = dead_.claim({.max = 1, .visibility = 30s}, soon());
  ASSERT_TRUE(dead);
  ASSERT_THAT(dead->deliveries, SizeIs(1));
  EXPECT_EQ(dead->deliveries.front().message.id, id);
  EXPECT_EQ(dead->deliveries.front().message.attributes.at("k"), "v");
  EXPECT_EQ(end(dead_, {.receipt = dead->deliveries.front().receipt}).status, SettleStatus::applied);
  EXPECT_THAT(items("orders#"), IsEmpty()) << "no alias stays behind";
  EXPECT_THAT(items("orders!"), IsEmpty());
}

TEST_F(LeasedBorrowerTest, AHeldGroupWaitsForItsDeadLetter) {
  send({.body = "1", .group = "g"});
  send({.body = "2", .group = "g"});
  const ClaimRequest in_order{.max = 10, .visibility = 30s, .rules = {.order = Order::group}};
  const auto head = take(in_order);
  ASSERT_THAT(head, SizeIs(1));
  EXPECT_EQ(
      end(borrower_, {.receipt = head.front().receipt, .action = CompletionAction::dead_letter, .hold_group = true})
          .status,
      SettleStatus::applied);
  EXPECT_THAT(take(in_order), IsEmpty());
  const auto dead = dead_.claim({.max = 1, .visibility = 30s}, soon());
  ASSERT_TRUE(dead && dead->deliveries.size() == 1);
  EXPECT_EQ(end(dead_, {.receipt = dead->deliveries.front().receipt}).status, SettleStatus::applied);
  const auto next = take(in_order);
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next.front().message.body, "2");
}

// It was rung for only where the dead letter itself came back: everybody else found it out by a look of his own.
TEST_F(LeasedBorrowerTest, HostsAreRungOnceAGroupIsHeldBackNoMore) {
  int rings = 0;
  const auto heard = doorbell_.subscribe({"orders", Half::standard}, [&] { ++rings; });
  const auto dead_letter = [&](bool holds) {
    std::string id = send({.body = "x", .group = "g"});
    end(borrower_, {.receipt = take().front().receipt, .action = CompletionAction::dead_letter, .hold_group = holds});
    rings = 0;
    return id;
  };
  const auto oper = make_leased_operator(queue_);
  const auto remove = [&](const std::string& id) {
    const Change removal{.id = id, .action = ChangeAction::remove};
    EXPECT_EQ(oper->change(std::span(&removal, 1), soon()).front().status, ChangeStatus::applied);
  };
  remove(dead_letter(false));
  EXPECT_EQ(rings, 0) << "nobody waited for it";
  remove(dead_letter(true));
  EXPECT_EQ(rings, 1);
  const std::string id = dead_letter(true);
  const ContentEdit other_group{{std::string("group")}, "\"h\""};
  ASSERT_TRUE(oper->edit(id, oper->get(id, soon())->version, std::span(&other_group, 1), soon()));
  EXPECT_EQ(rings, 1);
  remove(id);
  EXPECT_EQ(rings, 1) << "it held nothing any more";
  const auto work_off = [&](std::shared_ptr<Effects> effects) {
    const auto dead = dead_.claim({.max = 1, .visibility = 30s}, soon());
    ASSERT_TRUE(dead && dead->deliveries.size() == 1);
    const Completion done{.receipt = dead->deliveries.front().receipt, .effects = std::move(effects)};
    EXPECT_EQ(end(dead_, done).status, SettleStatus::applied);
  };
  dead_letter(false);
  work_off({});
  EXPECT_EQ(rings, 0);
  dead_letter(true);
  work_off({});
  EXPECT_EQ(rings, 1);
  dead_letter(true);
  work_off(std::make_shared<Effects>());
  EXPECT_EQ(rings, 1);
}

// There was one mark for a group: who was done with one of them, and had effects, took the other one's away, and who
// redrove it was refused.
TEST_F(LeasedBorrowerTest, AGroupWaitsForEachOfItsDeadLettersThatHoldsIt) {
  const ClaimRequest in_order{.max = 10, .visibility = 30s, .rules = {.order = Order::group}};
  for (const char* body : {"1", "2", "3"}) {
    send({.id = body, .body = body, .group = "g"});
  }
  send({.id = "4", .body = "4", .group = "g"});
  const auto first = take(3);
  ASSERT_THAT(first, SizeIs(3));
  for (const Delivery& delivery : first) {
    end(borrower_, {.receipt = delivery.receipt, .action = CompletionAction::dead_letter, .hold_group = true});
  }
  EXPECT_THAT(items("orders%"), SizeIs(3));
  const auto dead = dead_.claim({.max = 2, .visibility = 30s}, soon());
  ASSERT_TRUE(dead && dead->deliveries.size() == 2);
  const Completion with_effects{.receipt = dead->deliveries[0].receipt, .effects = std::make_shared<Effects>()};
  EXPECT_EQ(end(dead_, with_effects).status, SettleStatus::applied);
  EXPECT_THAT(take(in_order), IsEmpty());
  EXPECT_EQ(end(dead_, {.receipt = dead->deliveries[1].receipt}).status, SettleStatus::applied);
  EXPECT_THAT(take(in_order), IsEmpty());
  const auto oper = make_leased_operator(queue_);
  const Change redrive{.id = "3", .action = ChangeAction::redrive};
  EXPECT_EQ(oper->change(std::span(&redrive, 1), soon()).front().status, ChangeStatus::applied);
  EXPECT_THAT(items("orders%"), IsEmpty());
  const auto again = take(in_order);
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again.front().message.body, "3") << "it goes where it lay";
}

TEST_F(LeasedBorrowerTest, AHeldGroupOfWhichNothingWaitsHoldsUpNoSequence) {
  send({.body = "1", .group = "g"});
  const auto head = take({.max = 1, .visibility = 30s, .rules = {.order = Order::group}});
  ASSERT_THAT(head, SizeIs(1));
  end(borrower_, {.receipt = head.front().receipt, .action = CompletionAction::dead_letter, .hold_group = true});
  send({.body = "2", .group = "h"});
  const auto next = take({.max = 10, .visibility = 30s, .rules = {.order = Order::queue}});
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next.front().message.body, "2");
}

TEST_F(LeasedBorrowerTest, ARemovalWhoseAnswerWasLostIsRecognised) {
  send({.body = "x"});
  const auto claimed = take();
  ASSERT_THAT(claimed, SizeIs(1));
  model_.inject(test::model::Fault::commit_then_lose,
                [](const std::string& operation, const std::string&) { return operation == "BatchExecuteStatement"; });
  EXPECT_EQ(end(claimed.front().receipt, CompletionAction::remove).status, SettleStatus::applied);
}

TEST_F(LeasedBorrowerTest, ADeadLetterWhoseAnswerWasLostIsRecognised) {
  send({.body = "x"});
  const auto claimed = take();
  ASSERT_THAT(claimed, SizeIs(1));
  model_.inject(test::model::Fault::commit_then_lose,
                [](const std::string& operation, const std::string&) { return operation == "TransactWriteItems"; });
  EXPECT_EQ(end(claimed.front().receipt, CompletionAction::dead_letter).status, SettleStatus::applied);
  EXPECT_THAT(items("orders!"), SizeIs(1));
}

TEST_F(LeasedBorrowerTest, WhoLostTheMessageMovesNothing) {
  send({.body = "x"});
  const auto first = take({.max = 1, .visibility = 1s});
  ASSERT_THAT(first, SizeIs(1));
  clock_.advance(2s);
  const auto second = take();
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_TRUE(second.front().suspect);
  for (const auto action : {CompletionAction::remove, CompletionAction::retry, CompletionAction::dead_letter}) {
    EXPECT_EQ(end(first.front().receipt, action).status, SettleStatus::lost);
  }
  EXPECT_EQ(end(second.front().receipt, CompletionAction::remove).status, SettleStatus::applied);
}

// As a client does that takes what there is, and then waits for more.
TEST_F(LeasedBorrowerTest, WhatWasTakenBeforeAWaitIsExtendedAndSettledAllTheSame) {
  send({.body = "x"});
  const auto taken = take();
  ASSERT_THAT(taken, SizeIs(1));
  borrower_.start({.on_ready = {}, .lost = {}, .by_call = true});
  take();
  const auto extended = borrower_.extend(std::span(&taken.front().receipt, 1), 60s, soon()).front();
  EXPECT_EQ(extended.status, SettleStatus::applied);
  EXPECT_EQ(end(extended.receipt, CompletionAction::remove).status, SettleStatus::applied);
  EXPECT_THAT(items("orders#"), IsEmpty());
  borrower_.stop();
}

// As clients and `sluice receive --wait` do.
TEST_F(LeasedBorrowerTest, WhoWaitsAndClaimsByCallOwnsNothingAndHasWhatItTakesForTheVisibilityTimeout) {
  int told = 0;
  borrower_.start({.on_ready = [&told] { ++told; }, .lost = {}, .by_call = true});
  send({.body = "x"});
  EXPECT_EQ(told, 1);
  ASSERT_THAT(take(), SizeIs(1));
  EXPECT_THAT(items("orders@"), SizeIs(1)) << "their number, and no owner";
  EXPECT_THAT(take(), IsEmpty());
  clock_.advance(31s);
  const auto again = take();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(end(again.front().receipt, CompletionAction::remove).status, SettleStatus::applied);
  borrower_.stop();
}

TEST_F(LeasedBorrowerTest, ReceiptsOfAnotherProcessAreHonoured) {
  send({.id = "own", .body = "x"});
  send({.body = "y"});
  LeasedQueue elsewhere(locate_("orders"), kShards, parts_);
  const auto of_another = borrowing(elsewhere, Half::standard);
  Source& other = *of_another;
  for (const Delivery& delivery : take()) {
    const auto extended = other.extend(std::span(&delivery.receipt, 1), 60s, soon()).front();
    ASSERT_EQ(extended.status, SettleStatus::applied) << extended.error.message();
    EXPECT_EQ(end(other, {.receipt = extended.receipt}).status, SettleStatus::applied);
    EXPECT_EQ(end(delivery.receipt, CompletionAction::remove).status, SettleStatus::lost);
  }
  EXPECT_THAT(items("orders#"), IsEmpty());
}

// As whoever clears up behind a host: an owner writes nothing when it hands a message out, so that both have one
// version.
TEST_F(LeasedBorrowerTest, AnEndOfWhatAnOwnerHadTakesNoLaterMessageOfItsIdAway) {
  send({.id = "own", .body = "x"});
  std::string sort;
  for (const auto& item : items("orders#")) {
    sort = is_sort_key(Place::of(item).sort) ? Place::of(item).sort : sort;
  }
  const Completion done{.receipt = {.id = "own", .version = 1, .locator = owned::locator_of(7, sort)}};
  EXPECT_EQ(end(borrower_, done).status, SettleStatus::applied);
  send({.id = "own", .body = "another"});
  EXPECT_EQ(end(borrower_, done).status, SettleStatus::lost);
  EXPECT_THAT(take(), SizeIs(1)) << "the other one is there";
}

// As many tries as a client makes, and one more: all of one send.
TEST_F(LeasedBorrowerTest, ASendThatWasHeldUpIsNotStoredAgainOnceItsMessageIsDone) {
  transport_.hold("TransactWriteItems", 5);
  send({.id = "order-1", .body = "x"});
  const auto claimed = take();
  ASSERT_THAT(claimed, SizeIs(1));
  ASSERT_EQ(end(claimed.front().receipt, CompletionAction::remove).status, SettleStatus::applied);
  clock_.advance(20s);
  transport_.let_go(soon());
  EXPECT_THAT(items("orders#"), IsEmpty()) << "each try had the token of the first";
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(LeasedBorrowerTest, ASendThatNobodyAnswersIsNotMadeAnotherTime) {
  transport_.hold("TransactWriteItems", 1'000);
  NewMessage message{.id = "order-1", .body = "x"};
  const auto sent = sender_->send(std::span(&message, 1), soon()).front();
  EXPECT_EQ(sent.status, SendStatus::failed);
  EXPECT_EQ(sent.error.code(), ErrorCode::unknown_outcome);
  transport_.let_go(soon());
  EXPECT_THAT(items("orders#"), SizeIs(2)) << "a message, and its alias";
}

TEST_F(LeasedBorrowerTest, EffectsAreCommittedWithTheEndOrNotAtAll) {
  send({.body = "x"});
  const auto claimed = take();
  ASSERT_THAT(claimed, SizeIs(1));
  auto effects = std::make_shared<Effects>();
  effects->messages.push_back({.queue = "orders", .message = {.id = "next", .body = "n"}});
  effects->key = KeyRecord{.job = "j", .key = "k", .ttl = 60s};
  Completion done{.receipt = claimed.front().receipt, .effects = effects};
  ASSERT_EQ(end(borrower_, done).status, SettleStatus::applied);
  EXPECT_THAT(items("sluice:key/"), SizeIs(1));
  const auto next = take();
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next.front().message.id, "next");

  // The id is taken: nothing of it is committed.
  done.receipt = next.front().receipt;
  auto again = std::make_shared<Effects>();
  again->messages.push_back({.queue = "orders", .message = {.id = "next", .body = "n"}});
  done.effects = again;
  EXPECT_EQ(end(borrower_, done).status, SettleStatus::refused);
  EXPECT_EQ(end(next.front().receipt, CompletionAction::remove).status, SettleStatus::applied);
}

TEST_F(LeasedBorrowerTest, WhoEndsWhatAnotherHasClaimedKeepsTheFailuresBefore) {
  send({.body = "x"});
  end(take().front().receipt, CompletionAction::retry, {.error = "first", .handler = "h"});
  const auto again = take();
  ASSERT_THAT(again, SizeIs(1));
  LeasedQueue elsewhere(locate_("orders"), kShards, parts_);
  const auto other = borrowing(elsewhere, Half::standard);
  EXPECT_EQ(end(*other, {.receipt = again.front().receipt,
                         .action = CompletionAction::retry,
                         .failure = {.error = "second", .handler = "h"}})
                .status,
            SettleStatus::applied);
  const StoredMessage record = decode_record(items("orders#").front());
  EXPECT_EQ(record.failure.error, "second");
  ASSERT_THAT(record.failure.earlier, SizeIs(1));
  EXPECT_EQ(record.failure.earlier.front().error, "first");
}

/// A message whose id says where it lies, as an owner knows it that has just handed it out.
owned::Out out_of_made(const std::string& id) {
  const auto [sort, shard] = *place_of_made_id(id);
  return {.spot = {shard, sort}, .id = id};
}

TEST_F(LeasedBorrowerTest, AStrictFenceKeepsAnOwnerOfBeforeFromCommitting) {
  const std::string id = send({.body = "x"});
  own(place_of_made_id(id)->second, "host-a/1", 3);
  auto effects = std::make_shared<Effects>();
  effects->messages.push_back({.queue = "orders", .message = {.id = "next", .body = "n"}});
  const Completion done{.receipt = {id, 1}, .effects = effects};
  owned::Out out = out_of_made(id);
  const auto settled = [&] {
    return LeasedWriter(queue_, Half::standard, true)
        .settle(std::span(&done, 1), std::span(&out, 1), soon())
        .front()
        .status;
  };
  out.epoch = 2;
  EXPECT_EQ(settled(), SettleStatus::lost);
  out.epoch = 3;
  EXPECT_EQ(settled(), SettleStatus::applied);
}

TEST_F(LeasedBorrowerTest, AStrictFenceKeepsNobodyFromTakingAwayADeadLetterThatHoldsItsGroup) {
  send({.body = "x", .group = "g"});
  end(borrower_, {.receipt = take().front().receipt, .action = CompletionAction::dead_letter, .hold_group = true});
  ASSERT_THAT(items("orders%"), SizeIs(1));
  owned::Out out = out_of(items("orders!").front());
  out.epoch = 3;
  own(out.spot.first, "host-b/1", 4, Half::dlq);
  const Completion done{.receipt = {out.id, out.state.version}};
  EXPECT_EQ(
      LeasedWriter(queue_, Half::dlq, true).settle(std::span(&done, 1), std::span(&out, 1), soon()).front().status,
      SettleStatus::applied);
  EXPECT_THAT(items("orders!"), IsEmpty());
  EXPECT_THAT(items("orders%"), IsEmpty()) << "its group goes on";
}

// Both were called by both names.
TEST_F(LeasedBorrowerTest, AMarkThatDynamoDbRefusesIsCalledByItsName) {
  dynamo::CreateTableRequest request;
  request.name = "plain";
  request.attribute_types = {{"id", "S"}, {"sluice_until", "N"}, {"sluice_mode", "N"}};
  request.hash_key = "id";
  request.indexes = {{.name = "until", .hash_key = "sluice_until", .projection = "ALL"},
                     {.name = "mode", .hash_key = "sluice_mode", .projection = "ALL"}};
  ASSERT_TRUE(client_.create_table(request, soon()));
  send({.body = "x"});
  const Receipt receipt = take().front().receipt;
  const auto refused = [&](NewMessage message) {
    auto effects = std::make_shared<Effects>();
    message.id = "B-1";
    effects->messages.push_back({"plain", std::move(message)});
    const SettleResult result = end(borrower_, {.receipt = receipt, .effects = std::move(effects)});
    EXPECT_EQ(result.status, SettleStatus::refused);
    return result.error.message();
  };
  EXPECT_THAT(refused({.body = "y", .dedup_id = "d"}),
              StartsWith("the deduplication id of message B-1 to queue plain was refused: "));
  EXPECT_THAT(refused({.body = "y", .unique_key = "u"}),
              StartsWith("the unique key of message B-1 to queue plain was refused: "));
}

// Neither a removal nor a record that nobody has changed has a nonce.
TEST_F(LeasedBorrowerTest, AMessageThatLiesThereUnchangedHasNotBeenRemovedByAnEarlierTry) {
  const std::string id = send({.body = "x"});
  const std::uint32_t shard = place_of_made_id(id)->second;
  own(shard, "host-a/1", 3);
  const Completion done{.receipt = {id, 1}, .effects = std::make_shared<Effects>()};
  owned::Out out = out_of_made(id);
  out.epoch = 3;
  const auto settled = [&] {
    return LeasedWriter(queue_, Half::standard, true).settle(std::span(&done, 1), std::span(&out, 1), soon()).front();
  };
  transport_.hold("TransactWriteItems", 100);
  EXPECT_EQ(settled().error.code(), ErrorCode::unknown_outcome);
  transport_.hold({}, 0);
  clock_.advance(10min);  // the token of the first try tells nothing any more
  own(shard, "host-b/1", 4);
  EXPECT_EQ(settled().status, SettleStatus::lost);
  EXPECT_THAT(items("orders#"), SizeIs(1));
}

TEST_F(LeasedBorrowerTest, MoreThanATransactionHoldsIsClaimedInSeveral) {
  for (int i = 0; i < 12; ++i) {
    send({.body = std::string(390'000, 'x'), .group = "g"});  // all of them in one shard
  }
  EXPECT_THAT(take(100), SizeIs(12));
}

TEST_F(LeasedBorrowerTest, AnOwnersRemovalIsOneWriteUnit) {
  std::vector<Completion> done;
  std::vector<owned::Out> outs;
  for (int i = 0; i < 100; ++i) {
    const std::string id = send({.body = std::string(200, 'x')});
    done.push_back({.receipt = {id, 1}});
    outs.emplace_back(out_of_made(id));
  }
  const double before = write_units();
  const auto requests = model_.counters().requests;
  LeasedWriter writer(queue_, Half::standard);
  for (const auto& result : writer.settle(done, outs, soon())) {
    EXPECT_EQ(result.status, SettleStatus::applied);
  }
  EXPECT_EQ(write_units() - before, 100);
  EXPECT_EQ(model_.counters().requests.at("BatchExecuteStatement"), requests.at("BatchExecuteStatement") + 4);
}

}  // namespace
}  // namespace sluice::queue::leased
