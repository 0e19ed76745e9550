#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/owned/message_records.hpp"
#include "host/stores/table/delivery_writer.hpp"

namespace sluice::queue::leased {

/// A message as its record says, for whoever has to know where it lies: out, and counted if its claim was written.
owned::Out out_of(const dynamo::Item& item);

/// Takes away the aliases of messages that are gone. One that leads nowhere does no harm: whoever sends with its id
/// again overwrites it.
void drop_aliases(const table::StoreParts& parts, const table::QueueTable& place, std::span<const owned::Out> gone,
                  Deadline deadline);

/// Settles and extends deliveries of one queue half, each conditional on the version that its record had. A removal is
/// one statement of a batch, 1 WCU; a retry or release the same as an update. A dead letter moves to the other half's
/// partition under a new key, with an alias by which its id finds it; that is a transaction, as is what has effects or
/// frees a group.
/// Made for one call. Not thread-safe.
class LeasedWriter {
 public:
  /// `strict_fence`: what is committed with effects holds only while the shard is in the hands that it went out of. The
  /// queue outlives it.
  LeasedWriter(LeasedQueue& queue, Half half, bool strict_fence = false)
      : parts_(queue.parts),
        place_(queue.place),
        half_(half),
        strict_fence_(strict_fence),
        state_(queue.writer(half)),
        writer_(parts_, place_, kNames, version_of, state_.doubts, state_.transactions) {}

  /// `outs` are the deliveries of an owner, in the order of the others. Empty: they were claimed by call, here or
  /// elsewhere; what is not remembered is looked for.
  std::vector<SettleResult> settle(std::span<const Completion> completions, std::span<const owned::Out> outs,
                                   Deadline deadline);
  /// Of what was claimed by call.
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline);
  /// Whether each claim of an owner was written.
  std::vector<bool> write_claims(std::span<const owned::MessageRecords::ClaimWrite> claims, Deadline deadline);

 private:
  /// One delivery of the call.
  struct Lease {
    const Receipt& receipt;
    std::optional<owned::Out> out;          ///< nothing: it is not known where it lies
    std::optional<SettleResult> decided{};  ///< it is known what becomes of it
    dynamo::Item record{};                  ///< of one that moves
  };

  std::vector<const Receipt*> receipts() const;
  std::optional<owned::Out> recall(const Receipt& receipt) const;
  /// Finds those that nobody knows the places of.
  void look_up(Deadline deadline);
  void read_moving(std::span<const Completion> completions, Deadline deadline);
  bool moves(const Completion& completion) const {
    return completion.action == CompletionAction::dead_letter && half_ == Half::standard;
  }
  Place place_of(const owned::Out& out) const {
    return {partition_of(place_.queue, half_, out.spot.first), out.spot.second};
  }
  bool has_doubt(const Receipt& receipt, CompletionAction about) const;
  table::DeliveryWrite end(const Completion& completion, std::size_t index, std::int64_t version, WallTime now,
                           bool with_failure) const;
  table::DeliveryWrite update(std::size_t index, std::int64_t version, WallTime now,
                              const core::StateChange& change) const;
  void add_move(table::DeliveryWrite& write, const Lease& lease, const core::StateChange& change, WallTime now) const;

  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  const Half half_;
  const bool strict_fence_;
  WriterState& state_;
  table::DeliveryWriter writer_;
  std::vector<Lease> leases_;
};

}  // namespace sluice::queue::leased
