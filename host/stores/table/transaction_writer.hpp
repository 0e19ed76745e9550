#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/client.hpp"
#include "host/queue/source.hpp"
#include "host/stores/table/open_transactions.hpp"
#include "host/stores/table/statement_runner.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"
#include "host/stores/table/transaction_draft.hpp"

namespace sluice::queue::table {

/// Writes completions that carry effects: each is one TransactWriteItems, whose first action is the write of the
/// message's own record with its fence, followed by the messages with their marks, the handler's writes and the key. A
/// message that turns out to be a duplicate of one sent before is left out, and the rest is made without it.
///
/// Its token is made of queue, message, version and all that it writes. One whose outcome stayed unknown is kept, and
/// made again to the letter when the completion is repeated, so that DynamoDB itself says for ten minutes what became
/// of it. After that, or in another process, the fence decides: what took effect has taken the message away. Made for
/// one call. Not thread-safe.
class TransactionWriter {
 public:
  static constexpr std::size_t kMaxAtOnce = 100;  ///< the transport has fewer under way at a time
  static constexpr int kMaxRounds = 4;            ///< of one transaction, each with the duplicates left out that it met

  TransactionWriter(StoreParts parts, const QueueTable& place, OpenTransactions& open, EffectLayouts layouts)
      : parts_(parts), place_(place), open_(open), drafter_(parts, place, std::move(layouts)) {}

  struct Wanted {
    const Completion* completion;
    std::vector<dynamo::TransactAction> own;  ///< the writes of the message's own records, its fence first
  };
  struct Outcome {
    StatementOutcome outcome;
    /// The effects cannot be committed: what to say of it. `outcome` is StatementFate::failed then.
    std::optional<SettleResult> refused;
    /// Of StatementFate::refused: DynamoDB has said of the same token that no try before has taken effect.
    bool never_applied = false;
    /// A message of it may be a duplicate of one that was sent before: it has to be left out.
    bool met_mark = false;
  };
  std::vector<Outcome> write(std::span<const Wanted> wanted, Deadline deadline);

 private:
  using Draft = TransactionDraft;

  void send(std::span<Draft> drafts, std::vector<Outcome>& outcomes, std::vector<Draft>& duplicates, Deadline deadline);
  std::vector<Draft> without_duplicates(std::vector<Draft> drafts, std::vector<Outcome>& outcomes, Deadline deadline);
  Outcome outcome_of(const Draft& draft, const dynamo::TransactResult& answer, Deadline deadline);
  static Outcome cancelled(const Draft& draft, const dynamo::TransactResult& answer);
  std::optional<std::size_t> blamed_table(const Draft& draft, const dynamo::Error& error, Deadline deadline);

  StoreParts parts_;
  const QueueTable& place_;
  OpenTransactions& open_;
  const TransactionDrafter drafter_;
};

}  // namespace sluice::queue::table
