#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/store.hpp"

namespace sluice::bench {

/// A queue of `count` messages that are made when they are claimed: a Store that costs next to nothing, so that what is
/// measured is the engine. It knows nothing but claim, settle and extend, and nothing is ever lost.
class MemoryQueue final : public queue::Store {
 public:
  MemoryQueue(std::uint64_t count, std::size_t body_size) : count_(count), body_(body_size, 'x') {}

  std::uint64_t settled() const { return settled_.load(); }

  Result<std::vector<queue::Claim>> claim(const queue::QueueAddress&, std::size_t max, Duration, Deadline) override {
    const std::uint64_t first = next_.load();
    const std::uint64_t end = std::min<std::uint64_t>(count_, first + max);
    next_.store(end);
    std::vector<queue::Claim> claims(end - first);
    for (std::uint64_t i = first; i < end; ++i) {
      queue::Claim& claim = claims[i - first];
      claim.message.id = "0b5e8f0e-6b0a-4b6e-9a39-" + std::to_string(100'000'000'000 + i);
      claim.message.body = body_;
      claim.message.attempt = 1;
      claim.receipt = {claim.message.id, 1, static_cast<std::int64_t>(i)};
    }
    return claims;
  }
  std::vector<queue::SettleResult> settle(const queue::QueueAddress&, std::span<const queue::Settlement> settlements,
                                          Deadline) override {
    settled_ += settlements.size();
    return std::vector<queue::SettleResult>(settlements.size());
  }
  std::vector<queue::ExtendResult> extend(const queue::QueueAddress&, std::span<const queue::Receipt> receipts,
                                          Duration, Deadline) override {
    std::vector<queue::ExtendResult> results;
    for (const queue::Receipt& receipt : receipts) {
      results.push_back({queue::SettleStatus::applied, receipt, {}, {}});
    }
    return results;
  }
  std::vector<queue::SendResult> send(const std::string&, std::span<const queue::NewMessage> messages,
                                      Deadline) override {
    return std::vector<queue::SendResult>(messages.size(), {queue::SendStatus::failed, {}, unknown()});
  }
  Result<queue::StoredMessage> get(const std::string&, const std::string&, Deadline) override { return unknown(); }
  Result<queue::ListPage> list(const queue::ListRequest&, Deadline) override { return unknown(); }
  Result<queue::QueueStats> stats(const queue::QueueAddress&, Deadline) override { return unknown(); }
  Result<queue::QueueOverview> overview(const queue::OverviewRequest&, Deadline) override { return unknown(); }
  std::vector<queue::ChangeResult> change(const std::string&, std::span<const queue::Change> changes,
                                          Deadline) override {
    return std::vector<queue::ChangeResult>(changes.size(), {queue::ChangeStatus::failed, 0, unknown()});
  }
  Result<queue::StoredMessage> edit(const std::string&, const std::string&, std::int64_t,
                                    std::span<const queue::ContentEdit>, Deadline) override {
    return unknown();
  }
  std::vector<queue::PutResult> put(const std::string&, std::span<const queue::StoredMessage> records, queue::PutMode,
                                    Deadline) override {
    return std::vector<queue::PutResult>(records.size(), {queue::PutStatus::failed, unknown()});
  }

 private:
  static Error unknown() { return {ErrorCode::invalid, "the benchmark's queue has no such operation"}; }

  const std::uint64_t count_;
  const std::string body_;
  std::atomic<std::uint64_t> next_{0};  // one poller claims
  std::atomic<std::uint64_t> settled_{0};
};

}  // namespace sluice::bench
