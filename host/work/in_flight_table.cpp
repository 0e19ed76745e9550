#include "host/work/in_flight_table.hpp"

#include "host/observe/trace_context.hpp"

namespace sluice::work {

namespace {

constexpr Duration kMaxMargin = std::chrono::seconds(1);
constexpr Duration kMaxCall = std::chrono::seconds(10);

// Never 0, which stands for none.
std::uint64_t fingerprint_of(const queue::Message& message) {
  const std::hash<std::string_view> hash;
  std::uint64_t mixed = hash(message.body);
  const auto mix = [&](std::string_view text) { mixed = mixed * 0x9e3779b97f4a7c15U + hash(text) + 1; };
  mix(message.content_type);
  mix(message.group);
  for (const auto& [name, value] : message.attributes) {
    if (name == observe::kTraceParent) {
      continue;  // each delivery has one of its own
    }
    mix(name);
    mix(value);
  }
  return mixed | 1U;
}

// Only what ended for good may stand for another run. What was to be tried again is tried again.
bool is_final(const Disposition& disposition) {
  return disposition.ending == Ending::done || disposition.ending == Ending::discarded ||
         disposition.ending == Ending::rejected;
}

std::uint64_t fingerprint_of(const Task& task) {
  return task.fingerprint != 0 ? task.fingerprint : fingerprint_of(task.message);
}

}  // namespace

SteadyTime LeaseTerms::usable_until(const Lease& lease) const {
  return lease.ends_at - std::min(visibility_ / 10, kMaxMargin);
}

Duration LeaseTerms::call_timeout() const { return std::min(visibility_ / 4, kMaxCall); }

Task& InFlightTable::admit(queue::Delivery&& delivery) {
  Task* task = nullptr;
  if (free_.empty()) {
    task = &storage_.emplace_back();
  } else {
    task = free_.back();
    free_.pop_back();
    // Made anew in its place: moving an empty one there costs as much as the message itself.
    std::destroy_at(task);
    std::construct_at(task);
  }
  if (crash_ledger_ != nullptr) {
    task->slot = crash_ledger_->hold(delivery);
  }
  task->suspect = delivery.suspect;
  task->part = delivery.receipt.part;
  task->message = std::move(delivery.message);
  task->lease = terms_.granted(std::move(delivery.receipt), delivery.leased_until);
  task->place = active_.size();
  active_.push_back(task);
  return *task;
}

Task* InFlightTable::resume(queue::Delivery& delivery, StepEffects& effects) {
  for (Task* task : active_) {
    // Two queues of one job may have messages of one id.
    const bool same = task->part == delivery.receipt.part && task->message.id == delivery.message.id &&
                      is_unchanged(*task, delivery.message);
    // Whoever waits for the key of what was lost may have been let in meanwhile.
    const bool runs_on = task->runs_on() && !task->in_call() && !task->key.marked;
    const bool in_call = task->open() && task->in_call();
    if (!same || !(task->open() || runs_on) || (in_call && !SLUICE_GUARD(own_claim_waits))) {
      continue;
    }
    if (!task->open()) {
      // It was counted as lost when that was told.
      task->take_up();
      adopt(*task, std::move(delivery), effects);
    } else if (in_call) {
      wait_for_answer(*task, std::move(delivery));
    } else {
      task->go_on();
      account_.ended(Ending::lost);
      adopt(*task, std::move(delivery), effects);
    }
    return task;
  }
  return nullptr;
}

void InFlightTable::end(Task& task, Ending ending) {
  if (ending == Ending::lost) {
    task.end_lost();
  } else {
    task.end();
  }
  if (task.key.marked && ending != Ending::done) {
    release_mark({{{}, task.key.key, task.message.id, {}, task.key.fence}, task.part});
  }
  if (closed_) {
    return;
  }
  account_.ended(ending);
  if (task.newer != nullptr) {
    // Nobody goes on with it.
    account_.ended(Ending::lost);
    task.newer.reset();
  }
}

void InFlightTable::tidy(Task& task) {
  if (!task.over()) {
    return;
  }
  SLUICE_ASSERT(active_[task.place] == &task);
  active_[task.place] = active_.back();
  active_[task.place]->place = task.place;
  active_.pop_back();
  // Not before its worker has given it back: until then what runs is held, whoever has the message.
  if (crash_ledger_ != nullptr) {
    crash_ledger_->drop(task.slot);
  }
  // Bodies can be large; an unused place keeps none.
  task.message = {};
  free_.push_back(&task);
}

bool is_unchanged(const Task& task, const queue::Message& message) {
  return task.message.sent_at == message.sent_at && message.attempt >= task.message.attempt &&
         fingerprint_of(task) == fingerprint_of(message);
}

void FinishedWork::keep(Task& task) {
  if (!is_final(task.disposition)) {
    task.fingerprint = fingerprint_of(task.message);
    task.message.body = {};
    return;
  }
  task.finished_here = true;
  kept_bytes_ += task.message.body.size();
  if (kept_bytes_ > kKeptBytes) {
    not_written(task);
  }
}

void FinishedWork::leave(Task& task, bool lost) {
  if (!task.finished_here) {
    return;
  }
  if (!lost) {
    kept_bytes_ -= task.message.body.size();
    return;
  }
  not_written(task);
  remember(task, std::move(task.disposition));
}

void FinishedWork::remember(const Task& task, Disposition&& disposition) {
  if (!is_final(disposition)) {
    return;
  }
  const std::uint64_t fingerprint = fingerprint_of(task);
  if (remembered_.size() >= kMaxRemembered) {
    remembered_.erase(order_.front());
    order_.pop_front();
  }
  const auto [entry, fresh] = remembered_.insert_or_assign(
      task.message.id, Remembered{task.message.sent_at, task.message.attempt, fingerprint, std::move(disposition)});
  if (fresh) {
    order_.push_back(entry->first);
  }
}

std::optional<Disposition> FinishedWork::recognise(const queue::Message& message) {
  if (remembered_.empty()) {
    return std::nullopt;
  }
  const auto found = remembered_.find(message.id);
  if (found == remembered_.end()) {
    return std::nullopt;
  }
  const Remembered& one = found->second;
  const bool same =
      one.sent_at == message.sent_at && message.attempt >= one.attempt && one.fingerprint == fingerprint_of(message);
  std::optional<Disposition> disposition;
  if (same) {
    disposition = std::move(found->second.disposition);
  }
  order_.erase(std::find(order_.begin(), order_.end(), message.id));
  remembered_.erase(found);
  return disposition;
}

void FinishedWork::changed(Task& task) {
  if (!task.finished_here || is_final(task.disposition)) {
    return;
  }
  not_written(task);
  task.finished_here = false;
}

void FinishedWork::not_written(Task& task) {
  if (task.finished_here && task.fingerprint == 0) {
    task.fingerprint = fingerprint_of(task.message);
    kept_bytes_ -= task.message.body.size();
    task.message.body = {};
  }
}

}  // namespace sluice::work
