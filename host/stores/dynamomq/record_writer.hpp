#pragma once

#include <span>
#include <vector>

#include "host/queue/operator.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/dynamomq/outcome_recovery.hpp"
#include "host/stores/dynamomq/record_changes.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Writes whole records into one queue, for those who copy queues. Thread-safe.
///
/// An insert whose answer was lost is repeated, and recognised by its nonce where the repeat finds the id taken. A
/// replacement is repeated without a question: it leaves the same record however often it is made.
class RecordWriter {
 public:
  static constexpr int kMaxTries = 4;  ///< of a replacement whose outcome is unknown

  RecordWriter(table::StoreParts parts, const table::QueueTable& place)
      : parts_(parts), place_(place), build_(place.table) {}

  /// As Operator::put.
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) const;

 private:
  struct Draft;

  std::vector<Draft> draft(std::span<const StoredMessage> records, std::vector<PutResult>& results) const;
  void insert(const std::vector<Draft>& drafts, std::vector<PutResult>& results, Deadline deadline) const;
  void replace(std::span<const Draft> drafts, std::vector<PutResult>& results, Deadline deadline) const;
  void replace_batch(std::span<const Draft> drafts, std::vector<PutResult>& results, Deadline deadline) const;

  table::StoreParts parts_;
  const table::QueueTable& place_;
  WriteBuilder build_;
};

}  // namespace sluice::queue::dynamomq
