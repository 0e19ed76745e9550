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

/// A completion that carries effects.
struct WantedTransaction {
  const Completion* completion;
  std::vector<dynamo::TransactAction> own;  ///< the writes of the message's own records, its fence first
};
struct TransactionOutcome {
  StatementOutcome outcome;
  /// The effects cannot be committed: what to say of it. `outcome` is StatementFate::failed then.
  std::optional<SettleResult> refused;
  /// Of StatementFate::refused: DynamoDB has said of the same token that no try before has taken effect.
  bool never_applied = false;
  /// A message of it may be a duplicate of one that was sent before: it has to be left out.
  bool met_mark = false;
};

/// Writes completions that carry effects: each is one TransactWriteItems, whose first action is the write of the
/// message's own record with its fence, followed by the key, the handler's writes, and the messages with their marks. A
/// message that turns out to be a duplicate of one sent before is left out, and the rest is made without it.
///
/// Its token is made of queue, message, version and all that it writes. One whose outcome stayed unknown is kept, and
/// made again to the letter when the completion is repeated, so that DynamoDB itself says for ten minutes what became
/// of it. After that, or in another process, the fence decides: what took effect has taken the message away.
std::vector<TransactionOutcome> commit_transactions(const StoreParts& parts, const QueueTable& place,
                                                    OpenTransactions& open, std::span<const WantedTransaction> wanted,
                                                    Deadline deadline);

}  // namespace sluice::queue::table
