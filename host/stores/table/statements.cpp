#include "host/stores/table/statements.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/guard.hpp"
#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {
namespace {

using dynamo::AttributeValue;
using Kind = RecordWrite::Kind;

// What most statements take; only saves growths of the string.
constexpr std::size_t kTypicalStatementBytes = 192;

/// What a record must say for a write to take effect.
struct Clause {
  enum class Comparison { equals, is_below, is_absent };
  std::string_view attribute;
  Comparison comparison = Comparison::equals;
  AttributeValue value{};
};

// The absent version is told apart, because a comparison with a missing attribute is false for every value.
std::vector<Clause> clauses_of(const RecordWrite& write) {
  std::vector<Clause> clauses;
  if (write.whatever_it_is) {
    return clauses;
  }
  const Expected& expected = write.expected;
  const LayoutNames& names = *write.names;
  const bool fenced = SLUICE_GUARD(table_version_fence);
  if (fenced && expected.version.stored) {
    clauses.push_back({names.version, Clause::Comparison::equals, *expected.version.stored});
  } else if (fenced) {
    clauses.push_back({names.version, Clause::Comparison::is_absent});
  }
  if (expected.half) {
    clauses.push_back({names.half, Clause::Comparison::equals, std::string(to_string(*expected.half))});
  }
  if (expected.sent_at) {
    clauses.push_back({names.sent_at, Clause::Comparison::equals, *expected.sent_at});
  }
  if (expected.visible_at) {
    clauses.push_back({names.hidden_until, Clause::Comparison::is_below, format_timestamp(*expected.visible_at)});
  }
  return clauses;
}

void append_quoted(std::string& text, std::string_view before, std::string_view name, std::string_view after = "") {
  text += before;
  text += '"';
  text += name;
  text += '"';
  text += after;
}

void append_where(dynamo::Statement& statement, const RecordWrite& write) {
  append_quoted(statement.text, " WHERE ", write.names->hash, "=?");
  statement.parameters.emplace_back(write.expected.id);
  if (!write.names->range.empty()) {
    append_quoted(statement.text, " AND ", write.names->range, "=?");
    statement.parameters.emplace_back(write.expected.sort);
  }
  for (Clause& clause : clauses_of(write)) {
    const bool absent = clause.comparison == Clause::Comparison::is_absent;
    append_quoted(statement.text, " AND ", clause.attribute,
                  absent                                              ? " IS MISSING"
                  : clause.comparison == Clause::Comparison::is_below ? "<?"
                                                                      : "=?");
    if (!absent) {
      statement.parameters.push_back(std::move(clause.value));
    }
  }
}

std::string spelt_clause(Placeholders& spelt, Clause clause) {
  switch (clause.comparison) {
    case Clause::Comparison::is_absent:
      return spelt.absent(clause.attribute);
    case Clause::Comparison::is_below:
      return spelt.compared(clause.attribute, " < ", std::move(clause.value));
    case Clause::Comparison::equals:
      break;
  }
  return spelt.equal(clause.attribute, std::move(clause.value));
}

RecordChange marked(const LayoutNames& names, const VersionMark& version, const WriteMark& mark) {
  RecordChange made;
  made.set.emplace_back(names.version, AttributeValue::number(version.next()));
  made.set.emplace_back(names.updated, names.time(mark.now));
  made.set.emplace_back(names.nonce, std::string(mark.nonce));
  return made;
}

// The IAM actions that a statement of each kind needs, and that the same write needs as a request of its own.
constexpr std::array<std::string_view, RecordWrite::kKinds> kStatementActions{
    "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", "dynamodb:PartiQLDelete"};
constexpr std::array<std::string_view, RecordWrite::kKinds> kRequestActions{"dynamodb:PutItem", "dynamodb:UpdateItem",
                                                                            "dynamodb:DeleteItem"};

std::string statement_action(RecordWrite::Kind kind) {
  return std::string(kStatementActions.at(static_cast<std::size_t>(kind)));
}

std::string warning(std::string_view table) {
  return "table '" + std::string(table) +
         "': the role may not execute PartiQL statements, so that every write is a request of its own: about 3 "
         "requests "
         "a message, where batches of 25 need 0.13; the capacity used is the same. To have batches, allow " +
         joined(kStatementActions) + " on the table and keep what its policy allows now";
}

std::size_t bytes_of(const RecordWrite& write) {
  std::size_t total = item_bytes(write.item);
  for (const auto& [name, value] : write.change.set) {
    total += value_bytes(value);
  }
  return total;
}

// DynamoDB's limit for the text of a statement; the values are beside it.
constexpr std::size_t kMaxStatementBytes = 8192;
constexpr std::size_t kStatementFrame = 300;  // the words, and a table's name of 255 characters
constexpr std::size_t kAroundAName = 5;       // ,'':?

// Whether a statement may carry the names of a record between its quotes as they are, and has room for all of them.
bool can_be_statement(const RecordWrite& write) {
  std::size_t length = kStatementFrame;
  for (const auto& [name, value] : write.item) {
    length += name.size() + kAroundAName;
    if (name.find_first_of("'\"\\?") != std::string::npos) {
      return false;
    }
  }
  return length <= kMaxStatementBytes && write.change.removed.size() <= 1 &&
         !(write.kind == Kind::insert && write.whatever_it_is);
}

// Whether the refusal names an action of a statement, and that is not this kind's.
bool means_another(const dynamo::Error& error, RecordWrite::Kind kind) {
  return error.message.find("PartiQL") != std::string::npos &&
         error.message.find(statement_action(kind)) == std::string::npos;
}

// Says both ways that were refused, whatever the refusal itself says.
dynamo::Error with_missing_rights(dynamo::Error error, RecordWrite::Kind kind) {
  error.message = "the role may not " + std::string(kRequestActions.at(static_cast<std::size_t>(kind))) + ", nor " +
                  statement_action(kind) + ": " + error.message;
  return error;
}

}  // namespace

RecordChange attributes_of(const LayoutNames& names, const core::StateChange& change, MayHave may_have) {
  RecordChange made;
  const auto set = [&made](std::string_view name, AttributeValue value) {
    if (!name.empty()) {
      made.set.emplace_back(name, std::move(value));
    }
  };
  if (change.half) {
    set(names.half, std::string(to_string(*change.half)));
  }
  if (change.receives) {
    set(names.receives, AttributeValue::number(*change.receives));
  }
  if (change.sent_at) {
    set(names.sent_at, names.time(*change.sent_at));
  }
  if (change.received_at) {
    set(names.received, names.time(*change.received_at));
  }
  if (change.hidden_until) {
    set(names.hidden_until, names.time(*change.hidden_until));
  }
  if (change.created_at) {
    set(names.created, names.time(*change.created_at));
  }
  if (change.failure && !change.failure->empty()) {
    set(names.failure, encode_failure(*change.failure));
  } else if (change.failure && may_have.failure) {
    made.removed.push_back(names.failure);
  }
  if (change.checkpoint && !change.checkpoint->empty()) {
    set(names.checkpoint, dynamo::Binary{*change.checkpoint});
  } else if (change.checkpoint && may_have.checkpoint) {
    made.take_away(names.checkpoint, dynamo::Binary{});
  }
  if (change.marks.value_or(0) != 0) {
    set(names.marks, AttributeValue::number(*change.marks));
  } else if (change.marks && may_have.marks) {
    made.take_away(names.marks, AttributeValue::number(0));
  }
  return made;
}

RecordWrite update_of(const LayoutNames& names, std::string_view table, Expected expected, const WriteMark& mark,
                      RecordChange change, bool returning) {
  RecordWrite write{.table = table, .expected = std::move(expected), .returning = returning, .names = &names};
  write.change = marked(names, write.expected.version, mark);
  std::move(change.set.begin(), change.set.end(), std::back_inserter(write.change.set));
  write.change.removed = std::move(change.removed);
  return write;
}

RecordWrite removal_of(const LayoutNames& names, std::string_view table, Expected expected) {
  return {.kind = Kind::remove, .table = table, .expected = std::move(expected), .returning = true, .names = &names};
}

void touch(const LayoutNames& names, dynamo::Item& item, const VersionMark& version, const WriteMark& mark) {
  for (auto& [name, value] : marked(names, version, mark).set) {
    item.insert_or_assign(std::string(name), std::move(value));
  }
}

dynamo::Item RecordWrite::key() const {
  dynamo::Item key{{std::string(names->hash), expected.id}};
  if (!names->range.empty()) {
    key.emplace(names->range, expected.sort);
  }
  return key;
}

dynamo::Statement statement_of(const RecordWrite& write) {
  dynamo::Statement statement;
  std::string& text = statement.text;
  text.reserve(kTypicalStatementBytes);
  if (write.kind == Kind::insert) {
    append_quoted(text, "INSERT INTO ", write.table, " VALUE {");
    for (const auto& [name, value] : write.item) {
      text += (statement.parameters.empty() ? "'" : ",'") + name + "':?";
      statement.parameters.push_back(value);
    }
    text += '}';
    return statement;
  }
  append_quoted(text, write.kind == Kind::update ? "UPDATE " : "DELETE FROM ", write.table);
  for (const auto& [name, value] : write.change.set) {
    append_quoted(text, statement.parameters.empty() ? " SET " : ",", name, "=?");
    statement.parameters.push_back(value);
  }
  if (!write.change.removed.empty()) {
    append_quoted(text, " REMOVE ", write.change.removed.front());
  }
  append_where(statement, write);
  if (write.returning) {
    text += write.kind == Kind::update ? " RETURNING ALL NEW *" : " RETURNING ALL OLD *";
  }
  return statement;
}

dynamo::ItemWrite request_of(const RecordWrite& write) {
  dynamo::ItemWrite request{.table = std::string(write.table), .returning = write.returning};
  Placeholders spelt(request);
  if (write.kind == Kind::insert) {
    request.item = write.item;
    if (!write.whatever_it_is) {
      request.condition = spelt.absent(write.names->hash);
    }
    return request;
  }
  request.kind = write.kind == Kind::update ? dynamo::ItemWrite::Kind::update : dynamo::ItemWrite::Kind::remove;
  request.item = write.key();
  for (Clause& clause : clauses_of(write)) {
    if (request.condition.empty() && clause.comparison == Clause::Comparison::is_absent) {
      request.condition = "attribute_exists(" + spelt.name(write.names->hash) + ")";
    }
    request.condition += (request.condition.empty() ? "" : " AND ") + spelt_clause(spelt, std::move(clause));
  }
  for (const auto& [name, value] : write.change.set) {
    request.update += (request.update.empty() ? "SET " : ", ") + spelt.equal(name, value);
  }
  for (const std::string_view name : write.change.removed) {
    request.update += (name == write.change.removed.front() ? " REMOVE " : ", ") + spelt.name(name);
  }
  return request;
}

bool lacks_right(const dynamo::Error& error) {
  return error.kind == dynamo::ErrorKind::access_denied && error.exception_name.starts_with("AccessDenied");
}

bool StatementRights::denied(std::string_view table, RecordWrite::Kind kind, SteadyTime now) const {
  const MutexLock lock(mutex_);
  const auto known = refused_at_.empty() ? refused_at_.end() : refused_at_.find({std::string(table), kind});
  return known != refused_at_.end() && now - known->second < kAskAgain;
}

void StatementRights::refused(std::string_view table, RecordWrite::Kind kind, SteadyTime now) {
  const MutexLock lock(mutex_);
  refused_at_[{std::string(table), kind}] = now;
}

void StatementRights::note_singles(std::string_view table, std::size_t writes) {
  // One alone costs the same either way, and a command that makes just that should not speak of it each time.
  if (writes < 2 || !warn_) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    if (!warned_.emplace(table).second) {
      return;
    }
  }
  warn_(warning(table));
}

/// A write under way.
struct StatementRunner::Task {
  explicit Task(RecordWrite wanted)
      : write(std::move(wanted)), bytes(bytes_of(write)), has_statement(can_be_statement(write)) {}

  RecordWrite write;
  std::size_t bytes;  ///< of its values
  bool has_statement;
  StatementOutcome outcome{};
  int tries = 0;
  bool alone = false;   ///< its batch was rejected as a whole
  bool single = false;  ///< no batch may have it
};

struct StatementRunner::Batch {
  std::vector<Task*> members;
  std::size_t bytes = 0;

  bool has_room_for(const Task& task) const {
    return members.size() < dynamo::kMaxBatchStatements && !task.alone && !members.front()->alone &&
           bytes + task.bytes <= kMaxBatchBytes;
  }
};

/// Of one call, what goes off together, and what has to wait for the next round.
struct StatementRunner::Round {
  std::vector<Batch> batches;
  std::vector<Task*> singles;
  std::vector<Task*> later;
  bool pause_before_next = false;
  Repetition repetition = Repetition::none;

  void fill(const std::vector<Task*>& pending) {
    std::set<std::pair<std::string_view, std::string_view>> records;  // by their keys
    for (Task* task : pending) {
      const bool full = batches.empty() || !batches.back().has_room_for(*task);
      const bool room = task->single ? singles.size() < kMaxSinglesAtOnce : !full || batches.size() < kMaxBatchesAtOnce;
      if (!records.emplace(task->write.id(), task->write.expected.sort).second || !room) {
        later.push_back(task);
      } else if (task->single) {
        singles.push_back(task);
      } else {
        if (full) {
          batches.emplace_back();
        }
        batches.back().members.push_back(task);
        batches.back().bytes += task->bytes;
      }
    }
  }

  void note(Task& task, dynamo::Item item) {
    task.outcome.fate = StatementFate::done;
    task.outcome.item = std::move(item);
  }

  void note(Task& task, const dynamo::Error& error) {
    StatementOutcome& outcome = task.outcome;
    outcome.error = error;
    if (error.kind == dynamo::ErrorKind::conditional_check_failed) {
      outcome.fate = StatementFate::refused;
      return;
    }
    bool again = true;
    if (outcome_unknown(error)) {
      outcome.fate = StatementFate::unknown;
      outcome.repeated = true;
      pause_before_next = pause_before_next || task.tries > 1;
    } else {
      // After a try that may have taken effect, nothing later can make that undone.
      outcome.fate = outcome.repeated ? StatementFate::unknown : StatementFate::failed;
      again = (error.kind == dynamo::ErrorKind::throttled && repetition != Repetition::until_answered) ||
              error.kind == dynamo::ErrorKind::server;
      pause_before_next = pause_before_next || again;
    }
    if (again && repetition != Repetition::none && task.tries < kMaxTries) {
      later.push_back(&task);
    }
  }
};

void StatementRunner::run_batches(Round& round, Deadline deadline) {
  const auto requests = mapped(round.batches, [](const Batch& batch) {
    return mapped(batch.members, [](Task* task) {
      ++task->tries;
      return statement_of(task->write);
    });
  });
  auto answers = client_.batch_execute(requests, deadline);
  for (std::size_t b = 0; b < answers.size(); ++b) {
    const std::vector<Task*>& batch = round.batches[b].members;
    auto& answer = answers[b];
    const bool rejected = !answer && answer.error().kind == dynamo::ErrorKind::validation && batch.size() > 1;
    const bool denied = !answer && refused_for_want_of_right(batch, answer.error());
    for (std::size_t k = 0; k < batch.size(); ++k) {
      Task* const task = batch[k];
      task->alone = task->alone || rejected;
      const auto error = answer ? answer->results[k].error : std::optional(answer.error());
      if (rejected || denied || (answer && error && refused_for_want_of_right({task}, *error))) {
        task->outcome.error = *error;  // for which there may be no time left
        round.later.push_back(task);
      } else if (error) {
        round.note(*task, *error);
      } else {
        round.note(*task, std::move(answer->results[k].item));
      }
    }
  }
}

bool StatementRunner::refused_for_want_of_right(const std::vector<Task*>& batch, const dynamo::Error& error) {
  if (!lacks_right(error)) {
    return false;
  }
  const auto meant = [&](const Task* task) { return !means_another(error, task->write.kind); };
  const bool any_meant = std::any_of(batch.begin(), batch.end(), meant);
  for (const Task* task : batch) {
    if (meant(task) || !any_meant) {
      rights_.refused(task->write.table, task->write.kind, clock_.steady_now());
    }
  }
  return true;
}

void StatementRunner::run_singles(Round& round, Deadline deadline) {
  const auto requests = mapped(round.singles, [](Task* task) {
    ++task->tries;
    return request_of(task->write);
  });
  auto answers = client_.write_each(requests, deadline);
  std::size_t for_want_of_right = 0;
  for (std::size_t k = 0; k < answers.size(); ++k) {
    Task& task = *round.singles[k];
    const bool denied = !answers[k] && lacks_right(answers[k].error());
    for_want_of_right += denied || !task.has_statement ? 0 : 1;
    if (answers[k]) {
      round.note(task, std::move(answers[k]->item));
    } else {
      round.note(task, denied ? with_missing_rights(answers[k].error(), task.write.kind) : answers[k].error());
    }
  }
  if (for_want_of_right > 0) {
    rights_.note_singles(round.singles.front()->write.table, for_want_of_right);
  }
}

std::vector<StatementOutcome> StatementRunner::run(std::vector<RecordWrite> writes, Repetition repetition,
                                                   Deadline deadline) {
  std::vector<Task> tasks(std::make_move_iterator(writes.begin()), std::make_move_iterator(writes.end()));
  auto pending = mapped(tasks, [](Task& task) { return &task; });
  int pauses = 0;
  for (bool pause_first = false; !pending.empty();) {
    const SteadyTime now = clock_.steady_now();
    if (deadline.passed(now)) {
      for (Task* task : pending) {
        if (task->tries == 0) {
          task->outcome.error = dynamo::Error(dynamo::ErrorKind::timeout, "the deadline passed before it was sent");
        }
      }
      break;
    }
    if (pause_first) {
      const Duration ceiling = std::min<Duration>(kLongestPause, kFirstPause * (1 << std::min(pauses++, 10)));
      pause(clock_, std::chrono::duration_cast<Duration>(ceiling * (0.5 + random_.unit() / 2)), deadline);
    }
    for (Task* task : pending) {
      task->single = !task->has_statement || rights_.denied(task->write.table, task->write.kind, now);
    }
    Round round{.repetition = repetition};
    round.fill(pending);
    run_batches(round, deadline);
    run_singles(round, deadline);
    std::sort(round.later.begin(), round.later.end());  // in the caller's order
    pending = std::move(round.later);
    pause_first = round.pause_before_next;
  }

  return mapped(tasks, [](Task& task) { return std::move(task.outcome); });
}

dynamo::Result<std::vector<dynamo::Item>> read_items(dynamo::Client& client, const std::string& table,
                                                     const std::vector<dynamo::Item>& keys, Deadline deadline) {
  std::set<std::string> seen;
  std::vector<dynamo::Item> distinct;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(distinct),
               [&](const dynamo::Item& key) { return seen.insert(dynamo::encode_item(key)).second; });
  std::vector<dynamo::Item> found;
  for (std::size_t from = 0; from < distinct.size(); from += dynamo::kMaxBatchKeys) {
    const std::size_t count = std::min(dynamo::kMaxBatchKeys, distinct.size() - from);
    SLUICE_TRY(items, client.batch_get(table, std::span(distinct).subspan(from, count), deadline));
    std::move(items->begin(), items->end(), std::back_inserter(found));
  }
  return found;
}

}  // namespace sluice::queue::table
