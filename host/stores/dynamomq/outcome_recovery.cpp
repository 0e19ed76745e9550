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
  return fresh != nullptr && VersionMark::of(record).number > 1 && same(*fresh, record, attribute::kCreatedAt) &&
         same(*fresh, record, attribute::kData);
}

void OutcomeRecovery::judge(const WriteTrace& trace, const dynamo::Item* record, StatementOutcome& outcome) {
  const bool refused = outcome.fate == StatementFate::refused;
  if (record == nullptr) {
    // An insert that was refused, and is gone: its first try was ours, and somebody has finished with it. One that is
    // unknown may still be on its way. A removal has done what it should, by whomever.
    const bool done = trace.kind == WriteTrace::Kind::remove || (trace.kind == WriteTrace::Kind::insert && refused);
    if (done) {
      outcome.fate = StatementFate::done;
    } else if (trace.kind == WriteTrace::Kind::update) {
      outcome.fate = StatementFate::refused;
    }
    return;
  }
  if (trace.is_on(*record)) {
    outcome.fate = StatementFate::done;
    outcome.item = *record;
    return;
  }
  const bool condition_holds =
      trace.kind != WriteTrace::Kind::insert && (!trace.before || VersionMark::of(*record).number == *trace.before);
  if (!condition_holds) {
    outcome.fate = StatementFate::refused;
  }
  // Otherwise what is unknown stays unknown: it may still arrive. What was refused stays refused.
}

void OutcomeRecovery::recover(std::span<const WriteTrace> traces, std::span<StatementOutcome> outcomes,
                              Deadline deadline) const {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (in_doubt(outcomes[i])) {
      ids.push_back(traces[i].id);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto records = runner_.read(place_.table, ids, deadline);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    StatementOutcome& outcome = outcomes[i];
    if (!in_doubt(outcome)) {
      continue;
    }
    if (records) {
      const auto found = records->find(traces[i].id);
      judge(traces[i], found == records->end() ? nullptr : &found->second, outcome);
    } else if (outcome.fate == StatementFate::refused) {
      // Why the write itself got no answer says more than why the look afterwards got none; here it got one.
      outcome.fate = StatementFate::unknown;
      outcome.error = records.error();
    }
  }
}

Error OutcomeRecovery::error_of(const StatementOutcome& outcome) const {
  Error error = store_error(place_, outcome.error);
  return outcome.fate == StatementFate::unknown ? Error(ErrorCode::unknown_outcome, error.message()) : error;
}

}  // namespace sluice::queue::dynamomq
