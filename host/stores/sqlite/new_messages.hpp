#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/records.hpp"

namespace sluice::queue::sqlite {

/// What has been sent lately, and what must not lie in a queue twice. Works inside a transaction of its connection.
///
/// A deduplication id is kept until its window has passed, whatever becomes of its message; what has passed is swept by
/// later sends. A unique key names the message that has it, and how that one stands when the next comes decides, so
/// that claiming and settling cost nothing for it.
///
/// Windows are measured on a clock of the file's own, which goes as the machine's does and never back: when that is set
/// back, the windows go on from where they were. When it is set forward they end that much sooner.
class SendMarks {
 public:
  SendMarks(Connection& connection, Records& records) : connection_(connection), records_(records) {}

  /// What follows happens at `now` on the machine's clock.
  void begin(WallTime now);
  /// The id of the message because of which this one is not to be sent; nothing: it may be.
  std::optional<std::string> first_of(std::int64_t queue, const NewMessage& message);
  /// It has been sent, under that id, in that row.
  void note(std::int64_t queue, const NewMessage& message, const std::string& id, std::int64_t seq);

 private:
  std::optional<std::string> holder_of(std::int64_t queue, const std::string& key);
  void sweep();

  Connection& connection_;
  Records& records_;
  Statement clock_read_{connection_, "SELECT last, ahead FROM sluice_send_clock"};
  Statement clock_write_{connection_, "UPDATE sluice_send_clock SET last = ?1, ahead = ?2"};
  Statement dedup_find_{connection_, "SELECT id FROM sluice_dedup_ids WHERE queue = ?1 AND key = ?2 AND until > ?3"};
  Statement dedup_write_{connection_, "INSERT OR REPLACE INTO sluice_dedup_ids VALUES (?1, ?2, ?3, ?4)"};
  // More than one send adds, so that what has piled up goes in time.
  Statement dedup_sweep_{connection_,
                         "DELETE FROM sluice_dedup_ids WHERE (queue, key) IN "
                         "(SELECT queue, key FROM sluice_dedup_ids WHERE until <= ?1 ORDER BY until LIMIT 4)"};
  Statement unique_find_{connection_, "SELECT seq, until_done FROM sluice_unique_keys WHERE queue = ?1 AND key = ?2"};
  Statement unique_write_{connection_, "INSERT OR REPLACE INTO sluice_unique_keys VALUES (?1, ?2, ?3, ?4)"};
  Statement unique_sweep_{
      connection_,
      "DELETE FROM sluice_unique_keys WHERE seq IN (SELECT seq FROM sluice_unique_keys WHERE seq > ?1 ORDER BY "
      "seq "
      "LIMIT 4) AND NOT EXISTS (SELECT 1 FROM sluice_messages AS m WHERE m.seq = sluice_unique_keys.seq)"};
  Statement unique_end_{
      connection_, "SELECT max(seq) FROM (SELECT seq FROM sluice_unique_keys WHERE seq > ?1 ORDER BY seq LIMIT 4)"};
  std::int64_t now_ = 0;       ///< on the file's clock
  std::int64_t swept_to_ = 0;  ///< of the unique keys, by seq
};

/// Puts down what is sent. Works inside a transaction of its connection.
class NewMessages {
 public:
  NewMessages(Connection& connection, Records& records)
      : connection_(connection), records_(records), marks_(connection, records) {}

  /// Sets the status of each message's result to sent, duplicate_id, or deduplicated with the first message's id;
  /// results that have failed already are left out. Each message has an id.
  void insert(std::int64_t queue, std::span<const NewMessage> messages, std::span<SendResult> results, WallTime now);

 private:
  void insert(std::int64_t queue, const NewMessage& message, SendResult& result, WallTime now);
  void place(std::int64_t half, std::int64_t seq, const NewMessage& message, WallTime now);
  /// Puts those into `ready` that wait for it.
  void place_plain();

  Connection& connection_;
  Records& records_;
  SendMarks marks_;
  Statement insert_{
      connection_,
      "INSERT OR IGNORE INTO sluice_messages (seq, half, sent_at, created_at, id, content_type, message_group, "
      "attributes, body, priority) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"};
  Statement insert_ready_{connection_,
                          "INSERT OR FAIL INTO sluice_ready SELECT half, sent_at, seq FROM sluice_messages "
                          "WHERE seq BETWEEN ?1 AND ?2"};
  Statement retime_{connection_, "UPDATE sluice_messages SET sent_at = ?2 WHERE seq = ?1"};
  // Seqs of messages that lie in `ready` as they were sent: one statement for all of them.
  std::int64_t plain_from_ = 0;
  std::int64_t plain_to_ = 0;  ///< 0: there are none
};

}  // namespace sluice::queue::sqlite
