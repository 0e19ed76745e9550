#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/source.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/group_order.hpp"
#include "host/stores/sqlite/message_record.hpp"
#include "host/stores/sqlite/ready_index.hpp"

namespace sluice::queue::sqlite {

/// What one transaction changes in the counters of the file. They are read at most once and written at most once in it,
/// and let `stats` know how many messages there are without counting them.
class Tally {
 public:
  explicit Tally(Connection& connection) : connection_(connection) {}

  /// At the start of each transaction.
  void begin();
  /// Writes what has changed; before the commit.
  void finish();

  void add(std::int64_t half, std::int64_t messages);
  /// A seq that was never used before.
  std::int64_t next_seq();

  /// What has been counted so far, by half; `back_to` forgets what came after it, as a savepoint that is rolled back
  /// does. A seq that was given out meanwhile stays used.
  using Mark = std::vector<std::pair<std::int64_t, std::int64_t>>;
  const Mark& mark() const { return changes_; }
  void back_to(const Mark& mark) { changes_ = mark; }

 private:
  Connection& connection_;
  Statement read_{connection_, "SELECT next_seq FROM sluice_counters"};
  Statement write_{connection_, "UPDATE sluice_counters SET next_seq = ?1"};
  Statement half_{connection_,
                  "INSERT INTO sluice_halves VALUES (?1, ?2) ON CONFLICT (half) DO UPDATE SET messages = messages + "
                  "excluded.messages"};
  Mark changes_;
  std::int64_t next_seq_ = 0;  ///< 0: not read
};

/// The messages of a file as records: looked up, and written as the rules want them: claimed, extended, settled, moved,
/// removed. Works inside a transaction of its connection.
class Records {
 public:
  explicit Records(Connection& connection)
      : connection_(connection), tally_(connection), ready_(connection), groups_(connection, ready_) {}

  /// At the start of each transaction, and before its commit.
  void begin();
  void finish() { tally_.finish(); }

  Tally& tally() { return tally_; }
  ReadyIndex& ready() { return ready_; }
  GroupOrder& groups() { return groups_; }

  /// The queue's number; 0, under which nothing ever lies: there is none of that name.
  std::int64_t queue(const std::string& name) { return queue_find_.bind(std::string_view(name)).only().value_or(0); }
  /// Makes the queue where it is absent.
  std::int64_t make_queue(const std::string& name);
  std::optional<MessageRecord> find(std::int64_t seq);
  std::optional<MessageRecord> find(std::int64_t queue, const std::string& id);

  /// Sets each result to applied or lost.
  void settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
              WallTime now);
  SettleStatus settle(std::int64_t half, const Completion& completion, WallTime now);
  std::optional<Receipt> extend(std::int64_t half, const Receipt& receipt, const Lease& lease);
  /// Those whose lease or delay has ended can be claimed again; false: there are more of them than one transaction
  /// should carry.
  bool bring_back(std::int64_t half, WallTime now);
  /// From here on the half's order is kept so. Reads and writes all that lies there.
  void keep_order(std::int64_t half, Kept kept);

  /// Makes the change.
  void change(const MessageRecord& before, const core::StateChange& change, WallTime now);
  void edit(const MessageRecord& before, const Message& content, WallTime now);
  /// Its row in `deliveries`, as the record says.
  void write(const MessageRecord& record, WallTime updated_at);
  /// Writes a whole record as it is. `exists` when the id is taken and the mode leaves it alone.
  PutStatus put(std::int64_t queue, const StoredMessage& record, PutMode mode);

 private:
  /// All but its row in `deliveries`; false: the receipt does not hold.
  bool remove_leased(std::int64_t half, const Receipt& receipt);
  /// Sees to its place where it can be claimed; null: it was not there, or is there no more.
  void stand(const MessageRecord* before, const MessageRecord* after);
  std::optional<MessageRecord> held(std::int64_t half, const Receipt& receipt);
  void remove(const MessageRecord& record);

  Connection& connection_;
  Tally tally_;
  ReadyIndex ready_;
  GroupOrder groups_;
  Statement queue_find_{connection_, "SELECT id FROM sluice_queues WHERE name = ?1"};
  Statement queue_insert_{connection_, "INSERT INTO sluice_queues (name) VALUES (?1)"};
  Statement by_id_{connection_, kFindById};
  Statement record_{connection_, "SELECT " + std::string(kRecordColumns) + std::string(kOfOneMessage)};
  Statement remove_leased_{
      connection_,
      "DELETE FROM sluice_messages WHERE seq = ?1 AND id = ?2 AND EXISTS (SELECT 1 FROM sluice_deliveries AS d "
      "WHERE d.seq = ?1 AND d.version = ?3 AND d.half = ?4 AND d.until IS NOT NULL)"};
  Statement group_{connection_, "SELECT message_group FROM sluice_messages WHERE seq = ?1"};
  Statement brought_back_{connection_, "UPDATE sluice_deliveries SET until = NULL WHERE seq = ?1"};
  Statement message_delete_{connection_, "DELETE FROM sluice_messages WHERE seq = ?1"};
  Statement message_move_{connection_, "UPDATE sluice_messages SET half = ?2, sent_at = ?3 WHERE seq = ?1"};
  Statement message_put_{
      connection_,
      "INSERT INTO sluice_messages (seq, half, sent_at, created_at, id, content_type, message_group, "
      "attributes, body, native, priority) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"};
  Statement content_{connection_,
                     "UPDATE sluice_messages SET content_type = ?2, message_group = ?3, attributes = ?4, body = ?5, "
                     "priority = ?6 WHERE seq = ?1"};
  Statement created_{connection_, "UPDATE sluice_messages SET created_at = ?2 WHERE seq = ?1"};
  Statement delivery_delete_{connection_, "DELETE FROM sluice_deliveries WHERE seq = ?1"};
  Statement delivery_delete_run_{connection_, "DELETE FROM sluice_deliveries WHERE seq BETWEEN ?1 AND ?2"};
  Statement delivery_write_{
      connection_,
      "INSERT OR REPLACE INTO sluice_deliveries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"};
};

}  // namespace sluice::queue::sqlite
