#include "host/operate/queue_counter.hpp"

#include <algorithm>
#include <utility>

namespace sluice::operate {
namespace {

void add(queue::QueueStats& stats, const queue::StoredMessage& record, WallTime now) {
  switch (record.state(now)) {
    case queue::MessageState::ready:
      ++stats.ready;
      stats.oldest_ready = std::min(stats.oldest_ready.value_or(record.message.sent_at), record.message.sent_at);
      break;
    case queue::MessageState::in_flight:
      ++stats.in_flight;
      break;
    case queue::MessageState::delayed:
      ++stats.delayed;
      break;
  }
}

}  // namespace

QueueCounter::QueueCounter(std::unique_ptr<queue::Operator> oper, Method method, const Clock& clock)
    : operator_(std::move(oper)), method_(method), clock_(clock) {}

Result<QueueCount> QueueCounter::step(Deadline deadline) {
  for (const auto& [half, sweep] :
       {std::pair(queue::Half::standard, &standard_), std::pair(queue::Half::dlq, &dead_)}) {
    if (auto counted = method_ == Method::at_once ? count(half, *sweep, deadline) : page(half, *sweep, deadline);
        !counted) {
      return counted.error();
    }
  }
  QueueCount told;
  const queue::QueueStats& standard = standard_.told();
  told.ready = standard.ready;
  told.in_flight = standard.in_flight;
  told.delayed = standard.delayed;
  told.oldest_ready = standard.oldest_ready;
  told.dead = dead_.told().total();
  told.whole = standard_.last_whole.has_value();
  told.dead_whole = dead_.last_whole.has_value();
  told.counted_at = told.whole ? standard_.whole_at : clock_.wall_now();
  return told;
}

Result<void> QueueCounter::count(queue::Half half, Sweep& sweep, Deadline deadline) {
  SLUICE_TRY(stats, operator_->stats({.half = half}, deadline));
  sweep.last_whole = *stats;
  sweep.whole_at = clock_.wall_now();
  return {};
}

Result<void> QueueCounter::page(queue::Half half, Sweep& sweep, Deadline deadline) {
  queue::ListRequest request;
  request.half = half;
  request.limit = kPage;
  request.cursor = sweep.cursor;
  request.content = false;
  SLUICE_TRY(found, operator_->list(request, deadline));
  const bool head = sweep.cursor.empty();
  if (head) {
    sweep.under_way = {};
  }
  const WallTime now = clock_.wall_now();
  for (const queue::StoredMessage& record : found->messages) {
    add(sweep.under_way, record, now);
  }
  if (head && sweep.last_whole && sweep.under_way.oldest_ready) {
    sweep.last_whole->oldest_ready = sweep.under_way.oldest_ready;  // known anew, whatever lies behind it
  }
  sweep.cursor = std::move(found->next);
  if (sweep.cursor.empty()) {
    sweep.last_whole = sweep.under_way;
    sweep.whole_at = now;
  }
  return {};
}

}  // namespace sluice::operate
