#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "host/queue/source.hpp"
#include "host/stores/dynamomq/outcome_recovery.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/dynamomq/record_changes.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Settles and extends deliveries of one queue half, each conditional on the version that its receipt names.
///
/// A write whose outcome stays unknown is remembered: when a later call about the same receipt is refused, the nonce on
/// the record tells whether that was our own doing. An extension that had taken effect is built upon, a completion that
/// had is reported as applied.
/// Made for one call. Not thread-safe.
class CompletionWriter {
 public:
  CompletionWriter(table::StoreParts parts, const table::QueueTable& place, Half half, HalfState& state)
      : parts_(parts), half_(half), state_(state), place_(place), recovery_(parts.runner, place), build_(place.table) {}

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline);
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline);

 private:
  struct Write;
  /// Makes the write of the n-th receipt anew, for a record of that version.
  using Rewrite = std::function<Write(std::size_t, std::int64_t)>;

  void find_sent_times(const std::vector<const Receipt*>& receipts, Deadline deadline);
  Write write_of(const Completion& completion, std::size_t place, std::int64_t version, WallTime now,
                 bool with_failure);
  Write update(const Receipt& receipt, std::size_t place, std::int64_t version, WallTime now,
               const table::RecordChange& change);
  std::vector<table::StatementOutcome> commit(std::vector<Write>& writes, const Rewrite& rewrite, Deadline deadline);
  std::vector<table::StatementOutcome> perform(std::span<const Write> writes, Deadline deadline);
  void perform_transactions(std::span<const Write> writes, std::vector<table::StatementOutcome>& outcomes,
                            Deadline deadline);
  void build_upon_own(std::vector<Write>& writes, std::vector<table::StatementOutcome>& outcomes,
                      const Rewrite& rewrite, Deadline deadline);
  void settle_without_failure(std::span<const Completion> completions, WallTime now, std::vector<Write>& writes,
                              std::vector<table::StatementOutcome>& outcomes, Deadline deadline);
  SettleResult result_of(const table::StatementOutcome& outcome) const;
  SettleResult result_of(const Completion& completion, const table::StatementOutcome& outcome) const;
  void note_in_lane(const Completion& completion, const Write& write, const SettleResult& result);

  table::StoreParts parts_;
  Half half_;
  HalfState& state_;
  const table::QueueTable& place_;
  OutcomeRecovery recovery_;
  WriteBuilder build_;
  std::map<const Receipt*, SettleResult> refusals_;  ///< of the effects of completions
  std::set<const Receipt*> never_applied_;           ///< as TransactionWriter::Outcome's
  // Of each receipt of the call.
  std::vector<std::optional<std::string>> sent_times_;  // nothing: the version alone has to do
  std::vector<std::optional<dynamo::Error>> unread_;    // why that could not be found out
};

}  // namespace sluice::queue::dynamomq
