#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "dynamo/client.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/source.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"
#include "host/stores/table/writer_memory.hpp"

namespace sluice::queue::table {

/// One conditional write about a delivery, and what became of it.
struct DeliveryWrite {
  std::size_t index = 0;  ///< of the completion or receipt in its call
  const Receipt* receipt = nullptr;
  RecordWrite record;                            ///< moved away when the write is made
  std::string nonce{};                           ///< that it leaves; a removal leaves none
  std::optional<CompletionAction> action{};      ///< nothing: the delivery goes on as it was
  core::StateChange change{};                    ///< what it makes of its message
  bool keeps = false;                            ///< it stores a checkpoint
  const Completion* in_transaction = nullptr;    ///< its effects are committed with it, in one transaction
  std::vector<dynamo::TransactAction> beside{};  ///< what else of the store that transaction writes

  StatementOutcome outcome{};
  /// What became of it for another reason than its own outcome: its effects, or what is known before it is made, which
  /// it is not then.
  std::optional<SettleResult> decided{};
  /// Of a transaction that was refused: DynamoDB has said of the same token that no try before has taken effect.
  bool never_applied = false;

  /// What this completion does, and what else is committed with it.
  void carries(const Completion& completion) {
    keeps = completion.action == CompletionAction::keep;
    in_transaction = completion.effects ? &completion : nullptr;
    // Progress alone may be stored again whatever became of it before.
    action = keeps && !completion.effects ? std::nullopt : std::optional(completion.action);
  }

  bool removes() const { return nonce.empty(); }
  /// The delivery is at its end with it.
  bool ends() const { return action && !keeps; }
  std::int64_t before() const { return before_; }
  /// The version that it leaves.
  std::int64_t version() const { return VersionMark::number_of(before_).next(); }

 private:
  friend class DeliveryWriter;

  dynamo::Item key_;         // of its record
  std::int64_t before_ = 0;  // the version that it is conditional on
};

/// Writes completions that carry effects: each is one TransactWriteItems, whose first action is the write of the
/// message's own record with its fence, followed by the key, the handler's writes, and the messages with their marks. A
/// message that turns out to be a duplicate of one sent before is left out, and the rest is made without it.
///
/// Each has a token. One whose outcome stayed unknown is kept, and made again to the letter when the completion is
/// repeated, so that DynamoDB itself says for ten minutes what became of it. After that, or in another process, the
/// fence decides: what took effect has taken the message away.
/// Sets what became of each; where its effects cannot be committed, what was decided.
void commit_transactions(const RecordLayout& layout, OpenTransactions& open, std::span<DeliveryWrite* const> writes,
                         Deadline deadline);

}  // namespace sluice::queue::table
