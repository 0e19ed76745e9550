#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <sluice/client/error.hpp>
#include <sluice/client/export.hpp>
#include <sluice/client/message.hpp>
#include <sluice/client/queue_client.hpp>
#include <string>

namespace sluice::client {

/// What a producer does with a message when it holds as much as it may.
enum class Overflow {
  wait,  ///< the caller waits for room
  fail,  ///< QueueFullError at once
};

struct ProducerOptions {
  /// How long a message waits for others to fill its batch of 25; zero and negative: not at all. A blocking `produce`,
  /// `flush` and callers who wait for room make everything leave at once.
  std::chrono::milliseconds linger{5};
  /// Most that wait here or are under way; at least one always may.
  std::size_t max_messages = 10'000;
  /// Likewise, of data, ids, attributes, groups and content types.
  std::size_t max_bytes = std::size_t{64} * 1024 * 1024;
  Overflow overflow = Overflow::wait;
  /// Makes the ids of messages that have none; empty: UUID version 7, and on a leased queue the store makes them, which
  /// costs a quarter. Called on the producing threads, on several at a time. What it throws reaches the caller of
  /// `produce`, and nothing is sent then.
  std::function<std::string()> id_generator{};
};

/// What may be said of a message beside its data, as in NewMessage. A value.
struct ProduceOptions {
  std::string id{};  ///< empty: one is made; one's own makes sending again safe
  Duration delay{};  ///< not received before now + delay; zero and negative: at once
  std::string content_type{kTextPlain};
  Attributes attributes{};
  std::string group{};
  std::string dedup_id{};  ///< as NewMessage's, like what follows
  Duration dedup_window = std::chrono::minutes(5);
  std::string unique_key{};
  UniqueUntil unique_until = UniqueUntil::done;
  Priority priority = Priority::normal;
};

/// The id of a message that is durable now, or why it was not stored.
using ProduceResult = Result<std::string>;
/// Called once, on the producer's thread, or on the calling one when the message is refused there (full, closed);
/// empty: nobody wants to know.
///
/// It must be quick, since nothing is sent meanwhile. An exception that leaves it on the producer's thread ends the
/// process, as out of a std::jthread. It may produce: `produce_async` never waits there, what does not fit is
/// QueueFullError; `produce` sends at once, past what waits. It must not destroy the producer, nor hold the last
/// reference to it: that ends the process too.
using ProduceCallback = std::function<void(ProduceResult)>;

/// Sends messages to one queue, in batches of 25 underneath, from any number of threads.
///
/// Thread-safe; has one thread, which takes no signals. Messages of one thread are sent in its order, those of several
/// batches at the same time: the order in the queue is that of the batches' arrival, so whoever depends on order waits
/// for each. Each message has exactly one result: an id, and the message is durable, or QueueClient::send's errors,
/// QueueFullError, ProducerClosedError. A transient failure is not tried again by the producer: the store has done so
/// already, and whether the message arrived may be unknown then (see Error::transient).
class SLUICE_CLIENT_API Producer {
 public:
  /// `client` may be moved or destroyed before the producer.
  explicit Producer(const QueueClient& client, ProducerOptions options = {});
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  /// As close(). Not in a callback, where it ends the process.
  ~Producer();

  /// Sends and waits for the result.
  ProduceResult produce(std::string data, ProduceOptions options = {});
  /// Returns at once, or when there is room. The future never throws, has its value at the latest when close() has
  /// returned, and may be dropped.
  std::future<ProduceResult> produce_async(std::string data, ProduceOptions options = {});
  /// The same with a callback; an error that is known at once (full, closed) comes that way too.
  void produce_async(std::string data, ProduceOptions options, ProduceCallback done);

  /// Sends what waits. True when everything produced before has its result and its callbacks are done and destroyed;
  /// false when `limit` was over first, and the rest goes on. Not for callbacks, where it returns false at once.
  bool flush(std::chrono::milliseconds limit = std::chrono::milliseconds::max());
  /// Takes no more messages, sends what waits and ends. What is not sent within `limit` fails with ProducerClosedError;
  /// a request under way may take its own time-out longer, and fails as the store says. True when nothing failed for
  /// want of time. Idempotent. Not for callbacks, where it only stops new messages.
  bool close(std::chrono::milliseconds limit = std::chrono::seconds(30));

 private:
  class SLUICE_CLIENT_LOCAL Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::client
