#include "host/stores/sqlite/effect_writer.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/guard.hpp"
#include "host/stores/sqlite/commit_queue.hpp"
#include "host/stores/sqlite/keys.hpp"
#include "host/stores/sqlite/new_messages.hpp"
#include "host/stores/sqlite/records.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

namespace {

// Of a transaction that failed because something was barred by it: the same call goes through without.
constexpr ErrorCode kBarred = ErrorCode::cancelled;

}  // namespace

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
    most = 1;
  } else {
    barred.emplace(last_begun,
                   Error(error.code(), "its effects could not be committed, and others could: " + error.message()));
  }
  return true;
}

void EffectWriter::Course::committed() {
  file_is_sound = file_is_sound || most == 0;
  most = most == 0 ? 1 : std::min(most * 2, kMany);
  todo = std::exchange(left, {});
}

void EffectWriter::begin() { begun_at_ = machine_now(); }

bool EffectWriter::may_begin(const Course& course) const {
  const bool late = machine_now() >= begun_at_ + CommitQueue::kWanted && SLUICE_GUARD(effects_let_others_in);
  return course.begun < course.most && (course.begun == 0 || !late);
}

void EffectWriter::settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
                          Course& course, WallTime now) {
  const Batch batch{half, completions, results, course, now};
  std::vector<std::size_t> with_effects;
  for (const std::size_t i : course.todo) {
    results[i] = {};
    if (!completions[i].effects) {
      results[i].status = parts_.records.settle(half, completions[i], now);
    } else if (const auto barred = course.barred.find(i); barred != course.barred.end()) {
      results[i] = {SettleStatus::refused, barred->second};
    } else {
      with_effects.push_back(i);
    }
  }
  settle_effects(batch, with_effects);
}

void EffectWriter::settle_effects(const Batch& batch, Run all) {
  Course& course = batch.course;
  course.begun = 0;
  if (course.most == 0) {
    // Something to commit, also where nothing else is: a page of the file as it is.
    const std::int64_t version = connection_.number("PRAGMA user_version");
    connection_.execute(("PRAGMA user_version = " + std::to_string(version)).c_str());
  }
  std::size_t done = 0;
  if (!course.apart) {
    done = settle_run(batch, all);
    course.begun = course.apart ? 0 : course.begun;
    done = course.apart ? 0 : done;
  }
  while (course.apart && done < all.size() && may_begin(course) && !connection_.failed()) {
    settle_run(batch, all.subspan(done++, 1));
  }
  course.left.assign(all.begin() + static_cast<std::ptrdiff_t>(done), all.end());
  for (const std::size_t index : course.left) {
    batch.results[index] = {SettleStatus::failed, {}};
  }
}

std::size_t EffectWriter::settle_run(const Batch& batch, Run run) {
  const Tally::Mark counted = parts_.records.tally().mark();
  savepoint_.run();
  std::size_t tried = 0;
  bool good = true;
  while (good && tried < run.size() && may_begin(batch.course) && !connection_.failed()) {
    ++batch.course.begun;
    batch.course.last_begun = run[tried];
    good = settle_one(batch, run[tried++]);
  }
  if (!good && SLUICE_GUARD(effects_atomic)) {
    roll_back_.run();
    parts_.records.tally().back_to(counted);
  }
  release_.run();
  // The failure of the connection says which one it was.
  batch.course.apart = batch.course.apart || (!good && !connection_.failed());
  return tried;
}

bool EffectWriter::settle_one(const Batch& batch, std::size_t index) {
  const auto check = [this](const EmittedMessage& emitted) {
    auto refused = refused_name(emitted.queue);
    return refused ? refused : sqlite::refused_message(emitted.message.id, content_bytes(emitted.message), most_bytes_);
  };
  batch.results[index] = {};
  if (auto refused = core::refused_at_once(*batch.completions[index].effects, core::WriteKind::sql, check)) {
    return refuse(batch, index, std::move(*refused));
  }
  for (const core::TransactionPart part : core::kTransactionOrder) {
    if (!make(batch, index, part)) {
      return false;
    }
    if (batch.results[index].status != SettleStatus::applied && SLUICE_GUARD(effects_fenced)) {
      break;  // of somebody else's message nothing is written
    }
  }
  return true;
}

bool EffectWriter::make(const Batch& batch, std::size_t index, core::TransactionPart part) {
  const Completion& completion = batch.completions[index];
  const auto& key = completion.effects->key;
  const std::int64_t queue = batch.half / 2;
  switch (part) {
    case core::TransactionPart::end:
      batch.results[index].status = parts_.records.settle(batch.half, completion, batch.now);
      return true;
    case core::TransactionPart::key:
      if (key && !parts_.keys.may_record(queue, *key, completion.receipt.id, batch.now)) {
        return refuse(batch, index, {SettleStatus::refused, taken_key()});
      }
      if (key) {
        parts_.keys.put_record(queue, *key, completion.receipt.id, batch.now);
      }
      return true;
    case core::TransactionPart::writes:
      return write(batch, index);
    case core::TransactionPart::messages:
      return send(batch, index);
  }
  return true;
}

bool EffectWriter::write(const Batch& batch, std::size_t index) {
  const auto& writes = batch.completions[index].effects->writes;
  const SteadyTime until = writes.empty() ? SteadyTime() : machine_now() + UserStatements::kLongest;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const auto& sql = std::get<SqlWrite>(writes[i].write);
    if (const auto refusal = statements_.run(sql, until)) {
      const core::EffectPart part = core::part_of(writes[i], i, refusal->table);
      SettleResult result = refusal->code == ErrorCode::conflict
                                ? core::refused_condition(part, refusal->why, sql.statement)
                                : core::refused(part, refusal->code, refusal->why);
      if (!connection_.in_transaction()) {
        batch.course.barred.emplace(index, result.error);
        connection_.fail(Error(kBarred, result.error.message()));
      }
      return refuse(batch, index, std::move(result));
    }
  }
  return true;
}

bool EffectWriter::send(const Batch& batch, std::size_t index) {
  for (const EmittedMessage& emitted : batch.completions[index].effects->messages) {
    SendResult sent;
    parts_.sending.insert(parts_.records.make_queue(emitted.queue), {&emitted.message, 1}, {&sent, 1}, batch.now);
    if (sent.status == SendStatus::duplicate_id) {
      return refuse(batch, index, core::refused_message(emitted, taken_id()));
    }
  }
  return true;
}

bool EffectWriter::refuse(const Batch& batch, std::size_t index, SettleResult result) {
  batch.results[index] = std::move(result);
  return false;
}

}  // namespace sluice::queue::sqlite
