#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "host/queue/operator.hpp"
#include "host/stores/leased/leased_inspector.hpp"

namespace sluice::queue::leased {

/// Edits the content of messages of one queue. Thread-safe.
///
/// The record is read, edited in memory, and written again as a whole if it is still of that version, 1 write unit for
/// each KB. Another priority, or another group in another shard, is another key: a transaction.
class LeasedEditor {
 public:
  static constexpr int kMaxTries = 4;  ///< of a write whose outcome is unknown

  LeasedEditor(LeasedParts parts, LeasedQueue& queue) : parts_(parts), queue_(queue), inspector_(parts, queue) {}

  /// As Operator::edit.
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) const;

 private:
  Result<dynamo::Item> edited(const dynamo::Item& before, const std::string& id, std::span<const ContentEdit> edits,
                              Deadline deadline) const;
  Result<Place> place_for(const dynamo::Item& before, const Message& was, const Message& is, Deadline deadline) const;
  Result<StoredMessage> write(const dynamo::Item& before, const dynamo::Item& after, Deadline deadline) const;
  /// One try; the client's error.
  std::optional<dynamo::Error> put(const dynamo::Item& before, const dynamo::Item& after, Deadline deadline) const;

  LeasedParts parts_;
  LeasedQueue& queue_;
  LeasedInspector inspector_;
};

}  // namespace sluice::queue::leased
