#include "host/stores/dynamomq/inspector.hpp"

#include <algorithm>
#include <charconv>

#include "base/text/hex.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "host/queue/message.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/overview_count.hpp"

namespace sluice::queue::dynamomq {
namespace {

constexpr char kTableCursor = 't';  // what a cursor of a consistent list begins with; no hexadecimal digit
constexpr std::size_t kScanPage = 1'000;
constexpr std::size_t kLongestCursor = 16 * 1024;
// A page of a list ends there, short of its limit, so that nobody's memory depends on the size of messages.
constexpr std::size_t kListBytes = std::size_t{16} * 1024 * 1024;

// The units read are those of whole items all the same; what is left out is not transferred.
constexpr const char* kRecordProjection =
    "id, receive_count, queue_type, #version, created_at, updated_at, sent_at, received_at, invisible_until_at, "
    "sluice_failure, sluice_suspect";
constexpr const char* kOverviewProjection = "id, sent_at, received_at, receive_count, invisible_until_at";
constexpr const char* kOverviewWithErrors =
    "id, sent_at, received_at, receive_count, invisible_until_at, sluice_failure";

dynamo::QueryRequest partition_query(const table::QueueTable& place, Half half) {
  dynamo::QueryRequest query;
  query.table = place.table;
  query.index = place.index;
  query.key_condition = "queue_type = :type";
  query.values.emplace(":type", std::string(to_string(half)));
  return query;
}

void project(dynamo::QueryRequest& query, const char* attributes) {
  query.projection = attributes;
  if (query.projection.find("#version") != std::string::npos) {
    query.names.emplace("#version", "version");  // the only one whose name is reserved
  }
}

StoredMessage listed(const dynamo::Item& item, const ListRequest& request) {
  if (!request.content) {
    StoredMessage record = decode_standing(item);
    note_oddities(record, item);
    return record;
  }
  StoredMessage record = decode_record(item);
  if (request.native && !says_all(record, item)) {
    record.native = dynamo::encode_item(item);
  }
  return record;
}

std::optional<std::string> bytes_of(std::string_view hex) {
  return hex.size() > kLongestCursor ? std::nullopt : from_hex(hex);
}

Error no_cursor() {
  return {ErrorCode::invalid, "the cursor is not one that such a list has given; leave it out to begin at the start"};
}

dynamo::ScanRequest table_scan(const table::QueueTable& place, Half half) {
  dynamo::ScanRequest scan;
  scan.table = place.table;
  scan.filter = "queue_type = :type";
  scan.values.emplace(":type", std::string(to_string(half)));
  scan.consistent = true;
  return scan;
}

Result<dynamo::Item> decode_table_cursor(std::string_view cursor) {
  const auto id = cursor.front() == kTableCursor ? bytes_of(cursor.substr(1)) : std::nullopt;
  if (!id || !is_storable_id(*id)) {
    return no_cursor();
  }
  return dynamo::Item{{std::string(attribute::kId), *id}};
}

}  // namespace

// "<length of sent_at>:<sent_at><id>" in hexadecimal.
std::string encode_cursor(const dynamo::Item& last_key) {
  const auto* sent_at = dynamo::find<std::string>(last_key, attribute::kSentAt);
  const auto* id = dynamo::find<std::string>(last_key, attribute::kId);
  if (sent_at == nullptr || id == nullptr) {
    return {};
  }
  return to_hex(std::to_string(sent_at->size()) + ':' + *sent_at + *id);
}

Result<dynamo::Item> decode_cursor(std::string_view cursor, Half half) {
  const auto plain = bytes_of(cursor);
  if (!plain) {
    return no_cursor();
  }
  std::size_t length = 0;
  const auto [stop, failure] = std::from_chars(plain->data(), plain->data() + plain->size(), length);
  const auto start = static_cast<std::size_t>(stop - plain->data()) + 1;
  if (failure != std::errc() || start > plain->size() || *stop != ':' || length == 0 ||
      length >= plain->size() - start) {
    return no_cursor();
  }
  dynamo::Item key;
  key.emplace(attribute::kQueueType, std::string(to_string(half)));
  key.emplace(attribute::kSentAt, plain->substr(start, length));
  key.emplace(attribute::kId, plain->substr(start + length));
  return key;
}

Result<dynamo::Item> Inspector::record(const std::string& id, Deadline deadline) const {
  if (!is_storable_id(id)) {
    return no_message(place_.queue, clean_utf8(id, 100, "?"));
  }
  dynamo::GetItemRequest request;
  request.table = place_.table;
  request.key.emplace(attribute::kId, id);
  request.consistent = true;
  auto found = parts_.client.get_item(request, deadline);
  if (!found) {
    return table::store_error(place_, found.error());
  }
  if (found->item.empty()) {
    return no_message(place_.queue, id);
  }
  return std::move(found->item);
}

Result<StoredMessage> Inspector::get(const std::string& id, Deadline deadline) const {
  SLUICE_TRY(item, record(id, deadline));
  return decode_record(*item);
}

Result<ListPage> Inspector::list(const ListRequest& request, Deadline deadline) const {
  return request.consistent ? list_table(request, deadline) : list_index(request, deadline);
}

Result<ListPage> Inspector::list_table(const ListRequest& request, Deadline deadline) const {
  dynamo::ScanRequest scan = table_scan(place_, request.half);
  scan.limit = kScanPage;
  if (!request.content) {
    scan.projection = kRecordProjection;
    scan.names.emplace("#version", "version");
  }
  if (!request.cursor.empty()) {
    SLUICE_TRY(key, decode_table_cursor(request.cursor));
    scan.exclusive_start_key = std::move(*key);
  }
  ListPage result;
  std::size_t bytes = 0;
  for (bool more = true; more;) {
    auto page = parts_.client.scan(scan, deadline);
    if (!page) {
      return table::store_error(place_, page.error());
    }
    for (const auto& item : page->items) {
      if (result.messages.size() == request.limit || bytes >= kListBytes) {
        result.next = kTableCursor + to_hex(result.messages.back().message.id);
        return result;
      }
      result.messages.push_back(listed(item, request));
      bytes += result.messages.back().message.body.size() + result.messages.back().native.size();
    }
    scan.exclusive_start_key = std::move(page->last_evaluated_key);
    more = !scan.exclusive_start_key.empty();
  }
  return result;
}

Result<ListPage> Inspector::list_index(const ListRequest& request, Deadline deadline) const {
  dynamo::QueryRequest query = partition_query(place_, request.half);
  query.forward = !request.newest_first;
  if (!request.content) {
    project(query, kRecordProjection);
  }
  if (!request.cursor.empty()) {
    SLUICE_TRY(key, decode_cursor(request.cursor, request.half));
    query.exclusive_start_key = std::move(*key);
  }
  ListPage result;
  std::size_t bytes = 0;
  while (result.messages.size() < request.limit && bytes < kListBytes) {
    query.limit = static_cast<std::int64_t>(std::min<std::size_t>(request.limit - result.messages.size(), 1'000));
    auto page = parts_.client.query(query, deadline);
    if (!page) {
      return table::store_error(place_, page.error());
    }
    for (const auto& item : page->items) {
      result.messages.push_back(listed(item, request));
      bytes += result.messages.back().message.body.size() + result.messages.back().native.size();
    }
    result.next = encode_cursor(page->last_evaluated_key);
    if (result.next.empty()) {
      break;
    }
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  }
  return result;
}

Result<QueueStats> Inspector::stats(const StatsRequest& request, Deadline deadline) const {
  const OverviewRequest wanted{.half = request.half, .ids = 0};
  if (!request.consistent) {
    auto seen = overview(wanted, deadline);
    return seen ? Result<QueueStats>(seen->counts) : seen.error();
  }
  dynamo::ScanRequest scan = table_scan(place_, request.half);
  scan.projection = kOverviewProjection;
  std::optional<table::OverviewCount> count;
  do {
    auto page = parts_.client.scan(scan, deadline);
    if (!page) {
      return table::store_error(place_, page.error());
    }
    add_page(count, wanted, *page);
    scan.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!scan.exclusive_start_key.empty());
  return std::move(*count).finish().counts;
}

// The time by which the records are judged is taken after the first answer, which may have put it right.
void Inspector::add_page(std::optional<table::OverviewCount>& count, const OverviewRequest& request,
                         const dynamo::Page& page) const {
  if (!count) {
    count.emplace(request, parts_.clock.wall_now());
  }
  for (const auto& item : page.items) {
    count->add(decode_standing(item));
  }
}

Result<QueueOverview> Inspector::overview(const OverviewRequest& request, Deadline deadline) const {
  dynamo::QueryRequest query = partition_query(place_, request.half);
  project(query, request.errors > 0 ? kOverviewWithErrors : kOverviewProjection);
  std::optional<table::OverviewCount> count;
  do {
    auto page = parts_.client.query(query, deadline);
    if (!page) {
      return table::store_error(place_, page.error());
    }
    add_page(count, request, *page);
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!query.exclusive_start_key.empty());
  return std::move(*count).finish();
}

Result<std::optional<WallTime>> Inspector::oldest_sent_at(Half half, Deadline deadline) const {
  dynamo::QueryRequest query = partition_query(place_, half);
  query.projection = "sent_at";
  query.limit = 1;
  const auto page = parts_.client.query(query, deadline);
  if (!page) {
    return table::store_error(place_, page.error());
  }
  if (page->items.empty()) {
    return std::optional<WallTime>();
  }
  return Candidate::of(page->items.front()).sent_at;
}

}  // namespace sluice::queue::dynamomq
