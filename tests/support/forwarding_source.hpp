#pragma once

#include <memory>

#include "host/queue/source.hpp"

namespace sluice::test {

/// Another source, for tests that change what a method or two of it do.
class ForwardingSource : public queue::Source {
 public:
  explicit ForwardingSource(std::unique_ptr<queue::Source> source) : source_(std::move(source)) {}

  const queue::SourceTraits& traits() const override { return source_->traits(); }
  void start(queue::SourceEvents events) override { source_->start(std::move(events)); }
  void stop() override { source_->stop(); }
  Result<queue::Claimed> claim(const queue::ClaimRequest& request, Deadline deadline) override {
    return source_->claim(request, deadline);
  }
  std::vector<queue::SettleResult> settle(std::span<const queue::Completion> completions, Deadline deadline) override {
    return source_->settle(completions, deadline);
  }
  void handled(std::span<const queue::Receipt> receipts) override { source_->handled(receipts); }
  queue::SendOrder send_order(std::span<const queue::Receipt> receipts) override {
    return source_->send_order(receipts);
  }
  bool holds(std::uint32_t part) override { return source_->holds(part); }
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          Deadline deadline) override {
    return source_->extend(receipts, visibility, deadline);
  }

 private:
  const std::unique_ptr<queue::Source> source_;
};

/// One that gives no results.
class MuteSource final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  std::vector<queue::SettleResult> settle(std::span<const queue::Completion>, Deadline) override { return {}; }
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt>, Duration, Deadline) override { return {}; }
};

}  // namespace sluice::test
