#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/uuid.hpp"
#include "host/stores/sqlite/roles.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

namespace {

// Of one transaction. Sends share more than the flush: entries of the id index that fall on the same page.
constexpr std::size_t kSendItems = 8'000;
constexpr std::size_t kBatchBytes = std::size_t{8} * 1024 * 1024;

/// How many of `messages` go into the next transaction.
std::size_t batch_of(std::span<const NewMessage> messages) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (count < messages.size() && count < kSendItems && (count == 0 || bytes < kBatchBytes)) {
    bytes += content_bytes(messages[count++]);
  }
  return count;
}

/// What one call sends. It is the call's and the store's together, for the caller may leave before the disk answers.
struct Sending {
  std::vector<NewMessage> messages;
  std::map<std::size_t, Error> refused;

  /// With the ids that the messages have, and the errors of those that are refused.
  std::vector<SendResult> results() const {
    std::vector<SendResult> begun(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      begun[i].id = messages[i].id;
    }
    for (const auto& [i, error] : refused) {
      begun[i].status = SendStatus::failed;
      begun[i].error = error;
    }
    return begun;
  }
};

class SqliteSender final : public Sender {
 public:
  SqliteSender(SharedStore& store, std::string queue) : store_(store), queue_(std::move(queue)) {}

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override {
    return send_fresh({messages.begin(), messages.end()}, deadline);
  }

  std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) override {
    const WallTime now = store_.clock().wall_now();
    for (NewMessage& message : messages) {
      message.id = message.id.empty() ? make_uuid_v7(store_.random(), now) : std::move(message.id);
    }
    if (batch_of(messages) == messages.size()) {
      return send_batch(std::move(messages), deadline);
    }
    std::vector<SendResult> results;
    for (std::span<NewMessage> rest(messages); !rest.empty();) {
      const auto batch = rest.first(batch_of(rest));
      auto sent = send_batch({std::move_iterator(batch.begin()), std::move_iterator(batch.end())}, deadline);
      std::move(sent.begin(), sent.end(), std::back_inserter(results));
      rest = rest.subspan(batch.size());
    }
    return results;
  }

 private:
  std::vector<SendResult> send_batch(std::vector<NewMessage> messages, Deadline deadline);

  SharedStore& store_;
  const std::string queue_;
};

std::vector<SendResult> SqliteSender::send_batch(std::vector<NewMessage> messages, Deadline deadline) {
  const auto sending = std::make_shared<Sending>(Sending{std::move(messages), {}});
  for (std::size_t i = 0; i < sending->messages.size(); ++i) {
    const NewMessage& message = sending->messages[i];
    auto refused = refused_message(message.id, content_bytes(message), store_.most_bytes());
    if (!refused && has_send_keys(message)) {
      refused = refused_send_keys(message);
    }
    if (refused) {
      sending->refused.emplace(i, std::move(*refused));
    }
  }
  if (sending->refused.size() == sending->messages.size()) {
    return sending->results();
  }
  const auto work = [sending, queue = queue_, &clock = store_.clock()](Writer& writer) {
    const WallTime now = clock.wall_now();
    std::vector<SendResult> results = sending->results();
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
  std::vector<SendResult> failed = sending->results();
  for (SendResult& result : failed) {
    if (result.status != SendStatus::failed) {
      result.status = SendStatus::failed;
      result.error = sent.error();
    }
  }
  return failed;
}

}  // namespace

std::unique_ptr<Sender> make_sender(SharedStore& store, std::string queue) {
  return std::make_unique<SqliteSender>(store, std::move(queue));
}

}  // namespace sluice::queue::sqlite
