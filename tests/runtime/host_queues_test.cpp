// What a host file says of the messages that handlers send in the transaction of a completion.

#include "host/runtime/host_queues.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/queue/effects.hpp"
#include "tests/isolation/ledger_rig.hpp"

namespace sluice::runtime {
namespace {

using queue::SettleStatus;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HostQueuesTest : public ::testing::Test {
 protected:
  HostQueuesTest() {
    config_.store.path = folder_.path() + "/default.db";
    config_.stores["archive"].path = folder_.path() + "/archive.db";
    config_.queues["orders"] = {};
    config_.queues["receipts"].store = "archive";
    config_.queues["notes"].dedup_by_content = true;
  }

  /// Claims a message of queue orders and ends it with a message to that queue.
  queue::SettleResult end_with(const std::string& to, const std::string& body = "x") {
    const queue::NewMessage work{.body = "work"};
    (*queues().open_sender("orders"))->send({&work, 1}, Deadline::never());
    const auto source = *queues().open_source({"orders"});
    const auto claimed = source->claim({.max = 1, .visibility = std::chrono::seconds(30)}, Deadline::never());
    EXPECT_TRUE(claimed && claimed->deliveries.size() == 1);
    auto effects = std::make_shared<queue::Effects>();
    effects->messages.push_back({to, {.id = "B-" + std::to_string(++sent_), .body = body}});
    const queue::Completion done{.receipt = claimed->deliveries.at(0).receipt, .effects = effects};
    return source->settle({&done, 1}, Deadline::never()).front();
  }
  std::uint64_t lying_in(const std::string& queue) {
    return (*queues().open_operator(queue))->stats({}, Deadline::never())->total();
  }
  HostQueues& queues() {
    if (!queues_) {
      queues_.emplace(config_, clock_, random_, nullptr);
    }
    return *queues_;
  }

  isolation::StateFolder folder_;
  config::HostConfig config_;
  SystemClock clock_;
  SeededRandom random_{1};
  std::optional<HostQueues> queues_;
  int sent_ = 0;
};

TEST_F(HostQueuesTest, AMessageToAnotherStoreIsRefusedAndNothingIsCommitted) {
  const auto refused = end_with("receipts");
  EXPECT_EQ(refused.status, SettleStatus::refused);
  EXPECT_FALSE(refused.reject);
  EXPECT_THAT(refused.error.message(),
              AllOf(HasSubstr("message B-1 to queue receipts was refused"), HasSubstr("store \"archive\""),
                    HasSubstr("orders in the default store"), HasSubstr("give [queues.receipts] the store")));
  EXPECT_EQ(lying_in("orders"), 1U) << "it is as it was";
  EXPECT_EQ(lying_in("receipts"), 0U);
  EXPECT_THAT(*queues().made_by_messages_in("", Deadline::never()), ElementsAre("orders"))
      << "a queue of that name was made in the handler's own store";
}

TEST_F(HostQueuesTest, AMessageToAnotherQueueOfTheSameStoreIsCommitted) {
  EXPECT_EQ(end_with("invoices").status, SettleStatus::applied);
  EXPECT_EQ(lying_in("invoices"), 1U);
  EXPECT_EQ(lying_in("orders"), 0U);
}

TEST_F(HostQueuesTest, TheDeduplicationOfAQueueHoldsForWhatHandlersSendToo) {
  EXPECT_EQ(end_with("notes", "same").status, SettleStatus::applied);
  EXPECT_EQ(end_with("notes", "same").status, SettleStatus::applied) << "accepted, and not stored";
  EXPECT_EQ(end_with("notes", "other").status, SettleStatus::applied);
  EXPECT_EQ(lying_in("notes"), 2U);
  EXPECT_EQ(lying_in("orders"), 0U);
}

TEST_F(HostQueuesTest, AJobOfTheOtherStoreReachesItsOwnQueuesAlone) {
  EXPECT_FALSE(beyond_store(config_, "receipts", "receipts"));
  const auto back = beyond_store(config_, "receipts", "orders");
  ASSERT_TRUE(back);
  EXPECT_THAT(back->message(),
              AllOf(HasSubstr("queue orders lies in the default store"), HasSubstr("receipts in store \"archive\"")));
  EXPECT_FALSE(beyond_store(config_, "orders", "unknown")) << "what nobody maps lies in the default store";
}

}  // namespace
}  // namespace sluice::runtime
