// Handlers that store progress while the job extends their leases, drains, and loses messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "sluice/checkpoint.h"
#include "tests/support/forwarding_source.hpp"
#include "tests/work/job_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::HasSubstr;

const sluice_checkpoint& of(const sluice_context& context) {
  return *static_cast<const sluice_checkpoint*>(context.extension(&context, SLUICE_CHECKPOINT_1));
}
std::string last(const sluice_context& context) {
  sluice_string bytes{};
  return of(context).last(&of(context), &bytes) != 0 ? std::string(bytes.data, bytes.size) : "";
}
/// Empty: it is stored.
std::string store(const sluice_context& context, const std::string& bytes) {
  const char* why = of(context).store(&of(context), {bytes.data(), bytes.size()}, 0);
  return why == nullptr ? "" : why;
}

void short_leases(JobSpec& spec) { spec.leases = {{.visibility = 200ms}}; }

TEST(JobCheckpoint, TheNextAttemptGoesOnFromIt) {
  std::vector<std::string> seen;
  JobRig rig({.handle = [&seen](const std::string&, const sluice_context& context) {
    seen.push_back(last(context));
    EXPECT_EQ(store(context, "part " + std::to_string(seen.size())), "");
    EXPECT_EQ(last(context), "part " + std::to_string(seen.size()));
    return seen.size() < 3 ? SLUICE_RETRY : SLUICE_DONE;
  }});
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send({"a"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_THAT(seen, ::testing::ElementsAre("", "part 1", "part 2"));
  EXPECT_EQ(rig.stats().total(), 0U);
  EXPECT_TRUE(rig.job->drain(rig.in(5s)).clean());
}

/// Says of each lease that it ends sooner than it does: it is extended every 100 ms, and lapses where the machine
/// stands still for half a minute.
class HastySource final : public test::ForwardingSource {
 public:
  static constexpr Duration kVisibility = 60s;

  using ForwardingSource::ForwardingSource;

  Result<queue::Claimed> claim(const queue::ClaimRequest& request, Deadline deadline) override {
    auto claimed = ForwardingSource::claim(request, deadline);
    if (claimed) {
      for (queue::Delivery& delivery : claimed->deliveries) {
        delivery.leased_until -= kEarlier;
      }
    }
    return claimed;
  }
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          Deadline deadline) override {
    auto results = ForwardingSource::extend(receipts, visibility, deadline);
    for (queue::ExtendResult& result : results) {
      result.leased_until -= kEarlier;
    }
    return results;
  }

 private:
  static constexpr Duration kEarlier = kVisibility / 2 - 100ms;
};

TEST(JobCheckpoint, ExtensionsAndCheckpointsDoNotVoidEachOther) {
  constexpr std::size_t kExtensions = 3;
  JobRig* self = nullptr;
  JobRig rig(
      {.handle =
           [&self](const std::string&, const sluice_context& context) {
             const SystemClock clock;
             const SteadyTime end = clock.steady_now() + kPatience;
             for (int i = 0; self->sim.count(test::StoreCall::extend) < kExtensions && clock.steady_now() < end; ++i) {
               EXPECT_EQ(store(context, std::to_string(i)), "");
             }
             return SLUICE_DONE;
           }},
      [](auto simulated) { return std::make_unique<HastySource>(std::move(simulated)); },
      [](JobSpec& spec) { spec.leases = {{.visibility = HastySource::kVisibility}}; });
  ASSERT_TRUE(rig.job) << rig.error;
  self = &rig;
  rig.sim.set_latency(test::StoreCall::extend, 1ms);
  rig.send({"a", "b", "c"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 3; }));
  EXPECT_EQ(rig.record().started.size(), 3U);
  EXPECT_GE(rig.sim.count(test::StoreCall::extend), kExtensions);
  EXPECT_EQ(rig.job->drain(rig.in(5s)).ledger.lost, 0U);
}

/// Its extensions wait until a gate opens.
class GatedSource final : public test::ForwardingSource {
 public:
  GatedSource(std::unique_ptr<queue::Source> source, Gate& gate) : ForwardingSource(std::move(source)), gate_(gate) {}

  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          Deadline deadline) override {
    gate_.pass();
    return ForwardingSource::extend(receipts, visibility, deadline);
  }

 private:
  Gate& gate_;
};

TEST(JobCheckpoint, WaitsForAnExtensionThatIsUnderWay) {
  Gate extending;
  JobRig rig(
      {.handle =
           [&extending](const std::string&, const sluice_context& context) {
             EXPECT_TRUE(extending.await_arrivals(1));
             const std::string why = store(context, "too early");
             EXPECT_THAT(why, HasSubstr("an extension of the message's lease has no answer yet"));
             extending.open();
             EXPECT_EQ(store(context, "in time"), "");
             return SLUICE_DONE;
           }},
      [&extending](auto simulated) { return std::make_unique<GatedSource>(std::move(simulated), extending); },
      short_leases);
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send({"a"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
}

TEST(JobCheckpoint, WhoHasLostTheMessageIsToldAndStopped) {
  std::atomic<int> starts{0};
  JobRig* self = nullptr;
  JobRig rig({.handle = [&](const std::string&, const sluice_context& context) {
    if (++starts > 1) {
      return SLUICE_DONE;
    }
    self->sim.lose_receipts({"orders"}, 1ms);
    EXPECT_THAT(store(context, "late"), HasSubstr("the message is no longer ours"));
    EXPECT_NE(context.stop_requested(&context), 0);
    EXPECT_THAT(store(context, "later"), HasSubstr("the message is no longer ours"));
    return SLUICE_DONE;
  }});
  self = &rig;
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send({"a"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.lost == 1; }));
}

TEST(JobCheckpoint, AFailureLeavesTheAttemptGoingOn) {
  JobRig* self = nullptr;
  JobRig rig({.handle = [&self](const std::string&, const sluice_context& context) {
    self->sim.fail_next(test::StoreCall::settle, 1, Error(ErrorCode::throttled, "slow down"));
    EXPECT_EQ(store(context, "a"), "the checkpoint may not be stored: queue \"orders\": slow down");
    EXPECT_EQ(last(context), "");
    EXPECT_EQ(store(context, "b"), "");
    return SLUICE_DONE;
  }});
  self = &rig;
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send({"a"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
}

TEST(JobCheckpoint, WhatADrainGivesUpGoesBackUnderTheLatestReceipt) {
  Gate stopped;
  JobRig rig({.handle =
                  [&stopped](const std::string&, const sluice_context& context) {
                    const std::string begun = last(context);
                    EXPECT_EQ(store(context, begun + "x"), "");
                    stopped.pass();
                    return SLUICE_DONE;
                  }},
             short_leases);
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send({"a"});
  rig.job->start();
  ASSERT_TRUE(stopped.await_arrivals(1));
  const JobActivity report = rig.job->drain(rig.in(300ms));
  EXPECT_EQ(report.ledger.released, 1U);
  const auto stored = rig.desk.get("orders", "a", Deadline::never());
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->message.checkpoint, "x");
  EXPECT_EQ(stored->state(rig.clock.wall_now()), queue::MessageState::ready);
  stopped.open();
}

}  // namespace
}  // namespace sluice::work
