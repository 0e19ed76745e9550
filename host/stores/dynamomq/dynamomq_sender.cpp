#include <span>
#include <vector>

#include "base/uuid.hpp"
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
  /// The layout must outlive the sender.
  explicit DynamoMqSender(const table::RecordLayout& layout)
      : layout_(layout), parts_(layout.parts()), place_(layout.place()) {}

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
    table::KeyedInserter(layout_, {}).insert(std::move(keyed), deadline);
    put_new(layout_, plain, deadline);
    parts_.doorbell.ring_sent(place_.queue, messages, results);
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
    id = id.empty() ? make_uuid(parts_.random) : id;
    return encode_record(message, {id, parts_.clock.wall_now(), parts_.nonces.anonymous()});
  }

  const table::RecordLayout& layout_;
  const table::StoreParts& parts_;
  const table::QueueTable& place_;
};

}  // namespace

std::unique_ptr<Sender> make_sender(const table::RecordLayout& layout) {
  return std::make_unique<DynamoMqSender>(layout);
}

}  // namespace sluice::queue::dynamomq
