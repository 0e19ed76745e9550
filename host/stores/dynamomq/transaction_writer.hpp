#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/client.hpp"
#include "host/queue/completion.hpp"
#include "host/queue/effects.hpp"
#include "host/stores/dynamomq/open_transactions.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/dynamomq/statement_runner.hpp"
#include "host/stores/dynamomq/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Writes completions that carry effects: each is one TransactWriteItems, whose first action is the write of the
/// message's own record with its fence, followed by the messages, the handler's writes and the key.
///
/// Its token is made of queue, message, version and all that it writes. One whose outcome stayed unknown is kept, and
/// made again to the letter when the completion is repeated, so that DynamoDB itself says for ten minutes what became
/// of it. After that, or in another process, the fence decides: what took effect has taken the message away. Made for
/// one call. Not thread-safe.
class TransactionWriter {
 public:
  static constexpr std::size_t kMaxAtOnce = 100;  ///< the transport has fewer under way at a time

  TransactionWriter(StoreParts parts, const QueueTable& place, OpenTransactions& open)
      : parts_(parts), place_(place), open_(open) {}

  struct Wanted {
    const Completion* completion;
    const RecordWrite* record;  ///< the write of the message's own record
  };
  struct Outcome {
    StatementOutcome outcome;
    /// The effects cannot be committed: what to say of it. `outcome` is StatementFate::failed then.
    std::optional<SettleResult> refused;
    /// Of StatementFate::refused: DynamoDB has said of the same token that no try before has taken effect.
    bool never_applied = false;
  };
  std::vector<Outcome> write(std::span<const Wanted> wanted, Deadline deadline);

 private:
  struct Draft;

  Draft draft(const Wanted& wanted, WallTime now) const;
  bool add_messages(Draft& draft, const Effects& effects, WallTime now) const;
  static bool add_writes(Draft& draft, const Effects& effects);
  void send(std::span<Draft> drafts, std::vector<Outcome>& outcomes, Deadline deadline);
  Outcome outcome_of(const Draft& draft, const dynamo::TransactResult& answer, Deadline deadline);
  static Outcome cancelled(const Draft& draft, const dynamo::TransactResult& answer);
  std::optional<std::size_t> blamed_table(const Draft& draft, const dynamo::Error& error, Deadline deadline);

  StoreParts parts_;
  const QueueTable& place_;
  OpenTransactions& open_;
};

}  // namespace sluice::queue::dynamomq
