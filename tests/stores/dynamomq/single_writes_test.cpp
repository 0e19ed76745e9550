// Roles without PartiQL: every write is a request of its own, under the same conditions.

#include <atomic>

#include "host/stores/table/statements.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using queue::ChangeAction;
using queue::ChangeStatus;
using queue::CompletionAction;
using queue::SendStatus;
using queue::SettleStatus;

constexpr const char* kBatch = "BatchExecuteStatement";

class WithoutPartiQl : public StoreOnEmulator {
 protected:
  void SetUp() override {
    StoreOnEmulator::SetUp();
    if (!IsSkipped()) {
      queue::dynamomq::DynamoMqOptions options;
      options.queues["orders"].table = table();
      options.warn = [this](const std::string& line) { warnings_.push_back(line); };
      host_ = std::make_unique<EmulatedHost>(clock(), "worker-c", 3, options);
      deny({kBatch});
    }
  }

  EmulatedHost& bound() { return *host_; }
  Desk& desk() { return host_->desk(); }

  /// Refuses these operations from now on, and breaks the first request of another.
  void deny(const std::set<std::string>& operations, const std::string& lost = {}) {
    auto broken = std::make_shared<std::atomic<bool>>(false);
    bound().faults().choose([operations, lost, broken](const std::string& operation, const std::string&) {
      if (operations.count(operation) > 0) {
        return HttpFault::deny;
      }
      return operation == lost && !broken->exchange(true) ? HttpFault::commit_then_reset : HttpFault::none;
    });
  }

  std::vector<queue::SendResult> send_batch(std::size_t count, const std::string& prefix = "m") {
    std::vector<queue::NewMessage> batch(count);
    for (std::size_t i = 0; i < count; ++i) {
      batch[i].id = prefix + std::to_string(i);
      batch[i].body = std::string(600, 'x');
    }
    auto results = desk().send("orders", batch, soon());
    clock().advance(1ms);
    return results;
  }
  ChangeStatus change(const std::string& id, ChangeAction action) {
    const queue::Change made{.id = id, .action = action, .version = {}, .after = 1s, .failure = {}};
    return desk().change("orders", {&made, 1}, soon()).front().status;
  }

  std::vector<std::string> warnings_;

 private:
  std::unique_ptr<EmulatedHost> host_;
};

TEST_F(WithoutPartiQl, WhatAHostDoesIsDoneByRequestsOfItsOwn) {
  for (const auto& sent : send_batch(8)) {
    EXPECT_EQ(sent.status, SendStatus::sent) << sent.error.message();
  }
  EXPECT_EQ(send_batch(1).front().status, SendStatus::duplicate_id);
  auto held = claim(desk(), 6);
  ASSERT_EQ(held.size(), 6U);
  EXPECT_EQ(held[0].message.body, std::string(600, 'x'));
  std::vector<queue::Receipt> receipts;
  receipts.reserve(held.size());
  for (const auto& delivery : held) {
    receipts.push_back(delivery.receipt);
  }
  const auto extended = desk().extend(standard(), receipts, 60s, soon());
  for (std::size_t i = 0; i < held.size(); ++i) {
    ASSERT_EQ(extended[i].status, SettleStatus::applied) << extended[i].error.message();
    held[i].receipt = extended[i].receipt;
  }
  EXPECT_EQ(applied(settle(desk(), {held[0], held[1]}, CompletionAction::remove)), 2U);
  EXPECT_EQ(applied(settle(desk(), {held[2]}, CompletionAction::retry, 5s)), 1U);
  EXPECT_EQ(applied(settle(desk(), {held[3]}, CompletionAction::release)), 1U);
  EXPECT_EQ(applied(settle(desk(), {held[4]}, CompletionAction::dead_letter)), 1U);
  EXPECT_TRUE(raw(held[0].message.id).empty());
  EXPECT_EQ(get(held[3].message.id).message.attempt, 0U) << "its attempt was given back";
  EXPECT_EQ(desk().stats(dlq(), soon())->ready, 1U);
  EXPECT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_.front(), testing::AllOf(testing::HasSubstr("dynamodb:PartiQLInsert"),
                                                testing::HasSubstr("about 3 requests a message")));
}

TEST_F(WithoutPartiQl, WhatOperatorsDoToo) {
  send_batch(6);
  EXPECT_EQ(change("m0", ChangeAction::set_visibility), ChangeStatus::applied);
  EXPECT_EQ(change("m1", ChangeAction::delay), ChangeStatus::applied);
  EXPECT_EQ(change("m1", ChangeAction::move_to_front), ChangeStatus::applied);
  EXPECT_EQ(change("m2", ChangeAction::dead_letter), ChangeStatus::applied);
  EXPECT_EQ(change("m2", ChangeAction::redrive), ChangeStatus::applied);
  EXPECT_EQ(change("m2", ChangeAction::redrive), ChangeStatus::conflict);
  EXPECT_EQ(change("m3", ChangeAction::reset), ChangeStatus::applied);
  EXPECT_EQ(change("m4", ChangeAction::remove), ChangeStatus::applied);
  EXPECT_EQ(change("m4", ChangeAction::remove), ChangeStatus::not_found);
  queue::StoredMessage record = get("m5");
  EXPECT_EQ(desk().put("orders", {&record, 1}, queue::PutMode::insert, soon()).front().status,
            queue::PutStatus::exists);
  record.message.id = "copy";
  EXPECT_EQ(desk().put("orders", {&record, 1}, queue::PutMode::insert, soon()).front().status,
            queue::PutStatus::written);
}

TEST_F(WithoutPartiQl, AHostThatLostItsLeaseIsRefusedAllTheSame) {
  send_batch(3);
  const auto mine = claim(desk(), 3, 10s);
  ASSERT_EQ(mine.size(), 3U);
  clock().advance(10s + 1ms);
  const auto theirs = claim(StoreOnEmulator::desk(), 1);
  ASSERT_EQ(theirs.size(), 1U);
  std::size_t lost = 0;
  for (const auto& result : settle(desk(), mine, CompletionAction::remove)) {
    lost += result.status == SettleStatus::lost ? 1 : 0;
  }
  EXPECT_EQ(lost, 1U);
  EXPECT_FALSE(raw(theirs[0].message.id).empty());
}

TEST_F(WithoutPartiQl, LostAnswersAreRecoveredAsFromBatches) {
  deny({kBatch}, "PutItem");
  for (const auto& sent : send_batch(3)) {
    EXPECT_EQ(sent.status, SendStatus::sent) << "it finds its own first try";
  }
  deny({kBatch}, "UpdateItem");
  const auto held = claim(desk(), 3);
  ASSERT_EQ(held.size(), 3U);
  for (const auto& delivery : held) {
    EXPECT_EQ(delivery.message.attempt, 1U);
  }
  deny({kBatch}, "DeleteItem");
  EXPECT_EQ(applied(settle(desk(), held, CompletionAction::remove)), 3U);
}

TEST_F(WithoutPartiQl, LifeOfAMessageStaysWithinItsBudget) {
  constexpr std::size_t kMessages = 1'200;
  bound().usage().reset();
  const auto began = SystemClock().steady_now();
  for (std::size_t lot = 0; lot < kMessages / 100; ++lot) {
    send_batch(100, "lot" + std::to_string(lot) + "-");
  }
  std::size_t removed = 0;
  while (removed < kMessages) {
    const auto claims = claim(desk(), 50);
    ASSERT_FALSE(claims.empty());
    removed += applied(settle(desk(), claims, CompletionAction::remove));
  }
  const double seconds = std::chrono::duration<double>(SystemClock().steady_now() - began).count();
  const auto capacity = bound().usage().capacity();
  const double requests = static_cast<double>(bound().usage().requests()) / kMessages;
  std::printf("one by one: %.3f requests, %.2f WCU, %.3f RCU a message; %.0f messages a second\n", requests,
              capacity.write / kMessages, capacity.read / kMessages, kMessages / seconds);
  EXPECT_LE(requests, 3.1);
  EXPECT_LE(capacity.write / kMessages, 6.0);
  EXPECT_LE(capacity.read / kMessages, 0.2);
}

TEST_F(WithoutPartiQl, OnlyTheKindsThatAreRefusedGoAlone) {
  bound().faults().choose([](const std::string& operation, const std::string& body) {
    const bool deletes = operation == kBatch && body.find("DELETE FROM") != std::string::npos;
    return deletes ? HttpFault::deny : HttpFault::none;
  });
  send_batch(10);
  const auto held = claim(desk(), 10);
  ASSERT_EQ(held.size(), 10U);
  EXPECT_EQ(applied(settle(desk(), held, CompletionAction::remove)), 10U);
  EXPECT_EQ(bound().usage().requests("PutItem"), 0U);
  EXPECT_EQ(bound().usage().requests("UpdateItem"), 0U);
  EXPECT_EQ(bound().usage().requests("DeleteItem"), 10U);
}

TEST_F(WithoutPartiQl, RightsThatAreGrantedLaterAreFound) {
  send_batch(2);
  bound().faults().choose({});
  bound().usage().reset();
  send_batch(2, "n");
  EXPECT_EQ(bound().usage().requests(kBatch), 0U);
  clock().advance(queue::table::StatementRights::kAskAgain);
  send_batch(2, "o");
  EXPECT_EQ(bound().usage().requests(kBatch), 1U);
}

TEST_F(WithoutPartiQl, WhatIsDeniedEitherWayFailsAndNamesWhatIsMissing) {
  deny({kBatch, "PutItem"});
  const auto sent = send_batch(2);
  EXPECT_EQ(sent[1].error.code(), ErrorCode::denied);
  EXPECT_THAT(sent[1].error.message(),
              testing::AllOf(testing::HasSubstr("dynamodb:PutItem"), testing::HasSubstr("dynamodb:PartiQLInsert")));
  EXPECT_TRUE(warnings_.empty()) << "batches would be refused for another reason";
}

TEST_F(WithoutPartiQl, ATokenThatIsNoGoodIsNoMissingRight) {
  dynamo::Error error(dynamo::ErrorKind::access_denied, "x");
  error.exception_name = "UnrecognizedClientException";
  EXPECT_FALSE(queue::table::lacks_right(error));
  error.exception_name = "AccessDenied";
  EXPECT_TRUE(queue::table::lacks_right(error));
}

}  // namespace
}  // namespace sluice::test
