// What a host makes of its own writes whose answers it never got, in later calls.

#include <utility>

#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::CompletionAction;
using queue::SettleStatus;

class Recovery : public StoreOnEmulator {
 protected:
  /// Until `mend`, writes take effect and their answers get lost, and nothing can be looked up afterwards.
  void lose_answers() {
    host().faults().choose([](const std::string& operation, const std::string&) {
      return operation == "BatchExecuteStatement" ? HttpFault::commit_then_reset : HttpFault::refuse;
    });
  }
  /// The same, and they have no effect either.
  void lose_requests() {
    host().faults().choose([](const std::string& operation, const std::string&) {
      return operation == "BatchExecuteStatement" ? HttpFault::error_500 : HttpFault::refuse;
    });
  }
  void mend() { host().faults().choose({}); }

  queue::ExtendResult extend(const queue::Receipt& receipt, Duration visibility = 60s) {
    return desk().extend(standard(), std::span(&receipt, 1), visibility, soon()).front();
  }
  queue::SettleResult settle_one(const queue::Receipt& receipt, CompletionAction action, Duration delay = {}) {
    const Completion completion{.receipt = receipt, .action = action, .delay = delay, .failure = {}};
    return desk().settle(standard(), std::span(&completion, 1), soon()).front();
  }
  queue::Receipt claim_one() {
    send(1);
    return claim(1).at(0).receipt;
  }
};

TEST_F(Recovery, ExtensionIsRecognisedByTheNextOne) {
  const auto receipt = claim_one();
  lose_answers();
  EXPECT_EQ(extend(receipt).error.code(), ErrorCode::unknown_outcome);
  mend();
  const auto again = extend(receipt);
  ASSERT_EQ(again.status, SettleStatus::applied) << "it lost its lease to itself";
  EXPECT_EQ(again.leased_until, clock().steady_now() + 60s);
  EXPECT_EQ(settle_one(again.receipt, CompletionAction::remove).status, SettleStatus::applied);
}

TEST_F(Recovery, ExtensionsAreRecognisedByASettle) {
  const auto receipt = claim_one();
  lose_answers();
  extend(receipt);
  extend(receipt);
  mend();
  EXPECT_EQ(settle_one(receipt, CompletionAction::retry, 5s).status, SettleStatus::applied);
  EXPECT_EQ(get("m0").version, 4);
  clock().advance(6s);
  EXPECT_EQ(claim(1).size(), 1U);
}

TEST_F(Recovery, CompletionIsRecognisedWhenItIsRepeated) {
  for (const CompletionAction action :
       {CompletionAction::remove, CompletionAction::retry, CompletionAction::release, CompletionAction::dead_letter}) {
    const std::string prefix = "a" + std::to_string(static_cast<int>(action)) + "-";
    send(1, 20, prefix);
    const auto receipt = claim(1).at(0).receipt;
    lose_answers();
    EXPECT_EQ(settle_one(receipt, action, 1h).error.code(), ErrorCode::unknown_outcome) << prefix;
    mend();
    EXPECT_EQ(settle_one(receipt, action, 1h).status, SettleStatus::applied) << prefix;
    EXPECT_EQ(settle_one(receipt, CompletionAction::retry).status, SettleStatus::lost) << "it is at its end";
  }
}

TEST_F(Recovery, ACheckpointIsBuiltUponByWhateverFollows) {
  queue::Source& source = desk().source(standard());
  for (const CompletionAction action :
       {CompletionAction::remove, CompletionAction::retry, CompletionAction::release, CompletionAction::dead_letter}) {
    const std::string prefix = "k" + std::to_string(static_cast<int>(action)) + "-";
    send(1, 20, prefix);
    const auto receipt = claim(1).at(0).receipt;
    lose_answers();
    EXPECT_EQ(source.checkpoint(receipt, "first", nullptr, soon()).error.code(), ErrorCode::unknown_outcome);
    EXPECT_EQ(source.checkpoint(receipt, "second", nullptr, soon()).error.code(), ErrorCode::unknown_outcome);
    mend();
    EXPECT_EQ(settle_one(receipt, action, 1h).status, SettleStatus::applied) << prefix;
    if (action != CompletionAction::remove) {
      EXPECT_EQ(get(prefix + "0").message.checkpoint, "first") << "the second one met it";
    }
  }
}

TEST_F(Recovery, ACheckpointIsBuiltUponByTheNextOne) {
  queue::Source& source = desk().source(standard());
  auto receipt = claim_one();
  lose_answers();
  EXPECT_EQ(source.checkpoint(receipt, "first", nullptr, soon()).error.code(), ErrorCode::unknown_outcome);
  mend();
  const auto second = source.checkpoint(receipt, "second", nullptr, soon());
  ASSERT_EQ(second.status, SettleStatus::applied) << second.error.message();
  EXPECT_EQ(get("m0").message.checkpoint, "second");
  receipt.version = second.version;
  EXPECT_EQ(settle_one(receipt, CompletionAction::retry, 1h).status, SettleStatus::applied);
}

TEST_F(Recovery, WhatTookNoEffectIsWrittenByTheNextCall) {
  const auto receipt = claim_one();
  lose_requests();
  EXPECT_EQ(settle_one(receipt, CompletionAction::remove).status, SettleStatus::failed);
  mend();
  EXPECT_EQ(settle_one(receipt, CompletionAction::remove).status, SettleStatus::applied);
}

TEST_F(Recovery, AnothersClaimIsNotTakenForOnesOwnExtension) {
  const auto receipt = claim_one();
  lose_answers();
  extend(receipt, 10s);
  mend();
  clock().advance(11s);
  const auto other = make_host("worker-b", 2);
  ASSERT_EQ(claim(other->desk(), 1).size(), 1U);
  EXPECT_EQ(extend(receipt).status, SettleStatus::lost);
  EXPECT_EQ(settle_one(receipt, CompletionAction::remove).status, SettleStatus::lost);
}

TEST_F(Recovery, ClaimRecognisedLateKeepsTheLeaseOfItsWrite) {
  send(1);
  lose_answers();
  host().faults().choose([](const std::string& operation, const std::string& body) {
    return body.find("RETURNING ALL NEW") != std::string::npos ? HttpFault::commit_then_reset
           : operation == "BatchGetItem"                       ? HttpFault::refuse
                                                               : HttpFault::none;
  });
  const SteadyTime written = clock().steady_now();
  EXPECT_FALSE(desk().claim(standard(), 1, 30s, soon()));
  mend();
  clock().advance(20s);
  const auto late = claim(1);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].leased_until, written + 30s) << "the store's lease ends then";
}

// The first one that dies like this leaves a suspect, the second one a suspect that has been claimed as such.
TEST_F(Recovery, DISABLED_WhatOnlyHostsHaveClaimedThatDiedBeforeTheAnswerHasItsFirstAttempt) {
  send(1);
  for (const std::uint64_t dies : {2, 3}) {
    const auto other = make_host("worker-" + std::to_string(dies), dies);
    other->faults().choose([](const std::string& operation, const std::string& body) {
      return body.find("RETURNING ALL NEW") != std::string::npos ? HttpFault::commit_then_reset
             : operation == "BatchGetItem"                       ? HttpFault::refuse
                                                                 : HttpFault::none;
    });
    EXPECT_FALSE(other->desk().claim(standard(), 1, 1s, soon())) << "nobody was handed it";
    clock().advance(2s);
  }
  const auto claimed = claim(1);
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_TRUE(claimed.front().suspect);
  EXPECT_EQ(claimed.front().message.attempt, 1U) << "no handler has seen it";
}

// A program of DynamoMQ leaves the nonce of a claim that it takes over, as it leaves everything that it does not know.
TEST_F(Recovery, AnothersClaimIsNotTakenForOnesOwn) {
  send(1);
  host().faults().choose([](const std::string& operation, const std::string& body) {
    return body.find("RETURNING ALL NEW") != std::string::npos ? HttpFault::commit_then_reset
           : operation == "BatchGetItem"                       ? HttpFault::refuse
                                                               : HttpFault::none;
  });
  EXPECT_FALSE(desk().claim(standard(), 1, 30s, soon()));
  mend();
  ASSERT_EQ(get("m0").version, 2);
  dynamo::ItemWrite request{.kind = dynamo::ItemWrite::Kind::update};
  request.table = table();
  request.item = {{"id", "m0"}};
  request.update = "SET invisible_until_at = :until ADD #v :one";
  request.names = {{"#v", "version"}};
  request.values = {{":until", format_timestamp(clock().wall_now() + 20s)},
                    {":one", dynamo::AttributeValue::number(1)}};
  ASSERT_TRUE(host().client().write(request, soon()));
  EXPECT_TRUE(claim(1).empty());
}

TEST_F(Recovery, ClaimAnsweredWithoutItsMessageIsLookedUp) {
  send(2);
  host().faults().break_next(HttpFault::answer_without_items, "RETURNING ALL NEW");
  const auto claims = claim(2);
  ASSERT_EQ(claims.size(), 2U);
  for (const auto& delivery : claims) {
    EXPECT_EQ(delivery.message.body, std::string(20, 'x'));
    EXPECT_EQ(delivery.receipt.version, 2);
  }
}

TEST_F(Recovery, EditWhoseAnswerIsLostIsRecognised) {
  send(1);
  host().faults().break_next(HttpFault::commit_then_reset, "UPDATE");
  const queue::ContentEdit edit{.path = {"data"}, .json = R"("new")"};
  const auto edited = desk().edit("orders", "m0", 1, std::span(&edit, 1), soon());
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->version, 2);
  EXPECT_EQ(edited->message.body, "new");
}

// An id that was freed and sent again begins anew with version 1: only the time of sending tells the two apart.
TEST_F(Recovery, SettleWithoutItsFenceFails) {
  const auto other = make_host("worker-b", 2);
  send(1);
  const auto theirs = claim(other->desk(), 1).at(0).receipt;
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "BatchGetItem" ? HttpFault::refuse : HttpFault::none;
  });
  ASSERT_TRUE(other->desk().remove("orders", "m0", soon()));
  send(1);
  ASSERT_EQ(claim(other->desk(), 1).size(), 1U);
  EXPECT_EQ(settle_one(theirs, CompletionAction::remove).status, SettleStatus::failed);
  mend();
  EXPECT_EQ(get("m0").version, 2) << "the later message of that id was removed";
  EXPECT_EQ(settle_one(theirs, CompletionAction::remove).status, SettleStatus::lost);
}

TEST_F(Recovery, SettleOfWhatIsGoneLeavesALaterMessageOfItsIdAlone) {
  const auto other = make_host("worker-b", 2);
  send(1);
  const auto theirs = claim(other->desk(), 1).at(0).receipt;
  ASSERT_TRUE(other->desk().remove("orders", "m0", soon()));
  // Between the look, which finds nothing, and the write.
  bool sent_again = false;
  host().faults().choose([&](const std::string& operation, const std::string&) {
    if (operation == "BatchExecuteStatement" && !std::exchange(sent_again, true)) {
      send(1);
      EXPECT_EQ(claim(other->desk(), 1).size(), 1U);
    }
    return HttpFault::none;
  });
  EXPECT_EQ(settle_one(theirs, CompletionAction::remove).status, SettleStatus::lost);
  EXPECT_TRUE(sent_again);
  EXPECT_EQ(get("m0").version, 2) << "the later message of that id was removed";
}

TEST_F(Recovery, WhoIsHandedAReceiptKnowsWhatItsRecordSays) {
  const auto fail = [&](const queue::Receipt& receipt, const std::string& error) {
    const Completion completion{
        .receipt = receipt, .action = CompletionAction::retry, .failure = {.error = error, .handler = "h"}};
    return desk().settle(standard(), std::span(&completion, 1), soon()).front().status;
  };
  const auto other = make_host("worker-b", 2);
  ASSERT_EQ(fail(claim_one(), "first"), SettleStatus::applied);
  clock().advance(1s);
  ASSERT_EQ(fail(claim(other->desk(), 1).at(0).receipt, "second"), SettleStatus::applied);
  ASSERT_EQ(get("m0").failure.earlier.size(), 1U);
  EXPECT_EQ(get("m0").failure.earlier.front().error, "first");
  clock().advance(1s);
  const auto third = claim(other->desk(), 1).at(0);
  EXPECT_EQ(third.message.attempt, 3U);
  EXPECT_EQ(settle_one(third.receipt, CompletionAction::release).status, SettleStatus::applied);
  EXPECT_EQ(get("m0").message.attempt, 2U) << "the attempt is given back";
}

TEST_F(Recovery, RoleThatMayNotDeleteIsToldSoAtOnce) {
  const auto receipt = claim_one();
  host().faults().choose([](const std::string& operation, const std::string& body) {
    return operation == "DeleteItem" || body.find("DELETE") != std::string::npos ? HttpFault::deny : HttpFault::none;
  });
  host().usage().reset();
  const auto result = settle_one(receipt, CompletionAction::remove);
  EXPECT_EQ(result.status, SettleStatus::failed);
  EXPECT_EQ(result.error.code(), ErrorCode::denied) << result.error.message();
  EXPECT_EQ(host().usage().requests(), 2U) << "as a statement, and by itself";
}

TEST_F(Recovery, SendTellsOfEachMessageWhetherItIsStored) {
  std::vector<queue::NewMessage> batch(100);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].id = "m" + std::to_string(i);
  }
  batch[2].body = batch[50].body = std::string(500'000, 'x');
  host().faults().break_next(HttpFault::throttle_odd, "INSERT", 1'000);
  const auto results = desk().send("orders", batch, Deadline::after(clock(), 60s));
  ASSERT_EQ(results.size(), batch.size());
  std::size_t stored = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].id, batch[i].id);
    const bool there = desk().get("orders", batch[i].id, soon()).has_value();
    EXPECT_EQ(there, results[i].status == queue::SendStatus::sent) << batch[i].id;
    EXPECT_EQ(there, results[i].error.message().empty()) << batch[i].id;
    stored += there ? 1 : 0;
  }
  EXPECT_EQ(results[2].error.code(), ErrorCode::invalid);
  EXPECT_EQ(results[50].error.code(), ErrorCode::invalid);
  EXPECT_GT(stored, 0U);
}

}  // namespace
}  // namespace sluice::test
