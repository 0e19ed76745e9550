#include "host/stores/dynamomq/outside_items.hpp"

#include <utility>

#include "base/text/utf8.hpp"
#include "dynamo/item_reading.hpp"
#include "host/queue/message.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/metadata_items.hpp"
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

}  // namespace

Result<table::ExaminedItems> find_outside_items(dynamo::Client& client, const std::string& table,
                                                std::size_t most_requests, Deadline deadline) {
  dynamo::ScanRequest scan;
  scan.table = table;
  scan.projection = "id, queue_type, sent_at";
  const auto note = [](table::ExaminedItems& found, const dynamo::Item& item) {
    const std::string name = dynamo::text_of(item, attribute::kId);
    if (std::string why = why_outside(item); why.empty()) {
      return;
    } else if (table::is_metadata_id(name)) {
      ++found.ours;
    } else {
      found.note_outside(clean_utf8(name, kShownBytes, "?"), std::move(why));
    }
  };
  SLUICE_TRY(found, table::examine_each(client, std::move(scan), most_requests, deadline, note));
  if (found->outside > 0) {
    const bool one = found->outside == 1;
    found->advise(std::to_string(found->outside) + (one ? " item is" : " items are") +
                      " in neither half of the queue, where no command but `get` and no consumer sees " +
                      (one ? "it: " : "them: ") + found->named(),
                  "give each a queue_type of STANDARD or DLQ and a sent_at, or delete it");
  }
  return found;
}

}  // namespace sluice::queue::dynamomq
