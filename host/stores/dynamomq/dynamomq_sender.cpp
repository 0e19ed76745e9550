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
#include "host/stores/table/keyed_inserter.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {
namespace {

SendResult failed(std::string id, Error error) { return {SendStatus::failed, std::move(id), std::move(error)}; }

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
    if (!sure) {
      for (std::size_t i = 0; i < messages.size(); ++i) {
        results[i] = failed(messages[i].id, sure.error());
      }
      return results;
    }
    auto drafts = draft(messages, results);
    send_keyed(messages, drafts, results, deadline);
    send_plain(drafts, results, deadline);
    doorbell_.ring_sent(place_.queue, messages, results);
    return results;
  }

 private:
  /// A message on its way: its place in the request, and its item.
  struct Draft {
    std::size_t place = 0;
    dynamo::Item item;
  };

  std::vector<Draft> draft(std::span<const NewMessage> messages, std::vector<SendResult>& results) {
    std::vector<Draft> drafts;
    drafts.reserve(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const NewMessage& message = messages[i];
      if (message.priority != Priority::normal) {
        results[i] = failed(message.id, no_priorities(place_));
        continue;
      }
      if (auto refused = refused_send_keys(message)) {
        results[i] = failed(message.id, std::move(*refused));
        continue;
      }
      results[i].id = message.id.empty() ? make_uuid(random_) : message.id;
      auto item = encode_record(message, {results[i].id, parts_.clock.wall_now(), parts_.nonces.anonymous()});
      if (item) {
        drafts.push_back({i, std::move(*item)});
      } else {
        results[i] = failed(std::move(results[i].id), item.error());
      }
    }
    return drafts;
  }

  // Takes those away that have keys.
  void send_keyed(std::span<const NewMessage> messages, std::vector<Draft>& drafts, std::vector<SendResult>& results,
                  Deadline deadline) {
    std::vector<table::KeyedInserter::Draft> keyed;
    for (Draft& draft : drafts) {
      if (has_send_keys(messages[draft.place])) {
        keyed.push_back(
            {.item = std::move(draft.item), .result = &results[draft.place], .message = &messages[draft.place]});
      }
    }
    if (keyed.empty()) {
      return;
    }
    std::erase_if(drafts, [&](const Draft& draft) { return has_send_keys(messages[draft.place]); });
    const auto layout = make_dynamomq_layout(parts_, place_);
    table::KeyedInserter(parts_, *layout, random_, {}).insert(std::move(keyed), deadline);
  }

  void send_plain(const std::vector<Draft>& drafts, std::vector<SendResult>& results, Deadline deadline) {
    if (drafts.empty()) {
      return;
    }
    std::vector<Insert> inserts;
    inserts.reserve(drafts.size());
    for (const auto& draft : drafts) {
      inserts.push_back({.id = results[draft.place].id, .item = &draft.item, .is_new = true});
    }
    const auto outcomes = put_new(parts_, place_, inserts, deadline);
    for (std::size_t k = 0; k < drafts.size(); ++k) {
      SendResult& result = results[drafts[k].place];
      if (outcomes[k].fate == table::StatementFate::refused) {
        result = {SendStatus::duplicate_id, result.id, table::duplicate_id(place_, result.id)};
      } else if (outcomes[k].fate != table::StatementFate::done) {
        result = failed(result.id, error_of(place_, outcomes[k]));
      }
    }
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
