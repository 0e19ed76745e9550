#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue {

/// Several sources as one, for a job that draws from several queues. They may lie in different stores.
///
/// A claim is shared by weight among those that have something, and none starves: each begins a claim as often as its
/// weight says, and what one does not use the others get. A receipt says by its `part` which source it is of. Each
/// source has a visibility of its own, whatever a request says. A claim fails only when it has brought nothing and one
/// of them failed; its deadline is that of all of them together, one after the other.
///
/// It can do what all of its sources can. Thread-safe. A resource.
class JoinedSource final : public Source {
 public:
  struct Part {
    std::unique_ptr<Source> source;
    std::uint32_t weight = 1;
    Duration visibility{};
    std::uint64_t max_in_flight = 0;  ///< as ClaimRules', whatever a request says
  };
  /// At least one, and at most 65,536.
  explicit JoinedSource(std::vector<Part> parts);

  const SourceTraits& traits() const override { return traits_; }
  void start(SourceEvents events) override;
  void stop() override;
  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override;
  bool holds(std::uint32_t part) override { return parts_[part].source->holds(0); }
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override;

 private:
  /// How many messages each part is asked for first, the part whose turn it is to begin, and who has the next turns.
  struct Shares {
    std::vector<std::size_t> of;
    std::size_t first = 0;
  };
  Shares share_out(std::size_t max);
  class Claiming;

  // Fixed after construction.
  const std::vector<Part> parts_;
  const SourceTraits traits_;

  Mutex mutex_;
  std::vector<std::int64_t> credits_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue
