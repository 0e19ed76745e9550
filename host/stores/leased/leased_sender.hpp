#pragma once

#include <span>
#include <vector>

#include "host/queue/doorbell.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/leased/leased_parts.hpp"

namespace sluice::queue::leased {

/// Sends to one queue. A message whose id the store makes is one statement of a batch of 25: 1 write unit for each KB,
/// a twenty-fifth of a request. One with an id of the sender's own, a deduplication id or a unique key is a transaction
/// (LeasedInserter).
class LeasedSender final : public Sender {
 public:
  /// The references must outlive the sender.
  LeasedSender(LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell)
      : parts_(parts), queue_(queue), doorbell_(doorbell) {}

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override;

 private:
  struct Draft;

  std::vector<Draft> draft(std::span<const NewMessage> messages, std::uint32_t shards,
                           std::vector<SendResult>& results) const;
  void send_plain(const std::vector<Draft>& drafts, std::vector<SendResult>& results, Deadline deadline) const;
  void send_keyed(std::span<const NewMessage> messages, std::vector<Draft>& drafts, std::vector<SendResult>& results,
                  Deadline deadline) const;

  LeasedParts parts_;
  LeasedQueue& queue_;
  Doorbell& doorbell_;
};

/// The write that puts a record where nothing lies yet.
dynamomq::RecordWrite insert_of(const dynamomq::QueueTable& table, const dynamo::Item& item);

}  // namespace sluice::queue::leased
