#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/queue/doorbell.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/leased/leased_parts.hpp"

namespace sluice::queue::leased {

/// Sends to one queue. A message whose id the store makes is one statement of a batch of 25: 1 write unit for each KB,
/// a twenty-fifth of a request. One with an id of the sender's own, a deduplication id or a unique key is a transaction
/// (LeasedInserter).
///
/// A group's messages are put one after the other, and none behind one that may not be there. One without a group goes
/// to another shard where its own is throttled.
///
/// An id that was made by `id_at` says where its message lies. Sent under it for the first time, that one is put there
/// and costs what one does whose id the store makes; `send` looks for it, wherever it lies by now.
class LeasedSender final : public Sender {
 public:
  /// The references must outlive the sender.
  LeasedSender(LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell)
      : parts_(parts), queue_(queue), doorbell_(doorbell) {}

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override;
  std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) override;
  Result<std::string> moment(Deadline deadline) override;
  std::optional<std::string> id_at(std::string_view moment, std::string_view sending, std::uint64_t number,
                                   const NewMessage& message) const override;

 private:
  struct Draft;
  enum class Ids { any, fresh };

  std::vector<SendResult> send(std::span<const NewMessage> messages, Ids ids, Deadline deadline);
  Result<Shards> shards(Deadline deadline) const;
  std::vector<Draft> draft(std::span<const NewMessage> messages, Ids ids, std::uint32_t shards,
                           std::vector<SendResult>& results) const;
  static std::vector<std::vector<Draft>> in_rounds(std::span<const NewMessage> messages, std::vector<Draft> drafts);
  NewRecord record_of(const NewMessage& message, Ids ids, std::uint32_t shards, WallTime now) const;
  void send_plain(std::span<const NewMessage> messages, std::vector<Draft> drafts, std::uint32_t shards,
                  std::vector<SendResult>& results, Deadline deadline) const;
  /// Writes them; those whose shard is throttled are left, in their order, where `repetition` does not wait for it.
  std::vector<Draft> write(std::vector<Draft> drafts, table::Repetition repetition, std::vector<SendResult>& results,
                           Deadline deadline) const;
  void send_keyed(std::span<const NewMessage> messages, std::vector<Draft>& drafts, std::vector<SendResult>& results,
                  Deadline deadline) const;

  LeasedParts parts_;
  LeasedQueue& queue_;
  Doorbell& doorbell_;
};

/// The write that puts a record where nothing lies yet.
table::RecordWrite insert_of(const table::QueueTable& table, const dynamo::Item& item);

}  // namespace sluice::queue::leased
