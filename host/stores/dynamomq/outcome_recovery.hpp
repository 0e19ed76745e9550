#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/stores/table/statement_runner.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {

/// How a write is recognised when its answer was lost.
struct WriteTrace {
  enum class Kind { insert, update, remove };

  Kind kind = Kind::update;
  std::string id;
  std::string nonce;                   ///< that it leaves on the record; a removal leaves none
  std::optional<std::int64_t> before;  ///< the version that it is conditional on; nothing: whatever it is
  /// An insert of a new message: the item. Whoever has claimed it since has replaced the nonce, but neither the time of
  /// its creation nor its data.
  const dynamo::Item* fresh = nullptr;

  /// Whether the record is as this write, or what came after it, has left it.
  bool is_on(const dynamo::Item& record) const;
};

/// Finds out what became of writes whose answers were lost: by the nonce that each of them would have left. Whatever
/// writes to a table comes here when it does not know what it has done. Thread-safe.
class OutcomeRecovery {
 public:
  /// The references must outlive it.
  OutcomeRecovery(table::StatementRunner& runner, const table::QueueTable& place) : runner_(runner), place_(place) {}

  /// Settles those of `outcomes` that are in doubt, with one consistent read. Traces and outcomes belong to each other.
  ///
  /// Afterwards an outcome is `done` (its item is then the record as it was found), `refused` (it has not taken effect,
  /// or somebody has changed the record since; it never will), or still `unknown`: the records could not be read, or
  /// the write may be on its way.
  void recover(std::span<const WriteTrace> traces, std::span<table::StatementOutcome> outcomes,
               Deadline deadline) const;

  /// The same for one of them, by the record as it stands; null: there is none.
  static void judge(const WriteTrace& trace, const dynamo::Item* record, table::StatementOutcome& outcome);

  /// Why a write that is neither done nor refused has failed.
  Error error_of(const table::StatementOutcome& outcome) const;

 private:
  table::StatementRunner& runner_;
  const table::QueueTable& place_;
};

}  // namespace sluice::queue::dynamomq
