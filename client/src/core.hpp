#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "host/queue/arrivals.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/source.hpp"
#include "host/queue/stored_message.hpp"
#include "sluice/client/error.hpp"
#include "sluice/client/message.hpp"
#include "sluice/client/queue_client.hpp"

namespace sluice::client::detail {

/// What a call was about, as far as it decides what its failure is called.
enum class Asked { read, write_content };

queue::Half to_store(QueueType type);
queue::NewMessage to_store(NewMessage message);
/// `now` is the time of creation when the message names none.
queue::StoredMessage to_store(const Message& message, Time now);
queue::Receipt to_store(const Receipt& receipt);

Message to_public(queue::StoredMessage stored);
/// `visibility` is what the claim was made for: it tells when that was.
ReceivedMessage to_public(queue::Delivery delivery, QueueType type, Duration visibility);

/// Why this data is not what its content type says; empty when it is.
std::string objection(std::string_view data, std::string_view content_type);

/// What a client works with. All of it outlives the client.
struct Seams {
  queue::Queues& queues;
  const Clock& clock;
  Random& random;
};

/// One queue of a store: what QueueClient and its Producers share. Thread-safe; fixed after construction.
class Core {
 public:
  struct Settings {
    std::string queue;
    ClientOptions options{};
    std::string store_name{};      ///< in errors, in place of "DynamoDB API"; empty: that
    std::size_t send_lot = 200;    ///< messages of one send call: what the store puts on its way at once
    bool store_makes_ids = false;  ///< for less than one costs that is brought along
  };

  /// Opens every side of the queue; fails where its name is refused.
  static Result<QueueClient> client(const Seams& seams, Settings settings, std::shared_ptr<void> backing);

  Core(const Seams& seams, Settings settings, std::shared_ptr<void> backing)
      : backing_(std::move(backing)), seams_(seams), settings_(std::move(settings)) {}

  queue::Source& source(QueueType type) const { return type == QueueType::dlq ? *dlq_ : *standard_; }
  /// What tells that something may have come.
  queue::Arrivals& arrivals(QueueType type) const {
    return type == QueueType::dlq ? *dlq_arrivals_ : *standard_arrivals_;
  }
  queue::Sender& sender() const { return *sender_; }
  queue::Operator& oper() const { return *operator_; }
  const Clock& clock() const { return seams_.clock; }
  Random& random() const { return seams_.random; }
  const Settings& settings() const { return settings_; }
  Deadline deadline() const { return deadline_after(settings_.options.timeout); }
  Deadline deadline_after(Duration span) const { return Deadline::after(seams_.clock, span); }

  Error error(const sluice::Error& failure, Asked asked) const;
  /// Sends what is sound, and has an id where the store makes none; results in the order given.
  std::vector<Result<std::string>> send(std::vector<queue::NewMessage> messages, Deadline deadline) const;
  /// One change of one message.
  Result<void> change(queue::Change change) const;
  /// The same, and the message as it is afterwards.
  Result<Message> changed(const queue::Change& wanted) const;
  /// The message as it is.
  Result<Message> look(const std::string& id) const;

 private:
  sluice::Result<void> open();

  // Fixed after `client`.
  const std::shared_ptr<void> backing_;
  const Seams seams_;
  const Settings settings_;
  std::unique_ptr<queue::Source> standard_;
  std::unique_ptr<queue::Source> dlq_;
  std::unique_ptr<queue::Sender> sender_;
  std::unique_ptr<queue::Operator> operator_;
  // Last, before what they listen to.
  std::unique_ptr<queue::Arrivals> standard_arrivals_;
  std::unique_ptr<queue::Arrivals> dlq_arrivals_;
};

}  // namespace sluice::client::detail
