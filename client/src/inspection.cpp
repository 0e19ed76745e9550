#include <algorithm>
#include <utility>

#include "client/src/core.hpp"

namespace sluice::client {
namespace {

using detail::Asked;

constexpr std::size_t kStatsIds = 100;
constexpr std::size_t kErrorGroups = 10;
constexpr std::size_t kDefaultListSize = 10;
// What a list's cursor begins with: the half that it stands in.
constexpr char kStandardMark = 'S';
constexpr char kDlqMark = 'D';

/// A place in a walk over one half or both.
struct Place {
  QueueType type = QueueType::standard;
  std::string cursor;
};

std::optional<Place> place_of(const ListOptions& options) {
  if (options.cursor.empty()) {
    return Place{options.queue_type.value_or(QueueType::standard), {}};
  }
  const char mark = options.cursor.front();
  const QueueType type = mark == kDlqMark ? QueueType::dlq : QueueType::standard;
  if ((mark != kStandardMark && mark != kDlqMark) || (options.queue_type && *options.queue_type != type)) {
    return std::nullopt;
  }
  return Place{type, options.cursor.substr(1)};
}

}  // namespace

Result<QueueStats> QueueClient::queue_stats() {
  auto seen =
      core_->oper().overview({.half = queue::Half::standard, .ids = kStatsIds, .exact = true}, core_->deadline());
  if (!seen) {
    return core_->error(seen.error(), Asked::read);
  }
  QueueStats stats;
  stats.first_100_ids_in_queue = std::move(seen->first_ids);
  stats.first_100_ids_in_queue_processing = std::move(seen->first_in_flight_ids);
  stats.total_messages_in_queue = seen->counts.total();
  stats.total_messages_in_queue_processing = seen->counts.hidden();
  stats.total_messages_in_queue_ready = seen->counts.total() - seen->counts.hidden();
  stats.total_messages_in_queue_delayed = seen->counts.delayed;
  return stats;
}

Result<DlqStats> QueueClient::dlq_stats() {
  auto seen = core_->oper().overview(
      {.half = queue::Half::dlq, .ids = kStatsIds, .errors = kErrorGroups, .exact = true}, core_->deadline());
  if (!seen) {
    return core_->error(seen.error(), Asked::read);
  }
  DlqStats stats;
  stats.first_100_ids_in_queue = std::move(seen->first_ids);
  stats.total_messages_in_dlq = seen->counts.total();
  for (queue::ErrorGroup& group : seen->errors) {
    stats.errors.push_back({std::move(group.error), group.count, std::move(group.example)});
  }
  return stats;
}

Result<MessageList> QueueClient::list(const ListOptions& options) {
  auto place = place_of(options);
  if (!place) {
    return Error(ErrorKind::building_expression, "the cursor '" + options.cursor + "' is none of this list");
  }
  const std::size_t size = options.size > 0 ? static_cast<std::size_t>(options.size) : kDefaultListSize;
  const Deadline deadline = core_->deadline();
  MessageList list;
  while (list.messages.size() < size) {
    auto page = core_->oper().list(
        {.half = detail::to_store(place->type), .limit = size - list.messages.size(), .cursor = place->cursor},
        deadline);
    if (!page) {
      return core_->error(page.error(), Asked::read);
    }
    for (queue::StoredMessage& stored : page->messages) {
      list.messages.push_back(detail::to_public(std::move(stored)));
    }
    place->cursor = std::move(page->next);
    if (!place->cursor.empty()) {
      list.next = (place->type == QueueType::dlq ? kDlqMark : kStandardMark) + place->cursor;
    } else if (place->type == QueueType::standard && !options.queue_type) {
      place->type = QueueType::dlq;
      list.next = kDlqMark;
    } else {
      list.next.clear();
      break;
    }
  }
  std::stable_sort(list.messages.begin(), list.messages.end(),
                   [](const Message& a, const Message& b) { return a.updated_at < b.updated_at; });
  return list;
}

}  // namespace sluice::client
