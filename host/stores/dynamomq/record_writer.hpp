#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/table/statement_runner.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// A record that is to be put where none is yet. The item outlives it, and has a nonce.
struct Insert {
  std::string id;
  const dynamo::Item* item = nullptr;
  /// It is a message as it was sent: whoever has claimed it since has replaced the nonce, but neither the time of its
  /// creation nor its data.
  bool is_new = false;
  bool alone = false;  ///< no statement can spell it
};

/// Puts them, and finds out by their nonces what became of those whose answers were lost. In their order: an outcome is
/// `done`, `refused` because the id is another's, or why it failed is `error_of` it; `unknown`: it may be on its way.
std::vector<table::StatementOutcome> put_new(const table::StoreParts& parts, const table::QueueTable& place,
                                             std::span<const Insert> inserts, Deadline deadline);
Error error_of(const table::QueueTable& place, const table::StatementOutcome& outcome);

/// Writes whole records, for those who copy queues; as Operator::put. A replacement whose answer was lost is repeated
/// without a question: it leaves the same record however often it is made.
std::vector<PutResult> put_records(const table::StoreParts& parts, const table::QueueTable& place,
                                   std::span<const StoredMessage> records, PutMode mode, Deadline deadline);

}  // namespace sluice::queue::dynamomq
