#include "host/queue/dynamomq/inspector.hpp"

#include <algorithm>
#include <charconv>

namespace sluice::queue::dynamomq {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::size_t kLongestCursor = 16 * 1024;

dynamo::QueryRequest partition_query(const QueueTable& place, QueueType type) {
  dynamo::QueryRequest query;
  query.table = place.table;
  query.index = place.index;
  query.key_condition = "queue_type = :type";
  query.values.emplace(":type", std::string(to_string(type)));
  return query;
}

void count(QueueStats& stats, const StoredMessage& record, WallTime now) {
  switch (record.state(now)) {
    case MessageState::ready:
      ++stats.ready;
      if (!stats.oldest_ready || record.message.sent_at < *stats.oldest_ready) {
        stats.oldest_ready = record.message.sent_at;
      }
      break;
    case MessageState::in_flight:
      ++stats.in_flight;
      break;
    case MessageState::delayed:
      ++stats.delayed;
      break;
  }
}

Error not_found(const QueueTable& place, const std::string& id) {
  return {ErrorCode::not_found, "queue '" + place.queue + "' has no message '" + id + "'"};
}

int nibble(char digit) {
  const auto place = kHex.find(digit);
  return place == std::string_view::npos ? -1 : static_cast<int>(place);
}

}  // namespace

// "<length of sent_at>:<sent_at><id>" in hexadecimal.
std::string encode_cursor(const dynamo::Item& last_key) {
  const auto* sent_at = dynamo::find<std::string>(last_key, attribute::kSentAt);
  const auto* id = dynamo::find<std::string>(last_key, attribute::kId);
  if (sent_at == nullptr || id == nullptr) {
    return {};
  }
  const std::string plain = std::to_string(sent_at->size()) + ':' + *sent_at + *id;
  std::string cursor;
  cursor.reserve(plain.size() * 2);
  for (const char c : plain) {
    const auto byte = static_cast<unsigned char>(c);
    cursor += kHex[byte >> 4U];
    cursor += kHex[byte & 15U];
  }
  return cursor;
}

Result<dynamo::Item> decode_cursor(std::string_view cursor, QueueType type) {
  const Error invalid(ErrorCode::invalid,
                      "the cursor is not one that a list has given; leave it out to begin at the start");
  if (cursor.size() % 2 != 0 || cursor.size() > kLongestCursor) {
    return invalid;
  }
  std::string plain;
  for (std::size_t i = 0; i < cursor.size(); i += 2) {
    const int high = nibble(cursor[i]);
    const int low = nibble(cursor[i + 1]);
    if (high < 0 || low < 0) {
      return invalid;
    }
    plain += static_cast<char>(high * 16 + low);
  }
  std::size_t length = 0;
  const auto [stop, failure] = std::from_chars(plain.data(), plain.data() + plain.size(), length);
  const auto start = static_cast<std::size_t>(stop - plain.data()) + 1;
  if (failure != std::errc() || start > plain.size() || *stop != ':' || length == 0 || length >= plain.size() - start) {
    return invalid;
  }
  dynamo::Item key;
  key.emplace(attribute::kQueueType, std::string(to_string(type)));
  key.emplace(attribute::kSentAt, plain.substr(start, length));
  key.emplace(attribute::kId, plain.substr(start + length));
  return key;
}

Result<dynamo::Item> Inspector::record(const std::string& id, Deadline deadline) const {
  if (id.empty()) {
    return not_found(place_, id);  // DynamoDB refuses an empty key
  }
  dynamo::GetItemRequest request;
  request.table = place_.table;
  request.key.emplace(attribute::kId, id);
  request.consistent = true;
  auto found = parts_.client.get_item(request, deadline);
  if (!found) {
    return store_error(place_, found.error());
  }
  if (found->item.empty()) {
    return not_found(place_, id);
  }
  return std::move(found->item);
}

Result<StoredMessage> Inspector::get(const std::string& id, Deadline deadline) const {
  const auto item = record(id, deadline);
  if (!item) {
    return item.error();
  }
  return decode_record(*item);
}

Result<ListPage> Inspector::list(const ListRequest& request, Deadline deadline) const {
  dynamo::QueryRequest query = partition_query(place_, request.address.type);
  if (!request.cursor.empty()) {
    auto key = decode_cursor(request.cursor, request.address.type);
    if (!key) {
      return key.error();
    }
    query.exclusive_start_key = std::move(*key);
  }
  ListPage result;
  while (result.messages.size() < request.limit) {
    query.limit = static_cast<std::int64_t>(std::min<std::size_t>(request.limit - result.messages.size(), 1'000));
    auto page = parts_.client.query(query, deadline);
    if (!page) {
      return store_error(place_, page.error());
    }
    for (const auto& item : page->items) {
      result.messages.push_back(decode_record(item));
    }
    result.next = encode_cursor(page->last_evaluated_key);
    if (result.next.empty()) {
      break;
    }
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  }
  return result;
}

Result<QueueStats> Inspector::stats(QueueType type, Deadline deadline) const {
  dynamo::QueryRequest query = partition_query(place_, type);
  query.projection = "sent_at, received_at, receive_count, invisible_until_at";
  QueueStats stats;
  do {
    auto page = parts_.client.query(query, deadline);
    if (!page) {
      return store_error(place_, page.error());
    }
    const WallTime now = parts_.clock.wall_now();
    for (const auto& item : page->items) {
      count(stats, decode_record(item), now);
    }
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!query.exclusive_start_key.empty());
  return stats;
}

}  // namespace sluice::queue::dynamomq
