#pragma once

#include <span>
#include <vector>

#include "host/queue/completion.hpp"
#include "host/stores/dynamomq/lane.hpp"
#include "host/stores/dynamomq/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Settles and extends deliveries of one queue half, each conditional on the version that its receipt names.
/// Thread-safe.
///
/// A write whose outcome is unknown is repeated; when the repeat is refused, the record's nonce tells whether the first
/// try had taken effect.
/// Made for one call. Not thread-safe.
class CompletionWriter {
 public:
  CompletionWriter(StoreParts parts, const QueueTable& place, QueueType type, Lane& lane)
      : parts_(parts), place_(place), type_(type), lane_(lane), build_(place.table) {}

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline);
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline);

 private:
  struct Write;

  void find_sent_times(const std::vector<const Receipt*>& receipts, Deadline deadline);
  Write write_of(const Completion& completion, std::optional<std::string> sent_at, WallTime now, bool with_failure);
  std::vector<SettleResult> perform(std::span<const Write> writes, Deadline deadline);
  void recognise_own(std::span<const Write> writes, const std::vector<StatementOutcome>& outcomes,
                     std::vector<SettleResult>& results, Deadline deadline);
  void retry_without_failure(std::span<const Completion> completions, WallTime now, std::vector<SettleResult>& results,
                             Deadline deadline);
  void note_in_lane(const Completion& completion, const SettleResult& result, WallTime now);

  StoreParts parts_;
  const QueueTable& place_;
  QueueType type_;
  Lane& lane_;
  StatementBuilder build_;
  /// Of each receipt of the call; nothing: the version alone has to do.
  std::vector<std::optional<std::string>> sent_times_;
};

}  // namespace sluice::queue::dynamomq
