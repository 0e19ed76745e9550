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
  SendMarks(Connection& connection, Records& records);

  /// Before the first message of a call: what follows happens at `now` on the machine's clock.
  void begin(WallTime now);
  /// The id of the message because of which this one is not to be sent; nothing: it may be.
  std::optional<std::string> first_of(std::int64_t queue, const NewMessage& message);
  /// It has been sent, under that id, in that row.
  void note(std::int64_t queue, const NewMessage& message, const std::string& id, std::int64_t seq);

 private:
  std::optional<std::string> sent_with(std::int64_t queue, const std::string& dedup_id);
  std::optional<std::string> holder_of(std::int64_t queue, const std::string& key);
  void sweep();

  Records& records_;
  Statement clock_read_;
  Statement clock_write_;
  Statement dedup_find_;
  Statement dedup_write_;
  Statement dedup_sweep_;
  Statement unique_find_;
  Statement unique_write_;
  Statement unique_sweep_;
  Statement unique_end_;
  std::int64_t now_ = 0;       ///< on the file's clock
  std::int64_t swept_to_ = 0;  ///< of the unique keys, by seq
};

/// Puts down what is sent. Works inside a transaction of its connection.
class NewMessages {
 public:
  NewMessages(Connection& connection, Records& records);

  /// Sets the status of each message's result to sent, duplicate_id, or deduplicated with the first message's id;
  /// results that have failed already are left out. Each message has an id. `messages`: of values or of pointers.
  template <typename Messages>
  void insert(std::int64_t queue, const Messages& messages, std::span<SendResult> results, WallTime now) {
    marks_begun_ = false;
    // In their order, which is that of the queue.
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].status != SendStatus::failed) {
        insert(queue, of(messages[i]), results[i], now);
      }
    }
    place_plain();
  }

 private:
  static const NewMessage& of(const NewMessage& message) { return message; }
  static const NewMessage& of(const NewMessage* message) { return *message; }
  void insert(std::int64_t queue, const NewMessage& message, SendResult& result, WallTime now);
  void place(std::int64_t half, std::int64_t seq, const NewMessage& message, WallTime now);
  /// Puts those into `ready` that wait for it.
  void place_plain();

  Records& records_;
  SendMarks marks_;
  bool marks_begun_ = false;  ///< for the current call
  Statement insert_;
  Statement insert_ready_;
  Statement retime_;
  // Seqs of messages that lie in `ready` as they were sent: one statement for all of them.
  std::int64_t plain_from_ = 0;
  std::int64_t plain_to_ = 0;  ///< 0: there are none
};

}  // namespace sluice::queue::sqlite
