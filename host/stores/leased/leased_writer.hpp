#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_writes.hpp"
#include "host/stores/table/writer_memory.hpp"
#include "host/stores/table/transaction_writer.hpp"
#include "host/stores/table/statement_runner.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::leased {

/// What whoever handed a delivery out remembers of its record, so that its end costs no read. A value.
struct Held {
  Place place;
  std::int64_t version = 1;
  std::uint32_t receive_count = 0;  ///< as the record says
  /// The record counts this delivery already: it was claimed by a write. False: it is counted when its end is written.
  bool counted = false;
  bool marked = false;                ///< the record says that it is a suspect
  bool aliased = false;               ///< its id does not say where it lies, so that an alias does
  std::string held_group{};           ///< that waits for this dead letter; empty: none
  std::optional<OwnerFence> fence{};  ///< where the queue is strict, of what is committed with effects

  /// Of a record that a write has claimed.
  static Held of(const table::FoundRecord& found);
};

/// What an end comes to. The receive count is named where the record has another one.
core::StateChange end_of(const Completion& completion, const Held& held, WallTime now);

/// What is remembered of one half of a queue between the writes that settle its messages. Thread-safe.
struct WriterState {
  table::DoubtfulWrites doubts;
  table::FailureMemory failures;
  table::OpenTransactions transactions;

  /// Adds the failures before this one to a failure that is to be written.
  void remember(const Receipt& receipt, core::StateChange& change) const;
};

/// Settles and extends deliveries of one queue half, each conditional on the version that its record had. A removal is
/// one statement of a batch, 1 WCU; a retry or release the same as an update. A dead letter moves to another partition
/// and is a transaction. One whose outcome is unknown is recognised by the nonce that it leaves, in later calls too.
/// Made for one call. Not thread-safe.
class LeasedWriter {
 public:
  LeasedWriter(table::StoreParts parts, const table::QueueTable& place, Half half, WriterState& state)
      : parts_(parts), place_(place), half_(half), state_(state) {}

  /// One of `held` for each completion, in their order; nothing: nobody knows where it lies, and it is looked for.
  std::vector<SettleResult> settle(std::span<const Completion> completions, std::span<const std::optional<Held>> held,
                                   Deadline deadline);

  /// `held` is brought up to date where an extension was applied.
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, std::span<std::optional<Held>> held,
                                   Duration visibility, Deadline deadline);

 private:
  struct Write;
  /// Makes a write anew, for a record of that version.
  using Rewrite = std::function<Write(const Write& before, std::int64_t version)>;

  void look_up(std::span<const Receipt* const> receipts, std::span<std::optional<Held>> held,
               std::vector<std::optional<SettleResult>>& known, Deadline deadline);
  Write end_write(const Completion& completion, const Held& held, std::int64_t version, WallTime now,
                  bool with_failure);
  Write update(const Receipt& receipt, const Held& held, std::int64_t version, WallTime now,
               table::RecordChange change);
  void commit(std::vector<Write>& writes, const Rewrite& rewrite, Deadline deadline);
  void perform(std::span<Write> writes, Deadline deadline);
  void build_upon_own(std::vector<Write>& writes, const Rewrite& rewrite, Deadline deadline);
  void settle_plainly(std::span<const Completion> completions, std::span<const std::optional<Held>> held,
                      std::vector<std::optional<SettleResult>>& results, Deadline deadline);
  void drop_companions(std::span<const Completion> completions, std::span<const std::optional<Held>> held,
                       std::span<const std::optional<SettleResult>> results, Deadline deadline);
  SettleResult result_of(const table::StatementOutcome& outcome) const;
  bool is_plain(const Completion& completion) const;

  table::StoreParts parts_;
  const table::QueueTable& place_;
  const Half half_;
  WriterState& state_;
};

}  // namespace sluice::queue::leased
