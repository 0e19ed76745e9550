#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/message.hpp"
#include "sluice/client/producer.hpp"

namespace sluice::client::detail {

/// What a producer's thread does next: send the oldest `take` messages, or else wait, at the latest until `wait_until`.
struct BatchOrder {
  std::size_t take = 0;
  SteadyTime wait_until = SteadyTime::max();
};

/// A message on its way, and who wants to know what becomes of it.
struct Outgoing {
  queue::NewMessage message;
  ProduceCallback done;
};

/// What a message takes of a producer's room: its data and everything beside it.
inline std::size_t bytes_of(const queue::NewMessage& message) {
  return message.id.size() + queue::content_bytes(message);
}

/// What a producer holds: messages in their order, what of it somebody waits for, and when to send. Every call that
/// depends on time is given it. Not thread-safe; the producer guards it.
class SendQueue {
 public:
  /// Messages of one request: what BatchExecuteStatement takes.
  static constexpr std::size_t kBatch = 25;
  struct Limits {
    std::size_t messages = 0;
    std::size_t bytes = 0;
    Duration linger{};    ///< how long a message waits for others to fill its batch
    std::size_t lot = 0;  ///< most messages of one call of the store, which sends their batches side by side
  };

  explicit SendQueue(Limits limits) : limits_(limits) {}

  /// There is room for so many bytes: under both limits, or nothing else is held.
  bool has_room(std::size_t bytes) const;
  /// Its place in the order: what `hurry` and `settled_up_to` count in.
  std::uint64_t add(Outgoing outgoing, SteadyTime now);
  /// Everything before this place is to be sent without waiting for company.
  void hurry(std::uint64_t place) { hurry_until_ = std::max(hurry_until_, place); }
  /// The place that the next message will have.
  std::uint64_t end() const { return next_; }

  /// Whole batches go at once, and what does not fill one when its oldest has lingered, or somebody waits for it.
  BatchOrder order(SteadyTime now) const;
  std::vector<Outgoing> take(std::size_t count);
  /// What was taken last has its results: its room is free.
  void free_taken();
  /// And those who asked have heard of them.
  void settle_taken() { taken_messages_ = 0; }
  bool settled_up_to(std::uint64_t place) const { return next_ - waiting_.size() - taken_messages_ >= place; }
  bool empty() const { return waiting_.empty(); }
  /// Messages that have not been taken.
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    Outgoing outgoing;
    SteadyTime since{};
  };

  Limits limits_;
  std::deque<Waiting> waiting_;
  std::size_t held_messages_ = 0;  ///< waiting or taken
  std::size_t held_bytes_ = 0;
  std::size_t taken_messages_ = 0;
  std::size_t taken_bytes_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t hurry_until_ = 0;
};

}  // namespace sluice::client::detail
