#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/queue/message.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/deliveries.hpp"

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
  SendMarks(Connection& connection, Deliveries& deliveries);

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

  Deliveries& deliveries_;
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

}  // namespace sluice::queue::sqlite
