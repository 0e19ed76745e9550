#include "host/stores/dynamomq/overview_count.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sluice::queue::dynamomq {

void OverviewCount::add(const StoredMessage& record) {
  const MessageState state = record.state(now_);
  count(record, state);
  if (overview_.first_ids.size() < most_ids_) {
    overview_.first_ids.push_back(record.message.id);
  }
  const bool hidden = record.invisible_until && now_ <= *record.invisible_until;
  overview_.counts.delayed_by_sent_at += state == MessageState::delayed && !hidden ? 1 : 0;
  if (hidden && overview_.first_in_flight_ids.size() < most_ids_) {
    overview_.first_in_flight_ids.push_back(record.message.id);
  }
  if (most_errors_ > 0 && !record.failure.empty()) {
    note_failure(record);
  }
}

void OverviewCount::count(const StoredMessage& record, MessageState state) {
  QueueStats& counts = overview_.counts;
  switch (state) {
    case MessageState::ready:
      ++counts.ready;
      if (!counts.oldest_ready || record.message.sent_at < *counts.oldest_ready) {
        counts.oldest_ready = record.message.sent_at;
      }
      break;
    case MessageState::in_flight:
      ++counts.in_flight;
      break;
    case MessageState::delayed:
      ++counts.delayed;
      break;
  }
}

void OverviewCount::note_failure(const StoredMessage& record) {
  const Failure& failure = record.failure;
  auto found = errors_.find(failure.error);
  if (found == errors_.end()) {
    if (errors_.size() >= kMaxErrors) {
      return;
    }
    found = errors_.emplace(failure.error, ErrorGroup{failure.error, 0, {}, failure.failed_at}).first;
  }
  ErrorGroup& group = found->second;
  ++group.count;
  if (group.example.empty() || failure.failed_at >= group.last_failed_at) {
    group.example = record.message.id;
    group.last_failed_at = failure.failed_at;
  }
}

QueueOverview OverviewCount::finish() && {
  auto& groups = overview_.errors;
  groups.reserve(errors_.size());
  for (auto& [error, group] : errors_) {
    groups.push_back(std::move(group));
  }
  std::sort(groups.begin(), groups.end(), [](const ErrorGroup& a, const ErrorGroup& b) {
    return std::tie(b.count, b.last_failed_at, a.error) < std::tie(a.count, a.last_failed_at, b.error);
  });
  if (groups.size() > most_errors_) {
    groups.resize(most_errors_);
  }
  return std::move(overview_);
}

}  // namespace sluice::queue::dynamomq
