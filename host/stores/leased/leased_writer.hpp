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
void drop_aliases(const table::RecordLayout& layout, std::span<const owned::Out> gone, Deadline deadline);

/// Settles and extends deliveries of one queue half. A removal is one statement of a batch, 1 WCU; a retry or release
/// the same as an update. A dead letter moves to the other half's partition under a new key, with an alias by which its
/// id finds it; that is a transaction, as is what has effects or frees a group.
/// Made for one call. Not thread-safe.
class LeasedWriter final : public table::DeliveryWriter {
 public:
  /// `strict_fence`: what is committed with effects holds only while the shard is in the hands that it went out of. The
  /// queue outlives it.
  LeasedWriter(LeasedQueue& queue, Half half, bool strict_fence = false)
      : DeliveryWriter(*queue.layout, queue.writer(half).doubts, queue.writer(half).transactions),
        half_(half),
        strict_fence_(strict_fence),
        state_(queue.writer(half)) {}

  /// `outs` are the deliveries of an owner, in the order of the others. Empty: they were claimed by call, here or
  /// elsewhere; what is not remembered is looked for.
  std::vector<SettleResult> settle(std::span<const Completion> completions, std::span<const owned::Out> outs,
                                   Deadline deadline);
  /// Whether each claim of an owner was written.
  std::vector<bool> write_claims(std::span<const owned::MessageRecords::ClaimWrite> claims, Deadline deadline);

 private:
  void find(std::span<const Completion> completions, Deadline deadline) override;
  void add_beside(std::size_t index, const Completion& completion, WallTime now,
                  table::DeliveryWrite& write) const override;
  void written(const table::DeliveryWrite& write, SettleResult& result) override;

  /// Finds those that nobody knows the places of.
  void look_up(Deadline deadline);
  void read_moving(Deadline deadline);
  void hold(Lease& lease, const owned::Out& out) const;
  Place place_of(const owned::Out& out) const {
    return {partition_of(place_.queue, half_, out.spot.first), out.spot.second};
  }
  bool has_doubt(const Receipt& receipt, CompletionAction about) const;
  void add_move(table::DeliveryWrite& write, const owned::Out& out, WallTime now) const;

  const Half half_;
  const bool strict_fence_;
  WriterState& state_;
  bool by_call_ = false;                         // so the deliveries were claimed
  std::vector<std::optional<owned::Out>> outs_;  // of each lease; nothing: it is decided
  PlacedItems moving_;
  std::vector<owned::Out> gone_;  // and their aliases are not yet
};

}  // namespace sluice::queue::leased
