#include "host/work/finished_work.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "host/observe/trace_context.hpp"

namespace sluice::work {
namespace {

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

}  // namespace sluice::work
