#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/leased/leased_writer.hpp"
#include "host/stores/owned/message_records.hpp"

namespace sluice::queue::leased {

/// A message as the rules see it, with the item that it was read from.
owned::Found found_of(dynamo::Item item);
/// That item.
const dynamo::Item& item_of(const owned::Entry& entry);

/// The items of a half's messages: the records that an owner of its shards works with.
class TableMessages final : public owned::MessageRecords {
 public:
  /// `strict_fence`: what is committed with effects holds only while the shard is this host's. The queue outlives it.
  TableMessages(LeasedQueue& queue, Half half, bool strict_fence)
      : queue_(queue), parts_(queue.parts), place_(queue.place), half_(half), strict_fence_(strict_fence) {}

  void order_wanted(Order order, Deadline deadline) override;
  std::vector<Result<Page>> read(std::span<const Query> queries, Deadline deadline) override;
  Result<std::set<std::string>> read_holds(std::uint32_t shard, Deadline deadline) override;
  Message open(const owned::Entry& entry) override;
  std::vector<bool> write_claims(std::span<const ClaimWrite> claims, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const Completion> completions, std::span<const owned::Out> outs,
                                   Deadline deadline) override;
  std::vector<std::optional<Count>> count_dead(std::span<const std::uint32_t> shards, std::size_t most,
                                               Deadline deadline) override;

 private:
  LeasedQueue& queue_;
  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  const Half half_;
  const bool strict_fence_;
  std::atomic<bool> marked_ordered_ = false;
};

}  // namespace sluice::queue::leased
