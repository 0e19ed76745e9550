#include "base/random.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/support/sim_store.hpp"

namespace sluice::test {
namespace {

class SimUnderTest final : public StoreUnderTest {
 public:
  queue::Queues& queues() override { return queues_; }
  FakeClock& clock() override { return clock_; }

 private:
  FakeClock clock_;
  SeededRandom random_{1};
  SimStore store_{clock_, random_};
};

const StoreFactory kSim{.name = "SimStore",
                        .make = [] { return std::make_unique<SimUnderTest>(); },
                        .traits = {.max_body = std::size_t{400} * 1024}};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sim, StoreContract, ::testing::Values(kSim), store_name);

// The switches that only this store has.

TEST(SimStoreFaults, FailWithoutATrace) {
  SimUnderTest under_test;
  auto& store = static_cast<SimStore&>(under_test.store());
  store.fail_next(StoreCall::send, 2, Error(ErrorCode::throttled, "slow down"));
  const queue::NewMessage message{.id = "A-1", .body = "x"};
  for (int i = 0; i < 2; ++i) {
    const auto results = store.send("orders", std::span(&message, 1), Deadline::never());
    EXPECT_EQ(results[0].status, queue::SendStatus::failed);
    EXPECT_EQ(results[0].error.code(), ErrorCode::throttled);
  }
  EXPECT_EQ(store.send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  EXPECT_EQ(store.count(StoreCall::send), 3U);
}

TEST(SimStoreFaults, ApplyAndFail) {
  SimUnderTest under_test;
  auto& store = static_cast<SimStore&>(under_test.store());
  const queue::NewMessage message{.id = "A-1", .body = "x"};
  store.apply_then_fail_next(StoreCall::send, 1);
  const auto sent = store.send("orders", std::span(&message, 1), Deadline::never());
  EXPECT_EQ(sent[0].error.code(), ErrorCode::unknown_outcome);
  EXPECT_TRUE(store.get("orders", "A-1", Deadline::never()));
  store.apply_then_fail_next(StoreCall::claim, 1);
  EXPECT_FALSE(store.claim({"orders"}, 1, 30s, Deadline::never()));
  EXPECT_EQ(store.get("orders", "A-1", Deadline::never())->message.attempt, 1U);
}

TEST(SimStoreFaults, OneMessageOfABatch) {
  SimUnderTest under_test;
  auto& store = static_cast<SimStore&>(under_test.store());
  const std::vector<queue::NewMessage> batch{{.id = "A-1"}, {.id = "A-2"}};
  store.fail_message(StoreCall::send, "A-2", 1, Error(ErrorCode::unavailable, "down"));
  const auto results = store.send("orders", batch, Deadline::never());
  EXPECT_EQ(results[0].status, queue::SendStatus::sent);
  EXPECT_EQ(results[1].error.code(), ErrorCode::unavailable);
}

TEST(SimStoreFaults, LostReceipts) {
  SimUnderTest under_test;
  auto& store = static_cast<SimStore&>(under_test.store());
  const queue::NewMessage message{.id = "A-1", .body = "x"};
  store.send("orders", std::span(&message, 1), Deadline::never());
  const auto claims = store.claim({"orders"}, 1, 30s, Deadline::never());
  EXPECT_EQ(store.lose_receipts({"orders"}), 1U);
  const queue::Completion settlement{.receipt = claims->at(0).receipt};
  EXPECT_EQ(store.settle({"orders"}, std::span(&settlement, 1), Deadline::never())[0].status,
            queue::SettleStatus::lost);
}

TEST(SimStoreFaults, LatencyIsPutDownAndFaultsMayComeFromASource) {
  SimUnderTest under_test;
  auto& store = static_cast<SimStore&>(under_test.store());
  store.set_latency(StoreCall::claim, 7ms);
  store.set_fault_source([](StoreCall call, const queue::QueueAddress&) -> std::optional<StoreFault> {
    if (call != StoreCall::claim) {
      return std::nullopt;
    }
    return StoreFault{Error(ErrorCode::unavailable, "down"), false};
  });
  EXPECT_FALSE(store.claim({"orders"}, 3, 30s, Deadline::never()));
  ASSERT_EQ(store.calls().size(), 1U);
  EXPECT_EQ(store.calls()[0].latency, 7ms);
  EXPECT_EQ(store.calls()[0].items, 3U);
  EXPECT_EQ(store.calls()[0].error->code(), ErrorCode::unavailable);
}

}  // namespace sluice::test
