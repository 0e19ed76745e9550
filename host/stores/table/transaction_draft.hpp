#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/transaction.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/source.hpp"
#include "host/stores/table/effect_layout.hpp"
#include "host/stores/table/open_transactions.hpp"
#include "host/stores/table/statement_runner.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::table {

/// The transaction that one completion with effects comes to. A value.
struct TransactionDraft {
  /// What one action is called where it is refused.
  struct Name {
    enum class Kind { own, message, mark, write, key } kind = Kind::own;
    std::string text{};
    bool reject = false;
  };

  std::size_t place = 0;
  const Completion* completion = nullptr;
  /// The writes of the message's own records, the one with its fence first.
  const std::vector<dynamo::TransactAction>* own = nullptr;
  dynamo::TransactWriteRequest request{};
  OpenTransactions::Asked kept{};  ///< that is made again, if it was made before
  std::vector<Name> names{};       ///< of the actions
  /// Messages, by their number, that are duplicates of ones sent before: accepted, and not stored.
  std::set<std::size_t> left_out{};
  std::vector<std::string> void_marks{};  ///< by message: the token of a mark that is to be replaced
  std::optional<SettleResult> refused{};

  bool refuse(ErrorCode code, std::string text, bool reject = false) {
    refused = SettleResult{SettleStatus::refused, Error(code, std::move(text)), reject};
    return false;
  }
};

/// Makes drafts, and makes them anew once it is known which of their messages were sent before. Made for one call. Not
/// thread-safe.
class TransactionDrafter {
 public:
  /// `layouts` knows every queue that messages may be sent to, and the message's own.
  TransactionDrafter(StoreParts parts, const QueueTable& place, EffectLayouts layouts)
      : parts_(parts), place_(place), layouts_(std::move(layouts)) {}

  /// Fills in request and names, or `refused`, by completion, own, left_out and void_marks.
  void fill(TransactionDraft& draft, WallTime now) const;

  /// Reads what stands in the way of the marks of its messages, and leaves out those that are duplicates; or refuses
  /// the draft. An error: the tables could not be read.
  std::optional<dynamo::Error> leave_out_duplicates(TransactionDraft& draft, Deadline deadline) const;

 private:
  bool add_messages(TransactionDraft& draft, const Effects& effects, WallTime now) const;
  bool add_message(TransactionDraft& draft, const EmittedMessage& emitted, const std::string& void_mark,
                   WallTime now) const;
  bool add_writes(TransactionDraft& draft, const Effects& effects) const;

  StoreParts parts_;
  const QueueTable& place_;
  const EffectLayouts layouts_;
};

}  // namespace sluice::queue::table
