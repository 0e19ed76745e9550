#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "host/queue/source.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/transaction_writer.hpp"
#include "host/stores/table/writer_memory.hpp"

namespace sluice::queue::table {

/// Makes the writes that end deliveries or extend their leases, and finds out what became of them, whatever the layout.
///
/// A write leaves a nonce, by which it is recognised when its answer was lost. One whose outcome stays unknown is
/// remembered: when a later call about the same receipt is refused, the nonce on the record tells whether that was our
/// own doing. An extension that had taken effect is built upon, a completion that had is reported as applied. A record
/// that has no room for the reason of its failure is written without it. Made for one call. Not thread-safe.
class DeliveryWriter {
 public:
  /// That of a record, as its layout spells it.
  using VersionOf = VersionMark (*)(const dynamo::Item& record);
  using Receipts = std::span<const Receipt* const>;
  /// Makes the write about the n-th receipt, for a record of that version.
  using Rewrite = std::function<DeliveryWrite(std::size_t index, std::int64_t version, bool with_failure)>;

  DeliveryWriter(StoreParts parts, const QueueTable& place, const LayoutNames& names, VersionOf version_of,
                 DoubtfulWrites& doubts, OpenTransactions& transactions)
      : parts_(parts),
        place_(place),
        names_(names),
        version_of_(version_of),
        doubts_(doubts),
        transactions_(transactions) {}

  /// One write about each receipt, with what became of it. One that cannot be made as it was is made anew.
  std::vector<DeliveryWrite> commit(Receipts receipts, const Rewrite& write_of, Deadline deadline);
  /// Extends these leases, until `leased_until` on this machine's clock.
  std::vector<ExtendResult> extend(Receipts receipts, SteadyTime leased_until, const Rewrite& write_of,
                                   Deadline deadline);
  SettleResult result_of(const DeliveryWrite& write) const;

 private:
  void make(std::vector<DeliveryWrite>& writes, const Rewrite& rewrite, bool with_failure, Deadline deadline);
  void perform(std::span<DeliveryWrite> writes, Deadline deadline);
  /// Tells by one consistent read what became of writes in doubt, and whether refused ones have met what an earlier
  /// call wrote. Upon that they are made anew, once, where it let the delivery go on. An empty `rewrite`: only what is
  /// in doubt.
  void look_into(std::span<DeliveryWrite> writes, const Rewrite& rewrite, bool with_failure, Deadline deadline);

  const StoreParts parts_;
  const QueueTable& place_;
  const LayoutNames& names_;
  const VersionOf version_of_;
  DoubtfulWrites& doubts_;
  OpenTransactions& transactions_;
};

}  // namespace sluice::queue::table
