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
#include "dynamo/transaction.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/source.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"
#include "host/stores/table/writer_memory.hpp"

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

  TransactionWriter(StoreParts parts, const QueueTable& place, OpenTransactions& open, RecordLayouts layouts)
      : parts_(parts), place_(place), open_(open), layouts_(std::move(layouts)) {}

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
  struct Draft;

  /// Fills in request and names, or `refused`, by completion, own, left_out and void_marks.
  void fill(Draft& draft, WallTime now) const;
  bool add_messages(Draft& draft, const Effects& effects, WallTime now) const;
  bool add_message(Draft& draft, const EmittedMessage& emitted, const std::string& void_mark, WallTime now) const;
  bool add_writes(Draft& draft, const Effects& effects) const;
  /// Reads what stands in the way of the marks of its messages, and leaves out those that are duplicates; or refuses
  /// the draft. An error: the tables could not be read.
  std::optional<dynamo::Error> leave_out_duplicates(Draft& draft, Deadline deadline) const;

  void send(std::span<Draft> drafts, std::vector<Outcome>& outcomes, std::vector<Draft>& duplicates, Deadline deadline);
  std::vector<Draft> without_duplicates(std::vector<Draft> drafts, std::vector<Outcome>& outcomes, Deadline deadline);
  Outcome outcome_of(const Draft& draft, const dynamo::TransactResult& answer, Deadline deadline);
  static Outcome cancelled(const Draft& draft, const dynamo::TransactResult& answer);
  std::optional<std::size_t> blamed_table(const Draft& draft, const dynamo::Error& error, Deadline deadline);

  StoreParts parts_;
  const QueueTable& place_;
  OpenTransactions& open_;
  const RecordLayouts layouts_;
};

}  // namespace sluice::queue::table
