#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"

namespace sluice::bench {

/// A queue of `count` messages that are made when they are claimed: a source that costs next to nothing, so that what
/// is measured is the engine. Nothing is ever lost.
class MemoryQueue : public queue::Source {
 public:
  MemoryQueue(const Clock& clock, std::uint64_t count, std::size_t body_size)
      : clock_(clock), count_(count), body_(body_size, 'x') {}

  std::uint64_t settled() const { return settled_.load(); }

  const queue::SourceTraits& traits() const override { return traits_; }
  void start(queue::SourceEvents) override {}
  void stop() override {}

  Result<queue::Claimed> claim(const queue::ClaimRequest& request, Deadline) override {
    const std::uint64_t first = next_.load();
    const std::uint64_t end = std::min<std::uint64_t>(count_, first + request.max);
    next_.store(end);
    queue::Claimed claimed;
    claimed.deliveries.resize(end - first);
    const SteadyTime leased_until = clock_.steady_now() + request.visibility;
    for (std::uint64_t i = first; i < end; ++i) {
      queue::Delivery& delivery = claimed.deliveries[i - first];
      delivery.message.id = "0b5e8f0e-6b0a-4b6e-9a39-" + std::to_string(100'000'000'000 + i);
      delivery.message.body = body_;
      delivery.message.attempt = 1;
      delivery.receipt = {delivery.message.id, 1, static_cast<std::int64_t>(i)};
      delivery.leased_until = leased_until;
    }
    return claimed;
  }
  std::vector<queue::SettleResult> settle(std::span<const queue::Completion> completions, Deadline) override {
    settled_ += completions.size();
    return std::vector<queue::SettleResult>(completions.size());
  }
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          Deadline) override {
    std::vector<queue::ExtendResult> results;
    for (const queue::Receipt& receipt : receipts) {
      results.push_back({queue::SettleStatus::applied, receipt, clock_.steady_now() + visibility, {}});
    }
    return results;
  }

 private:
  const Clock& clock_;
  const queue::SourceTraits traits_{};
  const std::uint64_t count_;
  const std::string body_;
  std::atomic<std::uint64_t> next_{0};  // one poller claims
  std::atomic<std::uint64_t> settled_{0};
};

}  // namespace sluice::bench
