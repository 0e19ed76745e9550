#include <span>
#include <vector>

#include "base/random.hpp"
#include "base/uuid.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/message.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/dynamomq/dynamomq_roles.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/record_writes.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {
namespace {

/// Sends messages to one queue.
///
/// An insert is refused by itself when the id is there, so that no read comes first. One whose answer was lost is
/// repeated; when the repeat finds the id taken, the record tells whether it is our own. Messages with a deduplication
/// id or unique key are a KeyedInserter's.
class DynamoMqSender final : public Sender {
 public:
  /// The references must outlive the sender.
  DynamoMqSender(table::StoreParts parts, const table::QueueTable& place, Random& random, Doorbell& doorbell)
      : parts_(parts), place_(place), random_(random), doorbell_(doorbell) {}

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override {
    std::vector<SendResult> results(messages.size());
    const auto sure = parts_.clock.be_sure(place_, table::kTimeTolerance, deadline);
    std::vector<Insert> plain;
    std::vector<Insert> keyed;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      SendResult& result = results[i];
      result.id = messages[i].id;
      auto item = sure ? item_of(messages[i], result.id) : Result<dynamo::Item>(sure.error());
      if (!item) {
        result = {SendStatus::failed, std::move(result.id), item.error()};
      } else {
        (has_send_keys(messages[i]) ? keyed : plain)
            .push_back({.item = std::move(*item), .result = &result, .message = &messages[i]});
      }
    }
    if (!keyed.empty()) {
      const auto layout = make_dynamomq_layout(parts_, place_);
      table::KeyedInserter(parts_, *layout, {}).insert(std::move(keyed), deadline);
    }
    put_new(parts_, place_, plain, deadline);
    doorbell_.ring_sent(place_.queue, messages, results);
    return results;
  }

 private:
  /// `id`: empty where the store has to make it.
  Result<dynamo::Item> item_of(const NewMessage& message, std::string& id) const {
    if (message.priority != Priority::normal) {
      return no_priorities(place_);
    }
    if (auto refused = refused_send_keys(message)) {
      return std::move(*refused);
    }
    id = id.empty() ? make_uuid(random_) : id;
    return encode_record(message, {id, parts_.clock.wall_now(), parts_.nonces.anonymous()});
  }

  table::StoreParts parts_;
  const table::QueueTable& place_;
  Random& random_;
  Doorbell& doorbell_;
};

}  // namespace

std::unique_ptr<Sender> make_sender(table::StoreParts parts, const table::QueueTable& place, Random& random,
                                    Doorbell& doorbell) {
  return std::make_unique<DynamoMqSender>(parts, place, random, doorbell);
}

}  // namespace sluice::queue::dynamomq
