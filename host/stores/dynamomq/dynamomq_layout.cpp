#include "host/stores/dynamomq/dynamomq_layout.hpp"

#include <set>
#include <unordered_map>
#include <utility>

#include "dynamo/item_reading.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::TransactAction;

class DynamoMqLayout final : public table::EffectLayout {
 public:
  DynamoMqLayout(table::StoreParts parts, table::QueueTable place) : parts_(parts), place_(std::move(place)) {}

  const table::QueueTable& place() const override { return place_; }
  std::string scope() const override { return place_.table; }

  Result<std::vector<TransactAction>> put(const EmittedMessage& emitted, const std::string& token,
                                          WallTime now) const override {
    const NewMessage& message = emitted.message;
    if (message.priority != Priority::normal) {
      return no_priorities(place_);
    }
    SLUICE_TRY(item, encode_record(message, {message.id, now, message.delay, parts_.nonces.anonymous()}));
    if (!token.empty()) {
      item->insert_or_assign(std::string(attribute::kUniqueToken), token);
    }
    return std::vector<TransactAction>{table::put_message(place_.table, *item, kLoneNames)};
  }

  TransactAction dedup_mark(const NewMessage& message, const std::string& token, WallTime now) const override {
    return table::put_dedup_mark(place_.table, message, message.id, token, now, {kLoneNames});
  }
  TransactAction unique_mark(const NewMessage& message, const std::string& token, const std::string& before,
                             WallTime now) const override {
    return table::put_unique_mark(place_.table, message, message.id, token, before, now, {kLoneNames});
  }
  TransactAction key_record(const KeyRecord& record, const std::string& owner, WallTime now) const override {
    return table::action_of(table::record_request(place_.table, record, owner, now, {kLoneNames}));
  }

  dynamo::Result<std::vector<SentBefore>> look(std::span<const NewMessage* const> messages,
                                               Deadline deadline) const override {
    std::set<std::string> ids;
    for (const NewMessage* message : messages) {
      if (!message->dedup_id.empty()) {
        ids.insert(table::dedup_mark_id(message->dedup_id));
      }
      if (!message->unique_key.empty()) {
        ids.insert(table::unique_mark_id(message->unique_key));
      }
    }
    SLUICE_TRY(marks, parts_.runner.read(place_.table, attribute::kId, {ids.begin(), ids.end()}, deadline));
    std::vector<SentBefore> standings;
    std::set<std::string> named;
    for (const NewMessage* message : messages) {
      SentBefore standing;
      standing.dedup =
          message->dedup_id.empty() ? table::Mark() : mark(*marks, table::dedup_mark_id(message->dedup_id));
      standing.unique =
          message->unique_key.empty() ? table::Mark() : mark(*marks, table::unique_mark_id(message->unique_key));
      if (standing.unique.there()) {
        named.insert(standing.unique.first);
      }
      standings.push_back(std::move(standing));
    }
    if (named.empty()) {
      return standings;
    }
    SLUICE_TRY(holders, parts_.runner.read(place_.table, attribute::kId, {named.begin(), named.end()}, deadline));
    for (SentBefore& standing : standings) {
      const auto holder = holders->find(standing.unique.first);
      standing.held =
          standing.unique.there() && holder != holders->end() && holds_key(&holder->second, standing.unique);
    }
    return standings;
  }

 private:
  static table::Mark mark(const std::unordered_map<std::string, dynamo::Item>& items, const std::string& id) {
    const auto found = items.find(id);
    return table::Mark::of(found == items.end() ? nullptr : &found->second);
  }

  const table::StoreParts parts_;
  const table::QueueTable place_;
};

}  // namespace

std::unique_ptr<table::EffectLayout> make_dynamomq_layout(table::StoreParts parts, table::QueueTable place) {
  return std::make_unique<DynamoMqLayout>(parts, std::move(place));
}

bool holds_key(const dynamo::Item* message, const table::Mark& mark) {
  if (message == nullptr || dynamo::text_of(*message, attribute::kUniqueToken) != mark.token ||
      dynamo::text_of(*message, attribute::kQueueType) != to_string(Half::standard)) {
    return false;
  }
  if (mark.mode == UniqueUntil::done) {
    return true;
  }
  const StoredMessage standing = decode_standing(*message);
  return standing.message.attempt == 0 && !standing.received_at;
}

Error no_priorities(const table::QueueTable& place) {
  return {ErrorCode::invalid,
          "queue '" + place.queue +
              "' lies in a DynamoDB table, which has no priorities; send to a queue for each class, "
              "and have one job draw from them with queues = [\"urgent:6\", \"bulk:1\"]"};
}

}  // namespace sluice::queue::dynamomq
