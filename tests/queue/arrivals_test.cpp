#include "host/queue/arrivals.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "base/clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""ms;

/// Its start lasts until somebody else has asked what was heard, or a while.
class SlowSource final : public queue::Source {
 public:
  const queue::SourceTraits& traits() const override {
    static constexpr queue::SourceTraits kTraits{};
    return kTraits;
  }
  void start(queue::SourceEvents) override {
    starts.set_value();
    asked.get_future().wait_for(200ms);
    tells = true;
  }
  void stop() override {}
  Result<queue::Claimed> claim(const queue::ClaimRequest&, Deadline) override { return queue::Claimed{}; }
  std::vector<queue::SettleResult> settle(std::span<const queue::Completion>, Deadline) override { return {}; }
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt>, Duration, Deadline) override { return {}; }

  std::promise<void> starts;
  std::promise<void> asked;
  std::atomic<bool> tells{false};
};

TEST(ArrivalsTest, WhoeverAsksWhileTheSourceIsStartedClaimsOnlyOnceItTells) {
  SlowSource source;
  const SystemClock clock;
  queue::Arrivals arrivals(source, clock);
  const std::jthread first([&] { arrivals.heard(); });
  source.starts.get_future().wait();
  arrivals.heard();
  EXPECT_TRUE(source.tells) << "what comes before would be missed";
  source.asked.set_value();
}

}  // namespace
}  // namespace sluice::test
