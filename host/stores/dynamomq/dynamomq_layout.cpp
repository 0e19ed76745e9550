#include <utility>

#include "base/ranges.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/dynamomq/dynamomq_roles.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/record_writes.hpp"

namespace sluice::queue::dynamomq {
namespace {

class DynamoMqLayout final : public table::RecordLayout {
 public:
  DynamoMqLayout(const table::StoreParts& parts, table::QueueTable place)
      : RecordLayout(parts, std::move(place), kNames, {}) {}

  dynamo::Result<table::FoundRecords> find(const std::set<std::string>& ids, Deadline deadline) const override {
    const auto keys = mapped(ids, [](const std::string& id) { return kNames.key(id); });
    SLUICE_TRY(items, table::read_items(parts().client, place().table, keys, deadline));
    table::FoundRecords records;
    for (const std::string& id : ids) {
      records[id];
    }
    for (dynamo::Item& item : *items) {
      records[kNames.id_of(item)].item = std::move(item);
    }
    return records;
  }
  bool is_storable_id(std::string_view id) const override { return dynamomq::is_storable_id(id); }
  StoredMessage decode(const dynamo::Item& item) const override { return decode_record(item); }
  StoredMessage decode_state(const dynamo::Item& item) const override { return decode_standing(item); }
  table::VersionMark version_of(const dynamo::Item& item) const override { return dynamomq::version_of(item); }

  Result<std::vector<dynamo::TransactAction>> put(const EmittedMessage& emitted, const std::string& token,
                                                  WallTime now) const override {
    const NewMessage& message = emitted.message;
    if (message.priority != Priority::normal) {
      return no_priorities(place());
    }
    SLUICE_TRY(item, encode_record(message, {message.id, now, parts().nonces.anonymous()}));
    if (!token.empty()) {
      item->insert_or_assign(std::string(attribute::kUniqueToken), token);
    }
    return std::vector<dynamo::TransactAction>{table::put_message(place().table, *item, kNames)};
  }
};

}  // namespace

std::unique_ptr<table::RecordLayout> make_dynamomq_layout(const table::StoreParts& parts, table::QueueTable place) {
  return std::make_unique<DynamoMqLayout>(parts, std::move(place));
}

Error no_priorities(const table::QueueTable& place) {
  return {ErrorCode::invalid,
          "queue '" + place.queue +
              "' lies in a DynamoDB table, which has no priorities; send to a queue for each class, "
              "and have one job draw from them with queues = [\"urgent:6\", \"bulk:1\"]"};
}

}  // namespace sluice::queue::dynamomq
