#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "host/queue/operator.hpp"
#include "host/stores/dynamomq/inspector.hpp"
#include "host/stores/dynamomq/outcome_recovery.hpp"

namespace sluice::queue::dynamomq {

/// Edits the content of messages of one queue. Thread-safe.
///
/// The record is read, edited in memory with all of DynamoDB's types, and only the attributes that have become others
/// are written, conditional on the version that was read.
class Editor {
 public:
  static constexpr int kMaxTries = 4;  ///< of an update whose outcome is unknown

  Editor(table::StoreParts parts, const table::QueueTable& place)
      : parts_(parts), place_(place), recovery_(parts.runner, place), inspector_(parts, place) {}

  /// As Operator::edit.
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) const;

 private:
  /// The item as it is after the update; ErrorCode::conflict when its condition does not hold.
  Result<dynamo::Item> write(const dynamo::UpdateItemRequest& update, const WriteTrace& trace, Deadline deadline) const;

  table::StoreParts parts_;
  const table::QueueTable& place_;
  OutcomeRecovery recovery_;
  Inspector inspector_;
};

}  // namespace sluice::queue::dynamomq
