#pragma once

#include <functional>
#include <string>

#include "host/queue/dynamomq/inspector.hpp"

namespace sluice::queue::dynamomq {

/// Changes single messages of one queue for operators, and empties its halves. Thread-safe.
class Editor {
 public:
  static constexpr int kMaxRaces = 5;  ///< lost in a row against others who change the same message

  Editor(StoreParts parts, const QueueTable& place)
      : parts_(parts), place_(place), inspector_(parts, place), build_(place.table) {}

  Result<StoredMessage> edit(const StoredMessage& expected, const NewMessage& content, Deadline deadline);
  Result<void> remove(const std::string& id, Deadline deadline);
  Result<void> dead_letter(const std::string& id, const Failure& failure, Deadline deadline);
  Result<void> redrive(const std::string& id, Deadline deadline);
  Result<BulkResult> purge(QueueType type, const BulkProgress& progress, Deadline deadline);

 private:
  /// Writes one conditional change; ErrorCode::conflict when the condition does not hold.
  Result<dynamo::Item> write(const Expected& expected, const RecordChange& change, Deadline deadline);
  bool is_own_write(const std::string& id, std::string_view nonce, Deadline deadline);

  StoreParts parts_;
  const QueueTable& place_;
  Inspector inspector_;
  StatementBuilder build_;
};

}  // namespace sluice::queue::dynamomq
