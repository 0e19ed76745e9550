#include "host/stores/dynamomq/outcome_recovery.hpp"

#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {
namespace {

bool same(const dynamo::Item& a, const dynamo::Item& b, std::string_view name) {
  const auto left = a.find(name);
  const auto right = b.find(name);
  return left != a.end() && right != b.end() && left->second == right->second;
}

}  // namespace

bool WriteTrace::is_on(const dynamo::Item& record) const {
  if (!nonce.empty() && nonce_of(record) == nonce) {
    return true;
  }
  return fresh != nullptr && version_of(record).number > 1 && same(*fresh, record, attribute::kCreatedAt) &&
         same(*fresh, record, attribute::kData);
}

void OutcomeRecovery::judge(const WriteTrace& trace, const dynamo::Item* record, table::StatementOutcome& outcome) {
  const bool refused = outcome.fate == table::StatementFate::refused;
  if (record == nullptr) {
    // An insert that was refused, and is gone: its first try was ours, and somebody has finished with it. One that is
    // unknown may still be on its way. A removal has done what it should, by whomever.
    const bool done = trace.kind == WriteTrace::Kind::remove || (trace.kind == WriteTrace::Kind::insert && refused);
    if (done) {
      outcome.fate = table::StatementFate::done;
    } else if (trace.kind == WriteTrace::Kind::update) {
      outcome.fate = table::StatementFate::refused;
    }
    return;
  }
  if (trace.is_on(*record)) {
    outcome.fate = table::StatementFate::done;
    outcome.item = *record;
    return;
  }
  const bool condition_holds =
      trace.kind != WriteTrace::Kind::insert && (!trace.before || version_of(*record).number == *trace.before);
  if (!condition_holds) {
    outcome.fate = table::StatementFate::refused;
  }
  // Otherwise what is unknown stays unknown: it may still arrive. What was refused stays refused.
}

void OutcomeRecovery::recover(std::span<const WriteTrace> traces, std::span<table::StatementOutcome> outcomes,
                              Deadline deadline) const {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (table::in_doubt(outcomes[i])) {
      ids.push_back(traces[i].id);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto records = runner_.read(place_.table, attribute::kId, ids, deadline);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    table::StatementOutcome& outcome = outcomes[i];
    if (!table::in_doubt(outcome)) {
      continue;
    }
    if (records) {
      const auto found = records->find(traces[i].id);
      judge(traces[i], found == records->end() ? nullptr : &found->second, outcome);
    } else if (outcome.fate == table::StatementFate::refused) {
      // Why the write itself got no answer says more than why the look afterwards got none; here it got one.
      outcome.fate = table::StatementFate::unknown;
      outcome.error = records.error();
    }
  }
}

Error OutcomeRecovery::error_of(const table::StatementOutcome& outcome) const {
  Error error = table::store_error(place_, outcome.error);
  return outcome.fate == table::StatementFate::unknown ? Error(ErrorCode::unknown_outcome, error.message()) : error;
}

}  // namespace sluice::queue::dynamomq
