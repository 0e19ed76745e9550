#include "host/stores/sqlite/sqlite_sender.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/uuid.hpp"
#include "host/queue/message.hpp"

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

/// What one call works on. It is the call's and the store's together, for the caller may leave before the disk answers.
struct Sending {
  /// Takes the ids out of `begun` until `end`.
  Sending(std::vector<NewMessage> batch, std::span<SendResult> begun) : messages(std::move(batch)) {
    results.reserve(begun.size());
    for (SendResult& result : begun) {
      results.push_back({result.status, std::move(result.id), {}});
    }
    if (std::any_of(messages.begin(), messages.end(), has_send_keys)) {
      before = results;
    }
    arrivals.reserve(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      arrivals.push_back({&messages[i], &results[i]});
    }
  }
  /// The work is done once more where the transaction that it shared with others could not be committed.
  void begin() {
    if (!before.empty()) {
      results = before;
    }
  }

  /// It is done: tells `begun` what it came to.
  void tell(std::span<SendResult> begun) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      begun[i].id = std::move(results[i].id);
      if (begun[i].status != SendStatus::failed) {
        begun[i].status = results[i].status;
        begun[i].error = std::move(results[i].error);
      }
    }
  }
  /// The caller leaves, and the work may go on or have yet to begin: gives him his ids again. Those that the work may
  /// change are kept apart.
  void leave(std::span<SendResult> begun) const {
    const std::vector<SendResult>& ids = before.empty() ? results : before;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      begun[i].id = ids[i].id;
    }
  }

  std::vector<NewMessage> messages;
  std::vector<SendResult> results;
  std::vector<NewMessages::Arrival> arrivals;  ///< they point at these two
  std::vector<SendResult> before;  ///< with the ids that they were given; empty where no other id can take their place
};

}  // namespace

std::vector<SendResult> SqliteSender::send(std::span<const NewMessage> messages, Deadline deadline) {
  std::vector<SendResult> results(messages.size());
  const WallTime now = store_.clock().wall_now();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    results[i].id = messages[i].id.empty() ? make_uuid_v7(store_.random(), now) : messages[i].id;
  }
  for (std::size_t from = 0; from < messages.size();) {
    const auto batch = messages.subspan(from, batch_of(messages.subspan(from)));
    send_batch({batch.begin(), batch.end()}, std::span(results).subspan(from, batch.size()), deadline);
    from += batch.size();
  }
  return results;
}

// An id that comes with a message is looked for; one that its result has is not.
std::vector<SendResult> SqliteSender::send_fresh(std::vector<NewMessage> messages, Deadline deadline) {
  std::vector<SendResult> results(messages.size());
  const WallTime now = store_.clock().wall_now();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    results[i].id = messages[i].id.empty() ? make_uuid_v7(store_.random(), now) : std::exchange(messages[i].id, {});
  }
  for (std::size_t from = 0; from < messages.size();) {
    const auto rest = std::span(messages).subspan(from);
    const auto batch = rest.first(batch_of(rest));
    const auto told = std::span(results).subspan(from, batch.size());
    from += batch.size();
    if (batch.size() == messages.size()) {
      send_batch(std::move(messages), told, deadline);
      break;
    }
    send_batch({std::move_iterator(batch.begin()), std::move_iterator(batch.end())}, told, deadline);
  }
  return results;
}

void SqliteSender::send_batch(std::vector<NewMessage> messages, std::span<SendResult> results, Deadline deadline) {
  bool any = false;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto refused = store_.refused(results[i].id, content_bytes(messages[i]));
    if (!refused && has_send_keys(messages[i])) {
      refused = refused_send_keys(messages[i]);
    }
    if (refused) {
      results[i].status = SendStatus::failed;
      results[i].error = std::move(*refused);
    } else {
      any = true;
    }
  }
  if (!any) {
    return;
  }
  const auto sending = std::make_shared<Sending>(std::move(messages), results);
  const auto work = [sending, queue = queue_, &clock = store_.clock()](Writer& writer) {
    const WallTime now = clock.wall_now();
    sending->begin();
    writer.records.sending().insert(writer.records.make_queue(queue), sending->arrivals, now);
  };
  const auto ring = [sending, queue = queue_, &doorbell = store_.doorbell()] {
    // Of a delayed one, too, so that whoever waits learns when it comes due.
    if (std::any_of(sending->results.begin(), sending->results.end(),
                    [](const SendResult& result) { return result.status == SendStatus::sent; })) {
      doorbell.ring({queue, Half::standard});
    }
  };
  if (auto done = store_.write({.work = work, .committed = ring}, deadline); !done) {
    sending->leave(results);
    for (SendResult& result : results) {
      if (result.status != SendStatus::failed) {
        result.status = SendStatus::failed;
        result.error = done.error();
      }
    }
  } else {
    sending->tell(results);
  }
}

}  // namespace sluice::queue::sqlite
