#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {

/// Sends messages that have a deduplication id or a unique key.
///
/// A message and its marks are written in one transaction, so that a mark is there if and only if its message was
/// stored, whoever dies when. The transaction's token makes repeating it after a lost answer safe, and the token in the
/// marks tells later what it came to. Costs at 1 KB, of the first: 2 write units for the message, 2 for each mark and 1
/// for the index, in one request for a message that is sent alone and for 25 that are sent together; of a duplicate
/// that is sent alone the same without the index, as DynamoDB bills what it refuses; of one in a batch, the reading of
/// its marks, which comes first there. Plain messages do not come here. Used for one call.
class KeyedSender {
 public:
  static constexpr std::size_t kMessagesPerTransaction = 25;
  static constexpr int kMaxRounds = 8;

  KeyedSender(table::StoreParts parts, const table::QueueTable& place, Random& random)
      : parts_(parts), place_(place), random_(random) {}

  /// A message with its item, and where its result goes.
  struct Draft {
    const NewMessage* message;
    dynamo::Item item;
    SendResult* result;
  };
  /// Sets the result of each; their ids are given.
  void send(std::vector<Draft> drafts, Deadline deadline);

 private:
  struct Entry {
    Draft draft;
    std::string token;
    std::string unique_before{};  ///< the token of a mark whose message does not hold the key any more
    bool unsure = false;          ///< a transaction may have taken effect
  };
  using Records = std::unordered_map<std::string, dynamo::Item>;
  using Lot = std::vector<Entry*>;

  /// Reads what stands in the way, and gives a result to those for whom that decides; the others stay.
  bool decide(std::deque<Entry>& entries, Deadline deadline);
  bool decided(Entry& entry, const Records& marks, const Records& holders) const;
  std::vector<Lot> lots(std::deque<Entry>& entries) const;
  void write(const std::vector<Lot>& lots, Deadline deadline);
  dynamo::TransactWriteRequest request_of(const Lot& lot) const;
  void settle(const Lot& lot, const dynamo::TransactResult& result);
  void fail(Entry& entry, Error error) const;
  static void finish(Entry& entry, SendStatus status);

  table::StoreParts parts_;
  const table::QueueTable& place_;
  Random& random_;
};

}  // namespace sluice::queue::dynamomq
