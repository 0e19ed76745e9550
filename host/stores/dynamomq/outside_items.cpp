#include "host/stores/dynamomq/outside_items.hpp"

#include <utility>

#include "base/text/utf8.hpp"
#include "host/queue/message.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/table_errors.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::dynamomq {
namespace {

constexpr std::size_t kShownBytes = 100;

// Why no half shows the item; empty: one does. DynamoDB refuses key attributes of another type than the index's.
std::string why_outside(const dynamo::Item& item) {
  const auto* half = dynamo::find<std::string>(item, attribute::kQueueType);
  if (half == nullptr) {
    return "it has no queue_type";
  }
  if (*half != to_string(Half::standard) && *half != to_string(Half::dlq)) {
    return "its queue_type is '" + clean_utf8(*half, kShownBytes, "?") + "'";
  }
  return item.find(attribute::kSentAt) == item.end() ? "it has no sent_at" : std::string();
}

void note(OutsideItems& found, const dynamo::Item& item) {
  ++found.read;
  std::string why = why_outside(item);
  if (why.empty()) {
    return;
  }
  const auto* id = dynamo::find<std::string>(item, attribute::kId);
  const std::string name = id == nullptr ? std::string() : *id;
  if (table::is_notice_id(name) || table::is_key_id(name) || table::is_mark_id(name)) {
    ++found.ours;
    return;
  }
  ++found.outside;
  if (found.first.size() < OutsideItems::kNamed) {
    found.first.push_back({clean_utf8(name, kShownBytes, "?"), std::move(why)});
  }
}

}  // namespace

Result<OutsideItems> find_outside_items(dynamo::Client& client, const table::QueueTable& place,
                                        std::size_t most_requests, Deadline deadline) {
  dynamo::ScanRequest scan;
  scan.table = place.table;
  scan.projection = "id, queue_type, sent_at";
  OutsideItems found;
  for (std::size_t requests = 0; requests < most_requests; ++requests) {
    auto page = client.scan(scan, deadline);
    if (!page) {
      return table::store_error(place, page.error());
    }
    found.read_units += page->capacity.read;
    for (const auto& item : page->items) {
      note(found, item);
    }
    scan.exclusive_start_key = std::move(page->last_evaluated_key);
    if (scan.exclusive_start_key.empty()) {
      return found;
    }
  }
  found.whole = false;
  return found;
}

}  // namespace sluice::queue::dynamomq
