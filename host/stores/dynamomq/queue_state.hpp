#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/dynamomq/half_backlog.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/writer_memory.hpp"

namespace sluice::queue::dynamomq {

/// How large the bodies of a queue half are, with their checkpoints, by those claimed of late. Thread-safe.
class BodySizes {
 public:
  void add(std::size_t bytes) {
    const MutexLock lock(mutex_);
    const auto size = static_cast<double>(bytes);
    average_ = average_ == 0 ? size : average_ * kMemory + size * (1 - kMemory);
  }
  /// How many messages have about so many bytes; at least one.
  std::size_t messages_in(std::size_t bytes) const {
    const MutexLock lock(mutex_);
    const double count = static_cast<double>(bytes) / std::max(1.0, average_);
    return count < 1 ? 1 : static_cast<std::size_t>(std::min(count, kMostInOneClaim));
  }

 private:
  static constexpr double kMemory = 0.9;  // of the average, at each message
  static constexpr double kMostInOneClaim = 1e6;

  mutable Mutex mutex_;
  double average_ SLUICE_GUARDED_BY(mutex_) = 0;  // 0: none was claimed yet
};

/// A claim whose answer was lost: it may be ours.
struct UnresolvedClaim {
  Candidate candidate;  ///< as it was before
  std::string nonce;    ///< of the claim
  SteadyTime leased_until{};
};

/// The claims of one half of a queue of which nobody knows yet whether they took effect. Within a limit: what does not
/// fit is forgotten, the oldest first. Thread-safe.
class UnresolvedClaims {
 public:
  static constexpr std::size_t kMost = 1'000;

  void remember(UnresolvedClaim claim) {
    const MutexLock lock(mutex_);
    if (claims_.size() == kMost) {
      claims_.pop_front();
    }
    claims_.push_back(std::move(claim));
  }
  /// At most `count`, the oldest first. A suspect comes alone, and only where `suspects` are wanted.
  std::vector<UnresolvedClaim> take(std::size_t count, bool suspects) {
    const MutexLock lock(mutex_);
    std::vector<UnresolvedClaim> taken;
    std::deque<UnresolvedClaim> left;
    for (UnresolvedClaim& claim : claims_) {
      const bool alone = !taken.empty() && taken.front().candidate.suspect();
      const bool fits = taken.size() < count && !alone && (!claim.candidate.suspect() || (suspects && taken.empty()));
      (fits ? taken.emplace_back() : left.emplace_back()) = std::move(claim);
    }
    claims_ = std::move(left);
    return taken;
  }

 private:
  Mutex mutex_;
  std::deque<UnresolvedClaim> claims_ SLUICE_GUARDED_BY(mutex_);
};

/// What is known of one half of a queue, between calls.
struct HalfState {
  explicit HalfState(const table::StoreParts& parts) : backlog(parts.nonces.tag(), parts.random) {}

  HalfBacklog backlog;
  UnresolvedClaims claims;
  table::DoubtfulWrites doubts;
  BodySizes sizes;
  table::OpenTransactions transactions;
};

/// What is known of one queue: how its table holds it, and what its two halves hold. All sides of the queue share it.
/// Thread-safe.
class QueueState {
 public:
  explicit QueueState(std::unique_ptr<const table::RecordLayout> how)
      : layout(std::move(how)), standard_(layout->parts()), dlq_(layout->parts()) {}

  const std::unique_ptr<const table::RecordLayout> layout;

  HalfState& state_of(Half half) { return half == Half::dlq ? dlq_ : standard_; }

  /// Nothing that is known of that message holds any more.
  void forget(const std::string& id) {
    standard_.backlog.forget(id);
    dlq_.backlog.forget(id);
  }
  /// The same, and it may come due then in either half.
  void changed(const std::string& id, WallTime due) {
    forget(id);
    standard_.backlog.expect(due);
    dlq_.backlog.expect(due);
  }
  void put(const StoredMessage& record) {
    forget(record.message.id);
    state_of(record.half).backlog.expect(std::max(record.message.sent_at, record.invisible_until.value_or(WallTime{})));
  }

 private:
  HalfState standard_;
  HalfState dlq_;
};

}  // namespace sluice::queue::dynamomq
