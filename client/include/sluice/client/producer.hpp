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
  /// How long a message waits for others to fill its batch of 25. A blocking `produce` and `flush` wait for nobody.
  std::chrono::milliseconds linger{5};
  std::size_t max_messages = 10'000;                      ///< most that wait here; at least one always may
  std::size_t max_bytes = std::size_t{64} * 1024 * 1024;  ///< of data, likewise
  Overflow overflow = Overflow::wait;
  /// Makes the ids of messages that have none. Called on the producing thread. Empty: UUID version 4.
  std::function<std::string()> id_generator{};
};

struct ProduceOptions {
  std::string id{};
  Duration delay{};
  std::string content_type{kTextPlain};
  Attributes attributes{};
  std::string group{};
};

/// The id of a message that is durable now, or why it was not stored.
using ProduceResult = Result<std::string>;
/// Called once, on the producer's thread; must be quick and must not throw. It may produce: what does not fit then is
/// QueueFullError, since waiting would be for itself.
using ProduceCallback = std::function<void(ProduceResult)>;

/// Sends messages to one queue, in batches of 25 underneath, from any number of threads.
///
/// Thread-safe. Messages of one thread are sent in its order, those of several batches at the same time: the order in
/// the queue is that of the batches' arrival, so whoever depends on order waits for each. A message whose future or
/// callback has an id is durable. A transient failure is not tried again by the producer: the store has done so
/// already.
class SLUICE_CLIENT_API Producer {
 public:
  /// `client` may be moved or destroyed before the producer.
  explicit Producer(QueueClient& client, ProducerOptions options = {});
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  /// As close().
  ~Producer();

  /// Sends and waits until the message is durable.
  ProduceResult produce(std::string data, ProduceOptions options = {});
  std::future<ProduceResult> produce_async(std::string data, ProduceOptions options = {});
  /// An error that is known at once (full, closed) comes by `done` too, on the calling thread.
  void produce_async(std::string data, ProduceOptions options, ProduceCallback done);

  /// Sends what waits, and returns when everything produced before has its result. Not for callbacks, where it returns
  /// at once.
  bool flush(std::chrono::milliseconds limit = std::chrono::milliseconds::max());
  /// Takes no more messages, sends what waits and ends. What is not sent within `limit` fails with ProducerClosedError;
  /// a request under way may take its own time-out longer. True when everything was sent or refused by the store.
  /// Idempotent. Not for callbacks, where it only stops new messages.
  bool close(std::chrono::milliseconds limit = std::chrono::seconds(30));

 private:
  class SLUICE_CLIENT_LOCAL Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::client
