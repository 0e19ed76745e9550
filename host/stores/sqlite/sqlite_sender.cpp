#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/uuid.hpp"
#include "host/stores/sqlite/roles.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

namespace {

// Of one transaction. Sends share more than the flush: entries of the id index that fall on the same page.
constexpr std::size_t kSendItems = 8'000;

/// What one call sends. It is the call's and the store's together, for the caller may leave before the disk answers.
struct Sending {
  std::vector<NewMessage> messages;
  std::vector<SendResult> begun;  ///< with the ids that the messages have, and the errors of those that are refused
};

bool has_failed(const SendResult& result) { return result.status == SendStatus::failed; }

class SqliteSender final : public Sender {
 public:
  SqliteSender(SharedStore& store, std::string queue) : store_(store), queue_(std::move(queue)) {}

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override {
    return send_fresh({messages.begin(), messages.end()}, deadline);
  }

  std::vector<SendResult> send_in_order(std::span<const NewMessage> messages, Deadline deadline) override {
    if (batch_of(messages, kSendItems, kBytes) < messages.size()) {
      return Sender::send_in_order(messages, deadline);
    }
    return send_batch(with_ids({messages.begin(), messages.end()}), deadline, true);
  }

  std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) override {
    messages = with_ids(std::move(messages));
    if (batch_of(std::span(messages), kSendItems, kBytes) == messages.size()) {
      return send_batch(std::move(messages), deadline);
    }
    const auto send = [&](std::span<NewMessage> batch) {
      return send_batch({std::move_iterator(batch.begin()), std::move_iterator(batch.end())}, deadline);
    };
    return in_batches<SendResult>(std::span(messages), kSendItems, send, kBytes);
  }

 private:
  static constexpr auto kBytes = [](const NewMessage& message) { return content_bytes(message); };

  std::vector<NewMessage> with_ids(std::vector<NewMessage> messages) const {
    const WallTime now = store_.clock().wall_now();
    for (NewMessage& message : messages) {
      message.id = message.id.empty() ? make_uuid_v7(store_.random(), now) : std::move(message.id);
    }
    return messages;
  }
  /// In one transaction. `in_order`: of a group none behind one that is refused.
  std::vector<SendResult> send_batch(std::vector<NewMessage> messages, Deadline deadline, bool in_order = false);

  SharedStore& store_;
  const std::string queue_;
};

std::vector<SendResult> SqliteSender::send_batch(std::vector<NewMessage> messages, Deadline deadline, bool in_order) {
  const auto sending = std::make_shared<Sending>(Sending{std::move(messages), {}});
  std::set<std::string_view> stopped;
  for (const NewMessage& message : sending->messages) {
    if (in_order && stopped.contains(message.group)) {
      sending->begun.push_back(left_behind(message.id));
      continue;
    }
    auto refused = refused_message(message.id, content_bytes(message), store_.most_bytes());
    if (!refused && has_send_keys(message)) {
      refused = refused_send_keys(message);
    }
    if (refused && !message.group.empty()) {
      stopped.insert(message.group);
    }
    sending->begun.push_back({refused ? SendStatus::failed : SendStatus::sent, message.id, refused.value_or(Error())});
  }
  if (std::all_of(sending->begun.begin(), sending->begun.end(), has_failed)) {
    return std::move(sending->begun);
  }
  const auto work = [sending, queue = queue_, &clock = store_.clock()](Writer& writer) {
    const WallTime now = clock.wall_now();
    std::vector<SendResult> results = sending->begun;
    writer.sending.insert(writer.records.make_queue(queue), sending->messages, results, now);
    return results;
  };
  const auto ring = [queue = queue_, &doorbell = store_.doorbell()](const std::vector<SendResult>& results) {
    // Of a delayed one, too, so that whoever waits learns when it comes due.
    if (std::any_of(results.begin(), results.end(),
                    [](const SendResult& result) { return result.status == SendStatus::sent; })) {
      doorbell.ring({queue, Half::standard});
    }
  };
  auto sent = store_.write<std::vector<SendResult>>({.work = work, .committed = ring}, deadline);
  if (sent) {
    return std::move(*sent);
  }
  std::vector<SendResult> failed = sending->begun;
  for (SendResult& result : failed) {
    result.error = has_failed(result) ? std::move(result.error) : sent.error();
    result.status = SendStatus::failed;
  }
  return failed;
}

}  // namespace

std::unique_ptr<Sender> make_sender(SharedStore& store, std::string queue) {
  return std::make_unique<SqliteSender>(store, std::move(queue));
}

}  // namespace sluice::queue::sqlite
