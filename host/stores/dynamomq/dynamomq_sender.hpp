#pragma once

#include <span>
#include <vector>

#include "base/random.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

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

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override;

 private:
  struct Draft;

  std::vector<Draft> draft(std::span<const NewMessage> messages, std::vector<SendResult>& results);
  void send_keyed(std::span<const NewMessage> messages, std::vector<Draft>& drafts, std::vector<SendResult>& results,
                  Deadline deadline);
  void send_plain(const std::vector<Draft>& drafts, std::vector<SendResult>& results, Deadline deadline);

  table::StoreParts parts_;
  const table::QueueTable& place_;
  Random& random_;
  Doorbell& doorbell_;
};

}  // namespace sluice::queue::dynamomq
