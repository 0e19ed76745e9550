#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/leased_writer.hpp"
#include "host/stores/owned/priority_scheduler.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::leased {

/// What leased sources can do, whether they own shards or borrow.
inline constexpr SourceTraits kLeasedTraits{.lease_per_delivery = false,
                                            .attempts_at_claim = false,
                                            .groups = true,
                                            .sequence = true,
                                            .priorities = true,
                                            .transactions = true};

/// A message that was read and may be claimed.
struct DirectCandidate {
  std::uint32_t shard = 0;
  Candidate candidate;
  dynamo::Item item;

  owned::Spot spot() const { return {shard, candidate.place.sort}; }
  core::MessageState state() const { return candidate.state(Half::standard); }
};

/// Decides which of the messages that were read are claimed next: by priority, in turns by group, in order where that
/// is asked for. Remembers nothing of messages, only whose turn it was. Not thread-safe.
class DirectChoice {
 public:
  static constexpr std::size_t kGroupsRemembered = 10'000;

  struct Asked {
    const ClaimRequest& request;
    bool ordered = false;          ///< somebody wants the groups of this half in order
    std::set<std::string> held{};  ///< groups that wait for an operator
    WallTime now{};
  };
  struct Choice {
    std::vector<DirectCandidate*> chosen;  ///< a suspect comes alone
    std::optional<Duration> next_due;      ///< until the next one of those that were read comes due
  };
  Choice choose(std::vector<DirectCandidate>& found, const Asked& asked);

 private:
  struct Line {
    std::vector<DirectCandidate*> waiting;  ///< in their order, the last one first
    bool busy = false;
  };
  std::string line_of(const DirectCandidate& one, const Asked& asked) const;
  void offer(DirectCandidate& one, WallTime at);
  void offer_next(const std::string& name, Line& line, const Asked& asked);

  owned::PriorityScheduler turns_;
  std::map<std::string, WallTime> served_;
  std::deque<std::string> served_order_;
  // Of the choice that is being made.
  std::map<owned::Spot, DirectCandidate*> offered_;
  WallTime last_served_{};
};

/// How many shards there may be messages in.
using ShardsInUse = std::function<Result<std::uint32_t>(Deadline)>;

/// Claims for those who own no shard: a command, a client, anybody who takes a message now and then. Each claim is
/// written, so that its lease is a promise of the record's and every end is known; it takes messages only from shards
/// that no host owns, and the same transaction makes sure of that. Costs 2 WCU and the share of the check a message;
/// whoever works on a queue all the time starts its source, and owns.
///
/// Settles and extends whatever it is given a receipt for, its own or another process's. Thread-safe.
class DirectClaimer final : public Source {
 public:
  static constexpr int kMaxRounds = 4;
  static constexpr std::size_t kMostInTransaction = 99;  ///< beside the check of the owner
  static constexpr std::size_t kHeldRemembered = 10'000;

  DirectClaimer(table::StoreParts parts, const table::QueueTable& place, Half half, WriterState& state,
                ShardsInUse shards)
      : parts_(parts), place_(place), half_(half), state_(state), shards_(std::move(shards)) {}

  const SourceTraits& traits() const override { return kLeasedTraits; }
  void start(SourceEvents /*events*/) override {}
  void stop() override {}
  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override;
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override;

 private:
  struct Shard {
    std::uint32_t number = 0;
    std::optional<std::int64_t> epoch;  ///< of its ownership item; nothing: there is none
  };
  struct Ownerships {
    std::vector<Shard> free;
    bool ordered = false;
  };
  struct Attempt;

  dynamo::Result<Ownerships> look(std::uint32_t shards, Deadline deadline) const;
  dynamo::Result<void> read(const Shard& shard, const ClaimRequest& request, bool in_turns,
                            std::vector<DirectCandidate>& found, Deadline deadline) const;
  /// One look and what it brings. False: some of what was chosen has gone to somebody else.
  Result<bool> claim_once(std::uint32_t shards, const ClaimRequest& request, Attempt& attempt, Deadline deadline);
  /// False: some of them have gone to somebody else, or cannot be claimed.
  bool claim_of_shard(const Shard& shard, std::vector<DirectCandidate*> wanted, const ClaimRequest& request,
                      Attempt& attempt, Deadline deadline);
  Delivery deliver(const DirectCandidate& one, const ClaimRequest& request, table::Moment now, WallTime until);
  void remember(const Receipt& receipt, Held held);
  std::optional<Held> recall(const Receipt& receipt);

  // Fixed after construction.
  using HeldKey = std::tuple<std::string, std::int64_t, std::int64_t>;  ///< a receipt's id, version and locator

  const table::StoreParts parts_;
  const table::QueueTable& place_;
  const Half half_;
  WriterState& state_;
  const ShardsInUse shards_;

  Mutex mutex_;
  // Guarded by mutex_.
  DirectChoice choice_ SLUICE_GUARDED_BY(mutex_);
  std::map<HeldKey, Held> held_ SLUICE_GUARDED_BY(mutex_);
  std::deque<HeldKey> held_order_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::leased
