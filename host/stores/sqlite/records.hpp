#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/sqlite/claimer.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/deliveries.hpp"
#include "host/stores/sqlite/group_order.hpp"
#include "host/stores/sqlite/in_flight.hpp"
#include "host/stores/sqlite/keys.hpp"
#include "host/stores/sqlite/new_messages.hpp"
#include "host/stores/sqlite/ready_index.hpp"
#include "host/stores/sqlite/tally.hpp"

namespace sluice::queue::sqlite {

/// How the two halves of a queue are numbered.
inline std::int64_t half_of(std::int64_t queue, Half half) { return queue * 2 + (half == Half::dlq ? 1 : 0); }

/// Bytes that the sender of a message decides on.
template <typename Content>
std::size_t content_bytes(const Content& message) {
  std::size_t bytes = message.body.size() + message.content_type.size() + message.group.size();
  for (const auto& [name, value] : message.attributes) {
    bytes += name.size() + value.size();
  }
  return bytes;
}

/// Queues by their names. Works on either kind of connection.
class QueueNames {
 public:
  explicit QueueNames(Connection& connection);
  std::optional<std::int64_t> find(const std::string& name);
  /// What is kept of the order of the queue that was found last, as GroupOrder::learn takes it.
  std::int64_t kept() const { return kept_; }

 private:
  // By id, which looks into one tree instead of two. The row of an id that was found is looked at each time: it is gone
  // where the transaction that made it was rolled back.
  Statement again_;
  Statement find_;
  std::unordered_map<std::string, std::int64_t> found_;
  std::int64_t kept_ = 0;
};

/// The seq of a queue's message by its id: both halves have one index of ids.
inline constexpr const char* kFindById = "SELECT seq FROM sluice_messages WHERE id = ?1 AND half / 2 = ?2";

/// The messages of a file as records: made, looked up, changed, removed. Works inside a transaction of its connection.
class Records {
 public:
  explicit Records(Connection& connection);

  /// At the start of each transaction, and before its commit.
  void begin() {
    tally_.begin();
    keys_.begin();
    groups_.begin();
  }
  void finish() {
    tally_.finish();
    keys_.finish();
  }

  // What has been counted, for savepoints that may be rolled back.
  Tally::Mark tally_mark() const { return tally_.mark(); }
  void back_to(const Tally::Mark& mark) { tally_.back_to(mark); }

  ReadyIndex& ready_index() { return ready_index_; }
  Deliveries& deliveries() { return deliveries_; }
  Claimer& claimer() { return claimer_; }
  InFlight& in_flight() { return in_flight_; }
  Keys& keys() { return keys_; }
  GroupOrder& groups() { return groups_; }

  std::optional<std::int64_t> queue(const std::string& name);
  /// Makes the queue where it is absent.
  std::int64_t make_queue(const std::string& name);
  NewMessages& sending() { return sending_; }
  std::optional<MessageRecord> find(std::int64_t queue, const std::string& id);
  void replace_content(const MessageRecord& standing, const Message& content, WallTime now);
  /// The message stands as `after` says, and was made at `created_at`.
  void renew(const MessageRecord& before, const MessageRecord& after, WallTime created_at);
  /// Writes a whole record as it is. `exists` when the id is taken and the mode leaves it alone.
  PutStatus put(std::int64_t queue, const StoredMessage& record, PutMode mode);

 private:
  Tally tally_;
  ReadyIndex ready_index_;
  GroupOrder groups_;
  Deliveries deliveries_;
  Claimer claimer_;
  InFlight in_flight_;
  QueueNames names_;
  Statement by_id_;
  Statement queue_insert_;
  NewMessages sending_;
  Statement content_;
  Statement put_;
  Statement created_;
  Keys keys_;
};

}  // namespace sluice::queue::sqlite
