#include "host/stores/dynamomq/statement_runner.hpp"

#include <algorithm>
#include <unordered_set>

#include "base/mutex.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/dynamomq/table_errors.hpp"

namespace sluice::queue::dynamomq {

namespace {

std::size_t bytes_of(const dynamo::Statement& statement) {
  std::size_t total = 0;
  for (const dynamo::AttributeValue& value : statement.parameters) {
    total += value_bytes(value);
  }
  return total;
}

}  // namespace

struct StatementRunner::Batch {
  std::vector<std::size_t> members;
  std::size_t bytes = 0;
};

/// Statements under way. Indexes are positions in the caller's order.
struct StatementRunner::Work {
  std::vector<KeyedStatement> statements;
  std::vector<StatementOutcome> outcomes;
  std::vector<int> tries;
  std::vector<std::size_t> bytes;    // of its values
  std::vector<bool> alone;           // its batch was rejected as a whole
  std::vector<std::size_t> pending;  // in order
  Repetition repetition = Repetition::none;
  bool pause_before_next = false;

  bool may_repeat(std::size_t i) const { return repetition == Repetition::until_known && tries[i] < kMaxTries; }

  bool fits(const Batch& batch, std::size_t i) const {
    return batch.members.size() < kMaxStatementsPerBatch && !alone[i] && !alone[batch.members.front()] &&
           batch.bytes + bytes[i] <= kMaxBatchBytes;
  }
  // Takes from `pending` what goes off together; what has to wait is appended to `later`.
  std::vector<Batch> next_batches(std::vector<std::size_t>& later) const;

  // True when the statement is to be tried again.
  bool note(std::size_t i, const dynamo::Error& error);
  bool note(std::size_t i, dynamo::StatementResult& result);
};

bool StatementRunner::Work::note(std::size_t i, const dynamo::Error& error) {
  StatementOutcome& outcome = outcomes[i];
  outcome.error = error;
  if (error.kind == dynamo::ErrorKind::conditional_check_failed) {
    outcome.fate = StatementFate::refused;
    return false;
  }
  if (outcome_unknown(error)) {
    outcome.fate = StatementFate::unknown;
    outcome.repeated = true;
    pause_before_next = pause_before_next || tries[i] > 1;
    return may_repeat(i);
  }
  // After a try that may have taken effect, nothing later can make that undone.
  outcome.fate = outcome.repeated ? StatementFate::unknown : StatementFate::failed;
  const bool passing = error.kind == dynamo::ErrorKind::throttled || error.kind == dynamo::ErrorKind::server;
  pause_before_next = pause_before_next || passing;
  return passing && may_repeat(i);
}

bool StatementRunner::Work::note(std::size_t i, dynamo::StatementResult& result) {
  if (result.error) {
    return note(i, *result.error);
  }
  outcomes[i].fate = StatementFate::done;
  outcomes[i].item = std::move(result.item);
  return false;
}

std::vector<StatementRunner::Batch> StatementRunner::Work::next_batches(std::vector<std::size_t>& later) const {
  std::vector<Batch> batches;
  std::unordered_set<std::string_view> ids;
  for (const std::size_t i : pending) {
    const bool full = batches.empty() || !fits(batches.back(), i);
    if (!ids.insert(statements[i].id).second || (full && batches.size() == kMaxBatchesAtOnce)) {
      later.push_back(i);
      continue;
    }
    if (full) {
      batches.emplace_back();
    }
    batches.back().members.push_back(i);
    batches.back().bytes += bytes[i];
  }
  return batches;
}

void StatementRunner::run_round(Work& work, Deadline deadline) {
  std::vector<std::size_t> later;
  const std::vector<Batch> batches = work.next_batches(later);
  std::vector<std::vector<dynamo::Statement>> requests;
  for (const Batch& batch : batches) {
    auto& request = requests.emplace_back();
    for (const std::size_t i : batch.members) {
      ++work.tries[i];
      request.push_back(work.statements[i].statement);
    }
  }
  auto answers = client_.batch_execute(requests, deadline);
  for (std::size_t b = 0; b < batches.size(); ++b) {
    const std::vector<std::size_t>& batch = batches[b].members;
    auto& answer = answers[b];
    const bool rejected = !answer && answer.error().kind == dynamo::ErrorKind::validation && batch.size() > 1;
    for (std::size_t k = 0; k < batch.size(); ++k) {
      const std::size_t i = batch[k];
      bool again = rejected;
      if (rejected) {
        work.alone[i] = true;
      } else {
        again = answer ? work.note(i, answer->results[k]) : work.note(i, answer.error());
      }
      if (again) {
        later.push_back(i);
      }
    }
  }
  std::sort(later.begin(), later.end());
  work.pending = std::move(later);
}

std::vector<StatementOutcome> StatementRunner::run(std::vector<KeyedStatement> statements, Repetition repetition,
                                                   Deadline deadline) {
  Work work;
  const std::size_t count = statements.size();
  work.statements = std::move(statements);
  work.outcomes.resize(count);
  work.tries.resize(count);
  work.alone.resize(count);
  work.bytes.reserve(count);
  for (const KeyedStatement& keyed : work.statements) {
    work.bytes.push_back(bytes_of(keyed.statement));
  }
  work.repetition = repetition;
  work.pending.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    work.pending.push_back(i);
  }
  for (int round = 0, pauses = 0; !work.pending.empty(); ++round) {
    if (deadline.passed(clock_.steady_now())) {
      for (const std::size_t i : work.pending) {
        if (work.tries[i] == 0) {
          work.outcomes[i].error = dynamo::Error(dynamo::ErrorKind::timeout, "the deadline passed before it was sent");
        }
      }
      break;
    }
    if (work.pause_before_next) {
      pause(pauses++, deadline);
    }
    work.pause_before_next = false;
    run_round(work, deadline);
  }
  return std::move(work.outcomes);
}

void StatementRunner::pause(int round, Deadline deadline) {
  const Duration ceiling = std::min<Duration>(kLongestPause, kFirstPause * (1 << std::min(round, 10)));
  const auto span = std::chrono::duration_cast<Duration>(ceiling * (0.5 + random_.unit() / 2));
  const SteadyTime now = clock_.steady_now();
  Mutex mutex;
  Condition never_signalled;
  const MutexLock lock(mutex);
  const SteadyTime end = deadline.earlier(Deadline::at(now + span)).time();
  never_signalled.wait_until(mutex, clock_.machine_time(end), [] { return false; });
}

dynamo::Result<std::unordered_map<std::string, dynamo::Item>> StatementRunner::read(const std::string& table,
                                                                                    const std::vector<std::string>& ids,
                                                                                    Deadline deadline) {
  std::unordered_map<std::string, dynamo::Item> records;
  const std::unordered_set<std::string> distinct(ids.begin(), ids.end());
  std::vector<dynamo::Item> keys;
  keys.reserve(distinct.size());
  for (const auto& id : distinct) {
    keys.push_back({{std::string(attribute::kId), id}});
  }
  for (std::size_t start = 0; start < keys.size(); start += kMaxKeysPerBatchGet) {
    const std::size_t count = std::min(kMaxKeysPerBatchGet, keys.size() - start);
    auto items = client_.batch_get(table, std::span(keys).subspan(start, count), deadline);
    if (!items) {
      return items.error();
    }
    for (auto& item : *items) {
      if (const auto* id = dynamo::find<std::string>(item, attribute::kId)) {
        records.emplace(*id, std::move(item));
      }
    }
  }
  return records;
}

}  // namespace sluice::queue::dynamomq
