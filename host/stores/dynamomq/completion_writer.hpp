#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/queue/source.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/record_changes.hpp"
#include "host/stores/table/delivery_writer.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Settles and extends deliveries of one queue half, each conditional on the version that its receipt names, and on the
/// time at which its message was sent. Made for one call. Not thread-safe.
class CompletionWriter {
 public:
  CompletionWriter(table::StoreParts parts, const table::QueueTable& place, Half half, HalfState& state)
      : parts_(parts),
        half_(half),
        state_(state),
        place_(place),
        build_(place.table),
        writer_(parts, place, {attribute::kNonce, [](const dynamo::Item& item) { return version_of(item).number; }},
                state.doubts, state.transactions) {}

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline);
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline);

 private:
  void find_sent_times(const std::vector<const Receipt*>& receipts, Deadline deadline);
  table::DeliveryWrite end(const Completion& completion, std::size_t index, std::int64_t version, WallTime now,
                           bool with_failure);
  table::DeliveryWrite update(const Receipt& receipt, std::size_t index, std::int64_t version, WallTime now,
                              const table::RecordChange& change);
  void note_in_lane(const Completion& completion, std::int64_t version, WallTime now, SettleStatus status);

  table::StoreParts parts_;
  Half half_;
  HalfState& state_;
  const table::QueueTable& place_;
  WriteBuilder build_;
  table::DeliveryWriter writer_;
  // Of each receipt of the call.
  std::vector<std::optional<std::string>> sent_times_;  // nothing: the version alone has to do
  std::vector<std::optional<dynamo::Error>> unread_;    // why that could not be found out
};

}  // namespace sluice::queue::dynamomq
