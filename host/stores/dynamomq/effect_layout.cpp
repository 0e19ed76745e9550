#include "host/stores/dynamomq/effect_layout.hpp"

#include <set>
#include <unordered_map>
#include <utility>

#include "host/stores/dynamomq/key_items.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/single_writes.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::TransactAction;

class DynamoMqLayout final : public EffectLayout {
 public:
  DynamoMqLayout(StoreParts parts, QueueTable place) : parts_(parts), place_(std::move(place)) {}

  const QueueTable& place() const override { return place_; }
  std::string scope() const override { return place_.table; }

  Result<std::vector<TransactAction>> put(const NewMessage& message, const std::string& token,
                                          WallTime now) const override {
    if (message.priority != Priority::normal) {
      return no_priorities(place_);
    }
    auto item = encode_record(message, {message.id, now, message.delay, parts_.nonces.anonymous()});
    if (!item) {
      return item.error();
    }
    if (!token.empty()) {
      item->insert_or_assign(std::string(attribute::kUniqueToken), token);
    }
    return std::vector<TransactAction>{put_message(place_.table, *item)};
  }

  TransactAction dedup_mark(const NewMessage& message, const std::string& token, WallTime now) const override {
    return put_dedup_mark(place_.table, message, message.id, token, now);
  }
  TransactAction unique_mark(const NewMessage& message, const std::string& token, const std::string& before,
                             WallTime now) const override {
    return put_unique_mark(place_.table, message, message.id, token, before, now);
  }
  TransactAction key_record(const KeyRecord& record, const std::string& owner, WallTime now) const override {
    return action_of(record_request(place_.table, record, owner, now));
  }

  dynamo::Result<std::vector<Standing>> look(std::span<const NewMessage* const> messages,
                                             Deadline deadline) const override {
    std::set<std::string> ids;
    for (const NewMessage* message : messages) {
      if (!message->dedup_id.empty()) {
        ids.insert(dedup_mark_id(message->dedup_id));
      }
      if (!message->unique_key.empty()) {
        ids.insert(unique_mark_id(message->unique_key));
      }
    }
    const auto marks = parts_.runner.read(place_.table, {ids.begin(), ids.end()}, deadline);
    if (!marks) {
      return marks.error();
    }
    std::vector<Standing> standings;
    std::set<std::string> named;
    for (const NewMessage* message : messages) {
      Standing standing;
      standing.dedup = message->dedup_id.empty() ? Mark() : mark(*marks, dedup_mark_id(message->dedup_id));
      standing.unique = message->unique_key.empty() ? Mark() : mark(*marks, unique_mark_id(message->unique_key));
      if (standing.unique.there()) {
        named.insert(standing.unique.first);
      }
      standings.push_back(std::move(standing));
    }
    if (named.empty()) {
      return standings;
    }
    const auto holders = parts_.runner.read(place_.table, {named.begin(), named.end()}, deadline);
    if (!holders) {
      return holders.error();
    }
    for (Standing& standing : standings) {
      const auto holder = holders->find(standing.unique.first);
      standing.held =
          standing.unique.there() && holder != holders->end() && holds_key(&holder->second, standing.unique);
    }
    return standings;
  }

 private:
  static Mark mark(const std::unordered_map<std::string, dynamo::Item>& items, const std::string& id) {
    const auto found = items.find(id);
    return Mark::of(found == items.end() ? nullptr : &found->second);
  }

  const StoreParts parts_;
  const QueueTable place_;
};

}  // namespace

std::unique_ptr<EffectLayout> make_dynamomq_layout(StoreParts parts, QueueTable place) {
  return std::make_unique<DynamoMqLayout>(parts, std::move(place));
}

}  // namespace sluice::queue::dynamomq
