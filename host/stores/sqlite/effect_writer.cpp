#include "host/stores/sqlite/effect_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/message.hpp"
#include "host/stores/sqlite/commit_queue.hpp"
#include "host/stores/sqlite/shared_store.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

namespace {

// Completions in one savepoint. SQLite keeps a copy of each page that is changed within it, and all of them are made
// again when one is refused.
constexpr std::size_t kRun = 128;
// Of a transaction that failed because something was barred by it: the same call goes through without.
constexpr ErrorCode kBarred = ErrorCode::cancelled;

bool is_key_alone(const Effects& effects) { return effects.key && effects.messages.empty() && effects.writes.empty(); }

Error key_taken() {
  return {ErrorCode::conflict, "its idempotency key is held by another message by now; the next attempt finds it done"};
}

/// Whether nothing that is sent can turn out to be there already.
bool sends_what_is_new(const Completion& completion) {
  const auto is_new = [](const EmittedMessage& emitted) { return emitted.made_id && !has_send_keys(emitted.message); };
  return !completion.effects ||
         std::all_of(completion.effects->messages.begin(), completion.effects->messages.end(), is_new);
}

std::string on_table(const std::string& table) { return table.empty() ? "" : " on table " + table; }

}  // namespace

EffectWriter::EffectWriter(Connection& connection, Records& records, std::size_t most_bytes)
    : connection_(connection),
      records_(records),
      most_bytes_(most_bytes),
      statements_(connection),
      savepoint_(connection, "SAVEPOINT effects"),
      release_(connection, "RELEASE effects"),
      roll_back_(connection, "ROLLBACK TO effects") {}

bool EffectWriter::Course::goes_on(const Error& error) {
  if (error.code() == kBarred) {
    // Only with what fitted before it: that it is refused has to be committed before the next one fails.
    most = begun - 1;
    return true;
  }
  // Then the store may be at it yet.
  const bool ended = error.code() == ErrorCode::unknown_outcome || error.code() == ErrorCode::timeout;
  if (ended || begun == 0 || !SLUICE_GUARD(effects_at_fault_found)) {
    return false;
  }
  if (!file_is_sound) {
    most = 0;
  } else if (begun > 1) {
    most = fitting;
  } else {
    barred.emplace(last_begun,
                   Error(error.code(), "its effects could not be committed, and others could: " + error.message()));
  }
  return true;
}

EffectWriter::Course EffectWriter::Course::next() const {
  return most == 0 ? Course{.most = fitting, .file_is_sound = true}
                   : Course{.most = std::min(most * 2, kMany), .file_is_sound = file_is_sound};
}

void EffectWriter::begin() { begun_at_ = machine_now(); }

bool EffectWriter::may_begin(const Course& course) const {
  const bool late = machine_now() >= begun_at_ + CommitQueue::kWanted && SLUICE_GUARD(effects_let_others_in);
  return course.begun < course.most && (course.begun == 0 || !late);
}

void EffectWriter::settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
                          Course& course, WallTime now) {
  const Batch batch{half, completions, results, course, now};
  Deliveries& deliveries = records_.deliveries();
  with_effects_.clear();
  outboxes_.clear();
  // All of them or none: messages keep the order of their senders.
  sends_last_ = std::all_of(completions.begin(), completions.end(), sends_what_is_new);
  for (std::size_t i = 0; i < completions.size(); ++i) {
    results[i] = {};
    if (!completions[i].effects) {
      results[i].status = deliveries.settle(half, completions[i], now);
    } else if (const auto barred = course.barred.find(i); barred != course.barred.end()) {
      refuse(batch, i, barred->second);
    } else if (is_key_alone(*completions[i].effects)) {
      settle_key_alone(batch, i);
    } else {
      with_effects_.push_back(i);
    }
  }
  settle_effects(batch);
  if (sends_last_) {
    for (const Outbox& outbox : outboxes_) {
      put_down(outbox, now);
    }
  }
}

void EffectWriter::settle_effects(const Batch& batch) {
  Course& course = batch.course;
  course.begun = 0;
  if (course.most == 0) {
    // Something to commit, also where nothing else is: a page of the file as it is.
    const std::int64_t version = connection_.number("PRAGMA user_version");
    connection_.execute(("PRAGMA user_version = " + std::to_string(version)).c_str());
  }
  std::size_t done = 0;
  while (done < with_effects_.size() && !connection_.failed()) {
    const Run run = Run(with_effects_).subspan(done, std::min(kRun, with_effects_.size() - done));
    const std::size_t settled = settle_run(batch, run);
    done += settled;
    if (settled < run.size()) {
      break;
    }
  }
  course.left.assign(with_effects_.begin() + static_cast<std::ptrdiff_t>(done), with_effects_.end());
  for (const std::size_t index : course.left) {
    batch.results[index] = {SettleStatus::failed, {}};
  }
  if (course.begun > 0) {
    course.fitting = std::max<std::size_t>(1, connection_.failed() ? course.begun - 1 : course.begun / 2);
  }
}

/// How many from the first on have their result; the others were not come to.
std::size_t EffectWriter::settle_run(const Batch& batch, Run run) {
  std::size_t done = 0;
  while (done < run.size() && !connection_.failed()) {
    const Run rest = run.subspan(done);
    const Tally::Mark counted = records_.tally_mark();
    const std::size_t begun = batch.course.begun;
    savepoint_.run();
    const Attempt attempt = this->attempt(batch, rest);
    if (attempt.whole() || !SLUICE_GUARD(effects_atomic)) {
      release_.run();
      for (Outbox& outbox : outboxes_) {
        outbox.kept = sends_last_ ? outbox.messages.size() : 0;
      }
      return done + attempt.good;
    }
    roll_back_.run();
    release_.run();
    unstage();
    records_.back_to(counted);
    records_.keys().undone();
    records_.groups().undone();
    if (connection_.failed()) {
      return done;
    }
    batch.course.begun = begun;
    if (batch.results[rest[attempt.good]].status == SettleStatus::refused) {
      const std::size_t again = settle_run(batch, rest.first(attempt.good));
      done += again;
      if (again < attempt.good) {
        return done;
      }
      ++done;
      ++batch.course.begun;
      continue;
    }
    // A message that was sent before: whose it is, each finds out by itself.
    for (const std::size_t& one : rest.first(attempt.tried)) {
      if (settle_run(batch, Run(&one, 1)) == 0) {
        break;
      }
      ++done;
    }
    return done;
  }
  return done;
}

EffectWriter::Attempt EffectWriter::attempt(const Batch& batch, Run run) {
  unstage();
  std::size_t tried = 0;
  for (; tried < run.size() && may_begin(batch.course) && !connection_.failed(); ++tried) {
    ++batch.course.begun;
    batch.course.last_begun = run[tried];
    if (!settle_one(batch, run[tried])) {
      return {.good = tried, .tried = tried + 1};
    }
  }
  if (sends_last_ || send(batch)) {
    return {.good = tried, .tried = tried};
  }
  if (tried > 1) {
    batch.results[run[0]] = {};
  }
  return {.good = 0, .tried = tried};
}

void EffectWriter::unstage() {
  for (Outbox& outbox : outboxes_) {
    outbox.messages.resize(outbox.kept);
    outbox.senders.resize(outbox.kept);
  }
}

bool EffectWriter::settle_one(const Batch& batch, std::size_t index) {
  batch.results[index] = {};
  const Completion& completion = batch.completions[index];
  if (auto refused = refused_effects(*completion.effects)) {
    return refuse(batch, index, std::move(*refused));
  }
  // First of all the fence: whoever has lost the message must not write anything.
  batch.results[index].status = records_.deliveries().settle(batch.half, completion, batch.now);
  if (batch.results[index].status != SettleStatus::applied && SLUICE_GUARD(effects_fenced)) {
    return true;
  }
  const auto& key = completion.effects->key;
  if (key && !records_.keys().record(batch.half / 2, *key, completion.receipt.id, batch.now)) {
    return refuse(batch, index, key_taken());
  }
  return write(batch, index) && stage(batch, index);
}

/// Needs no savepoint: whether the key may be recorded is known before anything is written.
void EffectWriter::settle_key_alone(const Batch& batch, std::size_t index) {
  const Completion& completion = batch.completions[index];
  const KeyRecord& key = *completion.effects->key;
  const std::int64_t queue = batch.half / 2;
  if (!records_.keys().may_record(queue, key, completion.receipt.id, batch.now)) {
    refuse(batch, index, key_taken());
    return;
  }
  batch.results[index].status = records_.deliveries().settle(batch.half, completion, batch.now);
  if (batch.results[index].status == SettleStatus::applied) {
    records_.keys().put_record(queue, key, completion.receipt.id, batch.now);
  }
}

bool EffectWriter::write(const Batch& batch, std::size_t index) {
  const auto& writes = batch.completions[index].effects->writes;
  const SteadyTime until = writes.empty() ? SteadyTime() : machine_now() + UserStatements::kLongest;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const EffectWrite& write = writes[i];
    const bool reject = write.on_refusal == OnRefusal::reject;
    const auto* sql = std::get_if<SqlWrite>(&write.write);
    if (sql == nullptr) {
      return refuse(
          batch, index,
          Error(ErrorCode::invalid, name_of(write, i) + " on DynamoDB table " + std::get<ItemWrite>(write.write).table +
                                        " was refused: the message lies in a SQLite store; write with SQL "
                                        "statements there, or put the queue into DynamoDB"),
          reject);
    }
    if (const auto refusal = statements_.run(*sql, until)) {
      const std::string why = refusal->code == ErrorCode::conflict
                                  ? refused_condition(refusal->why, sql->statement, write.on_refusal)
                                  : refusal->why;
      Error error(refusal->code, name_of(write, i) + on_table(refusal->table) + " was refused: " + why);
      if (!connection_.in_transaction()) {
        batch.course.barred.emplace(index, error);
        connection_.fail(Error(kBarred, error.message()));
      }
      return refuse(batch, index, std::move(error), reject);
    }
  }
  return true;
}

bool EffectWriter::stage(const Batch& batch, std::size_t index) {
  for (const EmittedMessage& emitted : batch.completions[index].effects->messages) {
    auto refused = SharedStore::refused_name(emitted.queue);
    if (!refused) {
      refused = SharedStore::refused(emitted.message.id, content_bytes(emitted.message), most_bytes_);
    }
    if (!refused) {
      refused = refused_send_keys(emitted.message);
    }
    if (refused) {
      return refuse(batch, index,
                    Error(refused->code(), "message " + emitted.message.id + " to queue " + emitted.queue +
                                               " was refused: " + refused->message()));
    }
    auto outbox = std::find_if(outboxes_.begin(), outboxes_.end(),
                               [&emitted](const Outbox& one) { return one.queue == emitted.queue; });
    if (outbox == outboxes_.end()) {
      outbox = outboxes_.insert(outbox, {.queue = emitted.queue});
    }
    outbox->messages.push_back(&emitted);
    outbox->senders.push_back(index);
  }
  return true;
}

void EffectWriter::put_down(const Outbox& outbox, WallTime now) {
  sent_.assign(outbox.messages.size(), {});
  arrivals_.clear();
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    arrivals_.push_back({&outbox.messages[i]->message, &sent_[i]});
  }
  if (!arrivals_.empty()) {
    records_.sending().insert(records_.make_queue(outbox.queue), arrivals_, now);
  }
}

bool EffectWriter::send(const Batch& batch) {
  bool all = true;
  for (const Outbox& outbox : outboxes_) {
    put_down(outbox, batch.now);
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const bool taken = sent_[i].status == SendStatus::duplicate_id;
      if (taken || sent_[i].status == SendStatus::failed) {
        const std::string why = taken ? "a message of that id is there already; give it another id, or leave it out"
                                      : sent_[i].error.message();
        all = refuse(
            batch, outbox.senders[i],
            Error(taken ? ErrorCode::duplicate_id : sent_[i].error.code(),
                  "message " + outbox.messages[i]->message.id + " to queue " + outbox.queue + " was refused: " + why));
      }
    }
  }
  return all;
}

bool EffectWriter::refuse(const Batch& batch, std::size_t index, Error error, bool reject) {
  batch.results[index] = {SettleStatus::refused, std::move(error), reject};
  return false;
}

}  // namespace sluice::queue::sqlite
