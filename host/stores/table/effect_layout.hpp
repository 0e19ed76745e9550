#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/transaction.hpp"
#include "host/queue/effects.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {

/// How the table of one queue holds what a transaction brings to it: messages, the marks of what was sent, idempotency
/// keys. One for each layout on DynamoDB, so that a completion may send to a queue of another one. Thread-safe.
class EffectLayout {
 public:
  EffectLayout() = default;
  EffectLayout(const EffectLayout&) = delete;
  EffectLayout& operator=(const EffectLayout&) = delete;
  virtual ~EffectLayout() = default;

  virtual const QueueTable& place() const = 0;
  /// What its marks are told apart by: two queues of one scope have them in common.
  virtual std::string scope() const = 0;

  /// The actions that put a message, itself first; ErrorCode::invalid where it cannot be stored. `token` is that of its
  /// unique key, and empty without one.
  virtual Result<std::vector<dynamo::TransactAction>> put(const EmittedMessage& emitted, const std::string& token,
                                                          WallTime now) const = 0;
  /// Puts the mark of a deduplication id whose window is over, or which has none.
  virtual dynamo::TransactAction dedup_mark(const NewMessage& message, const std::string& token,
                                            WallTime now) const = 0;
  /// Puts the mark of a unique key in the place of the one with token `before`; empty: in the place of none.
  virtual dynamo::TransactAction unique_mark(const NewMessage& message, const std::string& token,
                                             const std::string& before, WallTime now) const = 0;
  /// Puts down that a key is done, in place of its owner's mark.
  virtual dynamo::TransactAction key_record(const KeyRecord& record, const std::string& owner, WallTime now) const = 0;

  /// What was sent before with the keys of a message, where it has such.
  struct SentBefore {
    Mark dedup;
    Mark unique;
    bool held = false;  ///< the message that the unique mark names has the key still
  };
  /// A consistent look at them; in the order of the messages.
  virtual dynamo::Result<std::vector<SentBefore>> look(std::span<const NewMessage* const> messages,
                                                       Deadline deadline) const = 0;
};

}  // namespace sluice::queue::table
