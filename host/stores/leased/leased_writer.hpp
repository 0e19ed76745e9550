#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/table/delivery_writer.hpp"

namespace sluice::queue::leased {

/// What whoever handed a delivery out remembers of its record, so that its end costs no read. A value.
struct Held {
  /// Of a record as it stands, whose next delivery is not counted yet.
  static Held of(const Candidate& record);
  /// Its claim has been written.
  void claimed(std::uint32_t attempt, bool suspect);

  Place place;
  std::int64_t version = 1;
  std::uint32_t receive_count = 0;  ///< as the record says
  /// The record counts this delivery already: it was claimed by a write. False: it is counted when its end is written.
  bool counted = false;
  Marks marks = 0;                    ///< as the record has them
  bool aliased = false;               ///< its id does not say where it lies, so that an alias does
  std::string held_group{};           ///< that waits for this dead letter; empty: none
  std::optional<OwnerFence> fence{};  ///< where the queue is strict, of what is committed with effects
};

/// A message that was taken away, and what its record said.
struct Gone {
  std::string id;
  Held held;
};
/// Takes away what goes with them. An alias that leads nowhere does no harm: whoever sends with its id again overwrites
/// it.
void drop_companions(const table::StoreParts& parts, const table::QueueTable& place, std::span<const Gone> gone,
                     Deadline deadline);

/// Settles and extends deliveries of one queue half, each conditional on the version that its record had. A removal is
/// one statement of a batch, 1 WCU; a retry or release the same as an update. A dead letter moves to the other half's
/// partition under a new key, with an alias by which its id finds it; that is a transaction, as is what has effects.
/// Made for one call. Not thread-safe.
class LeasedWriter {
 public:
  /// The queue outlives it.
  LeasedWriter(LeasedQueue& queue, Half half)
      : parts_(queue.parts),
        place_(queue.place),
        half_(half),
        state_(queue.writer(half)),
        writer_(parts_, place_, {attribute::kNonce, [](const dynamo::Item& item) { return version_of(item).number; }},
                state_.doubts, state_.transactions) {}

  /// One of `held` for each completion, in their order; nothing: nobody knows where it lies, and it is looked for.
  std::vector<SettleResult> settle(std::span<const Completion> completions, std::span<const std::optional<Held>> held,
                                   Deadline deadline);

  /// `held` is brought up to date where an extension was applied.
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, std::span<std::optional<Held>> held,
                                   Duration visibility, Deadline deadline);

 private:
  /// One delivery of the call.
  struct Lease {
    const Receipt& receipt;
    std::optional<Held> held;               ///< nothing: it is not known where it lies
    std::optional<SettleResult> decided{};  ///< it is known what becomes of it
    bool tried = false;                     ///< an earlier call may have made a dead letter of it
    dynamo::Item record{};                  ///< of one that moves
  };

  /// Finds those that nobody knows the places of.
  void look_up(Deadline deadline);
  void read_moving(std::span<const Completion> completions, Deadline deadline);
  bool moves(const Completion& completion) const {
    return completion.action == CompletionAction::dead_letter && half_ == Half::standard;
  }
  bool has_doubt(const Receipt& receipt, CompletionAction about) const;
  /// The record is as an earlier call has left it that had no answer, and that let the delivery go on.
  bool went_on(const Receipt& receipt, const dynamo::Item& record) const;
  table::DeliveryWrite end(const Completion& completion, std::size_t index, std::int64_t version, WallTime now,
                           bool with_failure) const;
  void add_move(table::DeliveryWrite& write, const Lease& lease, const core::StateChange& change, WallTime now) const;
  /// Whether an earlier call, whose answer was lost, has made a dead letter of it.
  bool has_moved(const Lease& lease, Deadline deadline) const;

  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  const Half half_;
  WriterState& state_;
  table::DeliveryWriter writer_;
  std::vector<Lease> leases_;
};

}  // namespace sluice::queue::leased
