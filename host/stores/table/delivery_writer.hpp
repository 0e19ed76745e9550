#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/transaction_writer.hpp"
#include "host/stores/table/writer_memory.hpp"

namespace sluice::queue::table {

/// Settles and extends deliveries of one half of a queue, each conditional on the version that its receipt names, and
/// finds out what became of the writes. The layout says where the messages lie, and what goes with their ends.
///
/// A write leaves a nonce, by which it is recognised when its answer was lost. One whose outcome stays unknown is
/// remembered: when a later call about the same receipt is refused, the nonce on the record tells whether that was our
/// own doing. An extension that had taken effect is built upon, a completion that had is reported as applied. A record
/// that has no room for the reason of its failure is written without it. Made for one call. Not thread-safe.
class DeliveryWriter : boost::noncopyable {
 public:
  virtual ~DeliveryWriter() = default;

  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline);

 protected:
  /// Makes the write about the n-th lease, for a record of that version.
  using Rewrite = std::function<DeliveryWrite(std::size_t index, std::int64_t version, bool with_failure)>;
  /// What is known of the message of a receipt.
  struct Lease {
    const Receipt* receipt = nullptr;
    Expected record{};                      ///< as it is at the receipt's version
    core::MessageState state{};             ///< with this delivery in its receive count
    bool counted = true;                    ///< the record has this delivery in its receive count, too
    bool moves = false;                     ///< its end takes the record away, and puts it elsewhere
    std::optional<SettleResult> decided{};  ///< what becomes of it; nothing is written then
  };

  DeliveryWriter(const RecordLayout& layout, DoubtfulWrites& doubts, OpenTransactions& transactions)
      : layout_(layout),
        parts_(layout.parts()),
        place_(layout.place()),
        names_(layout.names()),
        doubts_(doubts),
        transactions_(transactions) {}

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline);

  /// Fills in what is known of each lease. `completions`: how they end; empty: they are extended.
  virtual void find(std::span<const Completion> completions, Deadline deadline) = 0;
  /// Adds what goes with the end of the n-th delivery, in one transaction.
  virtual void add_beside(std::size_t /*index*/, const Completion& /*completion*/, WallTime /*now*/,
                          DeliveryWrite& /*write*/) const {}
  /// Told what became of each completion or extension.
  virtual void written(const DeliveryWrite& write, SettleResult& result) = 0;

  DeliveryWrite update(const Lease& lease, std::int64_t version, WallTime now, core::StateChange change) const;
  /// One write about each lease, with what became of it. One that cannot be made as it was is made anew.
  std::vector<DeliveryWrite> commit(const Rewrite& write_of, Deadline deadline);

  const RecordLayout& layout_;
  const StoreParts& parts_;
  const QueueTable& place_;
  std::vector<Lease> leases_;  // of the call

 private:
  DeliveryWrite end(const Completion& completion, std::size_t index, std::int64_t version, WallTime now,
                    bool with_failure) const;
  SettleResult result_of(const DeliveryWrite& write) const;
  SettleResult conclude(const DeliveryWrite& write);
  void make(std::vector<DeliveryWrite>& writes, const Rewrite& rewrite, bool with_failure, Deadline deadline);
  void perform(std::span<DeliveryWrite> writes, Deadline deadline);
  /// Tells by one consistent read what became of writes in doubt, and whether refused ones have met what an earlier
  /// call wrote. Upon that they are made anew, once, where it let the delivery go on. An empty `rewrite`: only what is
  /// in doubt.
  void look_into(std::span<DeliveryWrite> writes, const Rewrite& rewrite, bool with_failure, Deadline deadline);

  const LayoutNames& names_;
  DoubtfulWrites& doubts_;
  OpenTransactions& transactions_;
};

}  // namespace sluice::queue::table
