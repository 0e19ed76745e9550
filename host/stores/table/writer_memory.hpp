#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/receipt_memory.hpp"

namespace sluice::queue::table {

/// A write about a delivery, of which nobody knows whether it took effect.
struct DoubtfulWrite {
  std::string nonce;                       ///< that it would have left; one that takes the record away leaves none
  std::optional<CompletionAction> action;  ///< nothing: the delivery went on as it was
};

/// What was written about deliveries of one half of a queue in earlier calls without learning what came of it, so that
/// later calls recognise their own doing.
using DoubtfulWrites = core::ReceiptMemory<DoubtfulWrite, 4'096>;

/// A transaction of which nobody knows whether it took effect, as it was asked for: made again to the letter, its token
/// lets DynamoDB answer as it did the first time.
struct OpenTransaction {
  std::shared_ptr<const dynamo::TransactWriteRequest> request{};  ///< null: there is none
  std::set<std::size_t> left_out{};  ///< messages of the completion, by number, that it does not carry
  SteadyTime first_at{};
  CompletionAction action = CompletionAction::remove;  ///< that it was for
};
using OpenTransactions = core::ReceiptMemory<OpenTransaction, 256>;

}  // namespace sluice::queue::table
