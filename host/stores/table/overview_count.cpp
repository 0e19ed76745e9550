#include "host/stores/table/overview_count.hpp"

#include <utility>

namespace sluice::queue::table {

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
  if (most_errors_ > 0) {
    errors_.add(record.message.id, record.failure);
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

QueueOverview OverviewCount::finish() && {
  overview_.errors = std::move(errors_).finish(most_errors_, overview_.unlisted_errors);
  return std::move(overview_);
}

}  // namespace sluice::queue::table
