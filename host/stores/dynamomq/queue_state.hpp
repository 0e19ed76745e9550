#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/dynamomq/body_sizes.hpp"
#include "host/stores/dynamomq/half_backlog.hpp"
#include "host/stores/dynamomq/unresolved_claims.hpp"
#include "host/stores/table/doubtful_writes.hpp"
#include "host/stores/table/failure_memory.hpp"
#include "host/stores/table/open_transactions.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {

/// What is known of one half of a queue, between calls.
struct HalfState {
  HalfState(const std::string& tag, Random& random) : lane(tag, random) {}

  HalfBacklog lane;
  UnresolvedClaims claims;
  table::DoubtfulWrites doubts;
  BodySizes sizes;
  table::FailureMemory failures;
  table::OpenTransactions transactions;
};

/// What is known of one queue: where it lies, and what its two halves hold. All sides of the queue share it.
/// Thread-safe.
class QueueState {
 public:
  /// `tag` and `random` as HalfBacklog's.
  QueueState(table::QueueTable table, const std::string& tag, Random& random)
      : place(std::move(table)), standard_(tag, random), dlq_(tag, random) {}

  const table::QueueTable place;

  HalfState& state_of(Half half) { return half == Half::dlq ? dlq_ : standard_; }

  /// Nothing that is known of that message holds any more.
  void forget(const std::string& id) {
    standard_.lane.forget(id);
    dlq_.lane.forget(id);
  }
  /// The same, and it may come due then in either half.
  void changed(const std::string& id, WallTime due) {
    forget(id);
    standard_.lane.expect(due);
    dlq_.lane.expect(due);
  }
  void put(const StoredMessage& record) {
    forget(record.message.id);
    state_of(record.half).lane.expect(std::max(record.message.sent_at, record.invisible_until.value_or(WallTime{})));
  }

 private:
  HalfState standard_;
  HalfState dlq_;
};

}  // namespace sluice::queue::dynamomq
