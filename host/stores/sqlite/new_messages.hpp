#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/deliveries.hpp"
#include "host/stores/sqlite/group_order.hpp"
#include "host/stores/sqlite/ready_index.hpp"
#include "host/stores/sqlite/send_marks.hpp"
#include "host/stores/sqlite/tally.hpp"

namespace sluice::queue::sqlite {

/// Puts down what is sent. Works inside a transaction of its connection.
class NewMessages {
 public:
  /// What it works with; all of it outlives this.
  struct Parts {
    Tally& tally;
    ReadyIndex& ready_index;
    Deliveries& deliveries;
    GroupOrder& groups;
  };
  NewMessages(Connection& connection, const Parts& parts);

  /// One that is to be put down. Borrowed until then.
  struct Arrival {
    const NewMessage* message;
    SendResult* result;

    /// That of the result, where the message came without one.
    const std::string& id() const { return message->id.empty() ? result->id : message->id; }
  };

  /// Sets the status of each result to sent, duplicate_id, or deduplicated with the first message's id; results that
  /// have failed already are left out.
  void insert(std::int64_t queue, std::span<const Arrival> arrivals, WallTime now);

 private:
  void insert(std::int64_t queue, const Arrival& arrival, WallTime now);
  void place(std::int64_t half, std::int64_t seq, const NewMessage& message, WallTime now);
  /// Puts those into `ready` that wait for it.
  void place_plain();

  const Parts parts_;
  SendMarks marks_;
  Statement insert_;
  Statement insert_ready_;
  Statement retime_;
  // Seqs of messages that lie in `ready` as they were sent: one statement for all of them.
  std::int64_t plain_from_ = 0;
  std::int64_t plain_to_ = 0;  ///< 0: there are none
};

}  // namespace sluice::queue::sqlite
