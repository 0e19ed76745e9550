#include "host/stores/sqlite/effect_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "host/queue/effect_checks.hpp"
#include "host/queue/refused_condition.hpp"
#include "host/queue/send_keys.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

namespace {

// Completions in one savepoint. SQLite keeps a copy of each page that is changed within it, and all of them are made
// again when one is refused.
constexpr std::size_t kRun = 128;

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

void EffectWriter::settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
                          Barred& barred, WallTime now) {
  const Batch batch{half, completions, results, barred, now};
  Deliveries& deliveries = records_.deliveries();
  deliveries.begin_settling(half, completions, now);
  with_effects_.clear();
  outboxes_.clear();
  // All of them or none: messages keep the order of their senders.
  sends_last_ = std::all_of(completions.begin(), completions.end(), sends_what_is_new);
  for (std::size_t i = 0; i < completions.size(); ++i) {
    results[i] = {};
    if (completions[i].effects && is_key_alone(*completions[i].effects)) {
      settle_key_alone(batch, i);
    } else if (completions[i].effects) {
      with_effects_.push_back(i);
    } else {
      results[i].status = deliveries.settle_one(half, completions[i], now);
    }
  }
  records_.keys().flush_records();
  for (std::size_t from = 0; from < with_effects_.size(); from += kRun) {
    settle_run(batch, Run(with_effects_).subspan(from, std::min(kRun, with_effects_.size() - from)));
  }
  deliveries.end_settling(half, now);
  if (sends_last_) {
    for (const Outbox& outbox : outboxes_) {
      put_down(outbox, now);
    }
  }
}

void EffectWriter::settle_run(const Batch& batch, Run run) {
  Deliveries& deliveries = records_.deliveries();
  while (!run.empty() && !connection_.failed()) {
    const Tally::Mark counted = records_.tally_mark();
    const std::size_t settled = deliveries.settle_mark();
    const Keys::Mark keyed = records_.keys().mark();
    records_.lanes().flush();
    savepoint_.run();
    const std::size_t good = attempt(batch, run);
    records_.keys().flush_records();
    if (good == run.size() || !SLUICE_GUARD(effects_atomic)) {
      release_.run();
      for (Outbox& outbox : outboxes_) {
        outbox.kept = sends_last_ ? outbox.messages.size() : 0;
      }
      return;
    }
    roll_back_.run();
    release_.run();
    unstage();
    deliveries.settle_back_to(settled);
    records_.back_to(counted);
    records_.keys().back_to(keyed);
    records_.lanes().undone();
    if (run.size() == 1) {
      return;
    }
    if (batch.results[run[good]].status == SettleStatus::refused) {
      settle_run(batch, run.first(good));
      run = run.subspan(good + 1);
      continue;
    }
    // A message that was sent before: whose it is, each finds out by itself.
    for (const std::size_t& one : run) {
      settle_run(batch, Run(&one, 1));
    }
    return;
  }
}

/// How many from the first on can be committed. The result of the next one says why it cannot, unless that shows only
/// one by one.
std::size_t EffectWriter::attempt(const Batch& batch, Run run) {
  unstage();
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (!settle_one(batch, run[i])) {
      return i;
    }
  }
  if (sends_last_ || send(batch)) {
    return run.size();
  }
  if (run.size() > 1) {
    batch.results[run[0]] = {};
  }
  return 0;
}

void EffectWriter::unstage() {
  for (Outbox& outbox : outboxes_) {
    outbox.messages.resize(outbox.kept);
    outbox.senders.resize(outbox.kept);
  }
}

bool EffectWriter::settle_one(const Batch& batch, std::size_t index) {
  batch.results[index] = {};
  if (const auto barred = batch.barred.find(index); barred != batch.barred.end()) {
    return refuse(batch, index, barred->second);
  }
  const Completion& completion = batch.completions[index];
  if (auto refused = refused_effects(*completion.effects)) {
    return refuse(batch, index, std::move(*refused));
  }
  // First of all the fence: whoever has lost the message must not write anything.
  batch.results[index].status = records_.deliveries().settle_one(batch.half, completion, batch.now);
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
  batch.results[index].status = records_.deliveries().settle_one(batch.half, completion, batch.now);
  if (batch.results[index].status == SettleStatus::applied) {
    records_.keys().put_record(queue, key, completion.receipt.id, batch.now);
  }
}

bool EffectWriter::write(const Batch& batch, std::size_t index) {
  const auto& writes = batch.completions[index].effects->writes;
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
    if (const auto refusal = statements_.run(*sql)) {
      const std::string why = refusal->code == ErrorCode::conflict
                                  ? refused_condition(refusal->why, sql->statement, write.on_refusal)
                                  : refusal->why;
      Error error(refusal->code, name_of(write, i) + on_table(refusal->table) + " was refused: " + why);
      if (!connection_.in_transaction()) {
        batch.barred.emplace(index, error);
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
    arrivals_.push_back({&outbox.messages[i]->message, &sent_[i], outbox.messages[i]->made_id});
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
