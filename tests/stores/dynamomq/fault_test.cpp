// Lost answers, throttles and broken connections, at each of send, claim, settle and extend.

#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;
using queue::SendStatus;
using queue::SettleStatus;
using ::testing::Values;

/// An answer is lost after the request took effect.
class LostAnswer : public StoreOnEmulator, public ::testing::WithParamInterface<HttpFault> {};

INSTANTIATE_TEST_SUITE_P(AllWays, LostAnswer,
                         Values(HttpFault::commit_then_500, HttpFault::commit_then_reset, HttpFault::commit_then_cut));

TEST_P(LostAnswer, OfSendIsRecognised) {
  host().faults().break_next(GetParam(), "INSERT");
  std::vector<queue::NewMessage> batch(60);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].id = "m" + std::to_string(i);
  }
  for (const auto& result : desk().send("orders", batch, soon())) {
    EXPECT_EQ(result.status, SendStatus::sent) << result.error.message();
  }
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 60U);
}

TEST_P(LostAnswer, OfSendDoesNotHideARealDuplicate) {
  send(1);
  host().faults().break_next(GetParam(), "INSERT");
  const std::vector<queue::NewMessage> batch{{.id = "m0", .body = "other"}, {.id = "new", .body = "x"}};
  const auto results = desk().send("orders", batch, soon());
  EXPECT_EQ(results[0].status, SendStatus::duplicate_id);
  EXPECT_EQ(results[1].status, SendStatus::sent);
  EXPECT_EQ(get("m0").message.body, std::string(20, 'x'));
}

TEST_P(LostAnswer, OfSendIsRecognisedAfterSomebodyHasClaimedTheMessage) {
  const auto other = make_host("worker-b", 2);
  int inserts = 0;
  host().faults().choose([&](const std::string&, const std::string& body) {
    if (body.find("INSERT") == std::string::npos || ++inserts > 2) {
      return HttpFault::none;
    }
    if (inserts == 2) {
      EXPECT_EQ(claim(other->desk(), 10).size(), 1U);
    }
    return inserts == 1 ? GetParam() : HttpFault::none;
  });
  const queue::NewMessage message{.id = "m0", .body = "x"};
  EXPECT_EQ(desk().send("orders", std::span(&message, 1), soon())[0].status, SendStatus::sent);
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 1U);
}

TEST_P(LostAnswer, OfClaimBurnsNoDelivery) {
  send(60);
  host().faults().break_next(GetParam(), "RETURNING ALL NEW");
  const auto claims = claim(60);
  EXPECT_EQ(ids_of(claims).size(), 60U);
  for (const auto& claimed : claims) {
    EXPECT_EQ(claimed.message.attempt, 1U);
    EXPECT_EQ(claimed.message.body, std::string(20, 'x'));
  }
  EXPECT_EQ(applied(settle(desk(), claims, CompletionAction::remove)), 60U);
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 0U);
}

TEST_P(LostAnswer, OfClaimIsRecognisedByTheNextCallWhenReadingFailsToo) {
  send(5);
  host().faults().choose([](const std::string& operation, const std::string& body) {
    if (body.find("RETURNING ALL NEW") != std::string::npos) {
      return GetParam();
    }
    return operation == "BatchGetItem" ? HttpFault::refuse : HttpFault::none;
  });
  EXPECT_FALSE(desk().claim(standard(), 5, 30s, soon()));
  host().faults().choose({});
  const auto claims = claim(5);
  ASSERT_EQ(claims.size(), 5U);
  EXPECT_EQ(claims[0].message.attempt, 1U);
  EXPECT_EQ(applied(settle(desk(), claims, CompletionAction::remove)), 5U);
}

TEST_P(LostAnswer, OfClaimBurnsNoDeliveryEvenAfterTheLeaseHasRunOut) {
  send(1);
  host().faults().choose([](const std::string& operation, const std::string& body) {
    if (body.find("RETURNING ALL NEW") != std::string::npos) {
      return GetParam();
    }
    return operation == "BatchGetItem" ? HttpFault::refuse : HttpFault::none;
  });
  EXPECT_FALSE(desk().claim(standard(), 5, 30s, soon()));
  host().faults().choose({});
  clock().advance(31s);
  const auto claims = claim(5);
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_EQ(claims[0].message.attempt, 1U);
  EXPECT_EQ(get("m0").version, 3);
}

TEST_P(LostAnswer, OfSettleCountsAsApplied) {
  for (const CompletionAction action :
       {CompletionAction::remove, CompletionAction::retry, CompletionAction::release, CompletionAction::dead_letter}) {
    const std::string prefix = "a" + std::to_string(static_cast<int>(action)) + "-";
    send(30, 20, prefix);
    const auto claims = claim(30);
    ASSERT_EQ(claims.size(), 30U);
    host().faults().break_next(GetParam(), action == CompletionAction::remove ? "DELETE" : "UPDATE");
    EXPECT_EQ(applied(settle(desk(), claims, action, 3600s)), 30U) << prefix;
    host().faults().choose({});
    if (action == CompletionAction::remove) {
      EXPECT_EQ(desk().get("orders", prefix + "0", soon()).error().code(), ErrorCode::not_found);
    } else {
      const auto stored = get(prefix + "0");
      EXPECT_EQ(stored.version, 3);
      EXPECT_EQ(stored.message.attempt, action == CompletionAction::retry ? 1U : 0U);
    }
  }
}

TEST_P(LostAnswer, OfSettleStaysLostForAZombie) {
  send(1);
  const auto zombie = claim(1);
  clock().advance(31s);
  ASSERT_EQ(claim(1).size(), 1U);
  for (const CompletionAction action : {CompletionAction::remove, CompletionAction::retry}) {
    host().faults().break_next(GetParam(), action == CompletionAction::remove ? "DELETE" : "UPDATE");
    EXPECT_EQ(settle(desk(), zombie, action)[0].status, SettleStatus::lost);
  }
  EXPECT_EQ(get("m0").version, 3);
}

TEST_P(LostAnswer, OfExtendGivesTheNewReceipt) {
  send(1);
  const auto claims = claim(1);
  host().faults().break_next(GetParam(), "UPDATE");
  const auto extended = desk().extend(standard(), std::span(&claims[0].receipt, 1), 600s, soon());
  ASSERT_EQ(extended[0].status, SettleStatus::applied) << extended[0].error.message();
  EXPECT_EQ(extended[0].receipt.version, 3);
  EXPECT_EQ(get("m0").version, 3);
  queue::Delivery renewed = claims[0];
  renewed.receipt = extended[0].receipt;
  EXPECT_EQ(applied(settle(desk(), {renewed}, CompletionAction::release)), 1U);
  EXPECT_EQ(get("m0").message.attempt, 0U);
}

TEST_P(LostAnswer, OfOperatorsWritesIsRecognised) {
  send(1);
  host().faults().break_next(GetParam(), "UPDATE");
  ASSERT_TRUE(desk().dead_letter("orders", "m0",
                                 {.error = "x", .handler = "h", .host = {}, .attempts = 1, .failed_at = {}}, soon()));
  EXPECT_EQ(get("m0").version, 2);
  host().faults().break_next(GetParam(), "UPDATE");
  ASSERT_TRUE(desk().redrive("orders", "m0", soon()));
  EXPECT_EQ(get("m0").version, 3);
  host().faults().break_next(GetParam(), "UpdateExpression");
  const queue::ContentEdit edit{.path = {"data"}, .json = R"("new")"};
  const auto edited = desk().edit("orders", "m0", 3, std::span(&edit, 1), soon());
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->version, 4);
  host().faults().break_next(GetParam(), "DELETE");
  EXPECT_TRUE(desk().remove("orders", "m0", soon()));
}

/// Requests that fail without an effect.
class Refused : public StoreOnEmulator {};

TEST_F(Refused, SomeStatementsOfABatchAreThrottledAndComeThrough) {
  host().faults().break_next(HttpFault::throttle_odd, "INSERT", 3);
  send(60);
  host().faults().break_next(HttpFault::throttle_odd, "RETURNING ALL NEW", 3);
  auto claims = claim(60);
  EXPECT_GE(claims.size(), 30U);
  while (claims.size() < 60) {
    auto more = claim(60 - claims.size());
    ASSERT_FALSE(more.empty());
    std::move(more.begin(), more.end(), std::back_inserter(claims));
  }
  EXPECT_EQ(ids_of(claims).size(), 60U);
  for (const auto& claimed : claims) {
    EXPECT_EQ(claimed.message.attempt, 1U);
  }
  host().faults().break_next(HttpFault::throttle_odd, "DELETE", 3);
  EXPECT_EQ(applied(settle(desk(), claims, CompletionAction::remove)), 60U);
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 0U);
}

TEST_F(Refused, ErrorWithoutEffectIsRepeated) {
  host().faults().break_next(HttpFault::error_500, "INSERT");
  send(30);
  host().faults().break_next(HttpFault::error_500, "RETURNING ALL NEW");
  auto claims = claim(30);
  while (claims.size() < 30) {
    auto more = claim(30 - claims.size());
    ASSERT_FALSE(more.empty());
    std::move(more.begin(), more.end(), std::back_inserter(claims));
  }
  for (const auto& claimed : claims) {
    EXPECT_EQ(claimed.message.attempt, 1U);
  }
  host().faults().break_next(HttpFault::error_500, "DELETE");
  EXPECT_EQ(applied(settle(desk(), claims, CompletionAction::remove)), 30U);
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 0U);
}

TEST_F(Refused, ClaimThatTakesEffectAfterItWasGivenUpBurnsNoDelivery) {
  send(2);
  host().faults().break_next(HttpFault::reset_then_commit, "RETURNING ALL NEW");
  auto claims = desk().claim(standard(), 2, 30s, soon());
  ASSERT_TRUE(claims) << "the second round claims them: " << claims.error().message();
  EXPECT_EQ(claims->size(), 2U);
  host().faults().commit_held();
  EXPECT_EQ(get("m0").version, 2) << "too late: the version has moved on";

  send(1, 20, "n");
  host().faults().choose([](const std::string&, const std::string& body) {
    return body.find("RETURNING ALL NEW") != std::string::npos ? HttpFault::reset_then_commit : HttpFault::none;
  });
  EXPECT_FALSE(desk().claim(standard(), 2, 30s, soon()));
  host().faults().commit_held();
  host().faults().choose({});
  EXPECT_EQ(get("n0").message.attempt, 1U);
  EXPECT_TRUE(claim(2).empty()) << "invisible to everybody";
  EXPECT_EQ(applied(settle(desk(), *claims, CompletionAction::remove)), 2U);
  clock().advance(31s);
  const auto again = claim(2);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].message.attempt, 1U);
}

TEST_F(Refused, UnprocessedKeysAreReadInTheEnd) {
  send(10);
  host().faults().choose([](const std::string& operation, const std::string& body) {
    if (body.find("RETURNING ALL NEW") != std::string::npos) {
      return HttpFault::commit_then_500;
    }
    return operation == "BatchGetItem" ? HttpFault::leave_keys_unprocessed : HttpFault::none;
  });
  const auto claims = claim(10);
  EXPECT_EQ(ids_of(claims).size(), 10U);
}

TEST_F(Refused, SendWithoutAnAnswerSaysSoAndNotWhyTheLookAfterItFailed) {
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "BatchGetItem" ? HttpFault::refuse : HttpFault::commit_then_reset;
  });
  const queue::NewMessage message{.id = "x", .body = "x"};
  const auto sent = desk().send("orders", std::span(&message, 1), soon());
  EXPECT_EQ(sent[0].status, SendStatus::failed);
  EXPECT_EQ(sent[0].error.code(), ErrorCode::unknown_outcome);
  EXPECT_NE(sent[0].error.message().find("it may have taken effect all the same"), std::string::npos)
      << sent[0].error.message();
}

TEST_F(Refused, OutageIsAnErrorAndThenItRecovers) {
  send(3);
  const auto first = claim(1);
  host().faults().choose([](const std::string&, const std::string&) { return HttpFault::refuse; });
  const auto claims = desk().claim(standard(), 1, 30s, soon());
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code(), ErrorCode::unavailable) << claims.error().message();
  EXPECT_EQ(settle(desk(), first, CompletionAction::remove)[0].status, SettleStatus::failed);
  const queue::NewMessage message{.id = "x", .body = "x"};
  EXPECT_EQ(desk().send("orders", std::span(&message, 1), soon())[0].status, SendStatus::failed);
  host().faults().choose({});
  EXPECT_EQ(applied(settle(desk(), first, CompletionAction::remove)), 1U);
  EXPECT_EQ(claim(5).size(), 2U);
}

TEST_F(Refused, MissingTableIsNamedAndTheQueueRecoversWhenItIsThere) {
  queue::dynamomq::DynamoMqOptions options;
  options.queues["late"].table = fresh_table_name("late");
  EmulatedHost late(clock(), "worker-a", 5, options);
  const std::string table = options.queues["late"].table;
  const auto claims = late.desk().claim({"late"}, 1, 30s, soon());
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code(), ErrorCode::queue_missing);
  EXPECT_EQ(claims.error().message(), "table '" + table + "' does not exist in eu-west-1");
  const queue::NewMessage message{.id = "x", .body = "x"};
  const auto sent = late.desk().send("late", std::span(&message, 1), soon());
  EXPECT_EQ(sent[0].error.code(), ErrorCode::queue_missing) << sent[0].error.message();
  make_table(late.client(), table, clock());
  EXPECT_EQ(late.desk().send("late", std::span(&message, 1), soon())[0].status, SendStatus::sent);
  clock().advance(1ms);
  EXPECT_EQ(late.desk().claim({"late"}, 1, 30s, soon())->size(), 1U);
}

TEST_F(Refused, MissingIndexIsNamed) {
  queue::dynamomq::DynamoMqOptions options;
  options.queues["orders"] = {table(), "another-index"};
  EmulatedHost other(clock(), "worker-a", 5, options);
  const auto claims = other.desk().claim(standard(), 1, 30s, soon());
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code(), ErrorCode::queue_missing);
  EXPECT_THAT(claims.error().message(), ::testing::HasSubstr("no index 'another-index'"));
}

}  // namespace
}  // namespace sluice::test
