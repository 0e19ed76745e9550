#pragma once

#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/transaction.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_writer.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/transaction_writer.hpp"

namespace sluice::queue::leased {

/// Commits completions that write more than one item: those with effects, and dead letters, which move to the other
/// half's partition under a new key, with an alias by which their ids find them. All of one completion or nothing.
/// Made for one call. Not thread-safe.
class LeasedTransactions {
 public:
  LeasedTransactions(table::StoreParts parts, const table::QueueTable& place, Half half, WriterState& state)
      : parts_(parts), place_(place), half_(half), state_(state) {}

  struct Wanted {
    const Completion* completion;
    const Held* held;
  };
  std::vector<SettleResult> settle(std::span<const Wanted> wanted, Deadline deadline);

 private:
  using Actions = std::vector<dynamo::TransactAction>;

  /// A completion whose record was read where it has to be.
  struct Ready {
    std::size_t index;
    const Wanted* wanted;
    const dynamo::Item* record;  ///< of one that moves
  };

  Actions actions_of(const Wanted& wanted, const dynamo::Item* record, WallTime now, bool with_failure) const;
  void add_move(Actions& actions, const Wanted& wanted, const core::StateChange& change, const dynamo::Item& record,
                WallTime now) const;
  /// Returns those that have no room for their failure.
  std::vector<Ready> write(std::span<const Ready> ready, bool with_failure, std::vector<SettleResult>& results,
                           Deadline deadline);
  SettleResult result_of(const Wanted& wanted, table::TransactionWriter::Outcome& made, Deadline deadline);
  bool is_own_doing(const Wanted& wanted, Deadline deadline) const;

  table::StoreParts parts_;
  const table::QueueTable& place_;
  const Half half_;
  WriterState& state_;
};

}  // namespace sluice::queue::leased
