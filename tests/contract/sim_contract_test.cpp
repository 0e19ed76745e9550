#include "base/random.hpp"
#include "tests/contract/effect_contract.hpp"
#include "tests/contract/order_contract.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::test {
namespace {

class SimUnderTest final : public StoreUnderTest {
 public:
  queue::Queues& queues() override { return queues_; }
  FakeClock& clock() override { return clock_; }

  queue::EffectWrite open_account(const std::string& name, std::int64_t balance) override {
    return SimAccounts::opening(name, balance);
  }
  queue::EffectWrite add_to_account(const std::string& name, std::int64_t amount) override {
    return SimAccounts::adding(name, amount);
  }
  std::optional<std::int64_t> balance(const std::string& name) override { return queues_.accounts().balance(name); }

 private:
  FakeClock clock_;
  SeededRandom random_{1};
  SimQueues queues_{clock_, random_};
};

const StoreFactory kSim{.name = "Sim",
                        .make = [] { return std::make_unique<SimUnderTest>(); },
                        .traits = {.max_body = std::size_t{400} * 1024}};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sim, StoreContract, ::testing::Values(kSim), store_name);
INSTANTIATE_ORDER_CONTRACTS(Sim, kSim);
INSTANTIATE_TEST_SUITE_P(Sim, EffectContract, ::testing::Values(kSim), store_name);
INSTANTIATE_TEST_SUITE_P(Sim, CheckpointContract, ::testing::Values(kSim), store_name);

// The switches that only this store has.

TEST(SimFaults, FailWithoutATrace) {
  SimUnderTest under_test;
  auto& sim = static_cast<SimQueues&>(under_test.queues());
  Desk desk(sim);
  sim.fail_next(StoreCall::send, 2, Error(ErrorCode::throttled, "slow down"));
  const queue::NewMessage message{.id = "A-1", .body = "x"};
  for (int i = 0; i < 2; ++i) {
    const auto results = desk.send("orders", std::span(&message, 1), Deadline::never());
    EXPECT_EQ(results[0].status, queue::SendStatus::failed);
    EXPECT_EQ(results[0].error.code(), ErrorCode::throttled);
  }
  EXPECT_EQ(desk.send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  EXPECT_EQ(sim.count(StoreCall::send), 3U);
}

TEST(SimFaults, ApplyAndFail) {
  SimUnderTest under_test;
  auto& sim = static_cast<SimQueues&>(under_test.queues());
  Desk desk(sim);
  const queue::NewMessage message{.id = "A-1", .body = "x"};
  sim.apply_then_fail_next(StoreCall::send, 1);
  const auto sent = desk.send("orders", std::span(&message, 1), Deadline::never());
  EXPECT_EQ(sent[0].error.code(), ErrorCode::unknown_outcome);
  EXPECT_TRUE(desk.get("orders", "A-1", Deadline::never()));
  sim.apply_then_fail_next(StoreCall::claim, 1);
  EXPECT_FALSE(desk.claim({"orders"}, 1, 30s, Deadline::never()));
  EXPECT_EQ(desk.get("orders", "A-1", Deadline::never())->message.attempt, 1U);
}

TEST(SimFaults, OneMessageOfABatch) {
  SimUnderTest under_test;
  auto& sim = static_cast<SimQueues&>(under_test.queues());
  Desk desk(sim);
  const std::vector<queue::NewMessage> batch{{.id = "A-1"}, {.id = "A-2"}};
  sim.fail_message(StoreCall::send, "A-2", 1, Error(ErrorCode::unavailable, "down"));
  const auto results = desk.send("orders", batch, Deadline::never());
  EXPECT_EQ(results[0].status, queue::SendStatus::sent);
  EXPECT_EQ(results[1].error.code(), ErrorCode::unavailable);
}

TEST(SimFaults, LostReceipts) {
  SimUnderTest under_test;
  auto& sim = static_cast<SimQueues&>(under_test.queues());
  Desk desk(sim);
  const queue::NewMessage message{.id = "A-1", .body = "x"};
  desk.send("orders", std::span(&message, 1), Deadline::never());
  const auto claims = desk.claim({"orders"}, 1, 30s, Deadline::never());
  EXPECT_EQ(sim.lose_receipts({"orders"}), 1U);
  const queue::Completion completion{.receipt = claims->at(0).receipt};
  EXPECT_EQ(desk.settle({"orders"}, std::span(&completion, 1), Deadline::never())[0].status, queue::SettleStatus::lost);
}

TEST(SimFaults, LatencyIsPutDownAndFaultsMayComeFromASource) {
  SimUnderTest under_test;
  auto& sim = static_cast<SimQueues&>(under_test.queues());
  Desk desk(sim);
  sim.set_latency(StoreCall::claim, 7ms);
  sim.set_fault_source([](StoreCall call, const queue::QueueAddress&) -> std::optional<StoreFault> {
    if (call != StoreCall::claim) {
      return std::nullopt;
    }
    return StoreFault{Error(ErrorCode::unavailable, "down"), false};
  });
  EXPECT_FALSE(desk.claim({"orders"}, 3, 30s, Deadline::never()));
  ASSERT_EQ(sim.calls().size(), 1U);
  EXPECT_EQ(sim.calls()[0].latency, 7ms);
  EXPECT_EQ(sim.calls()[0].items, 3U);
  EXPECT_EQ(sim.calls()[0].error->code(), ErrorCode::unavailable);
}

}  // namespace sluice::test
