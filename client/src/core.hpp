#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/random.hpp"
#include "client/src/conversion.hpp"
#include "host/queue/arrivals.hpp"
#include "host/queue/queues.hpp"
#include "sluice/client/queue_client.hpp"

namespace sluice::client::detail {

/// What a client works with. All of it outlives the client.
struct Seams {
  queue::Queues& queues;
  const Clock& clock;
  Random& random;
};

/// What keeps the seams alive for as long as a client or producer needs them; tests keep theirs themselves.
class Backing {
 public:
  Backing() = default;
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;
  virtual ~Backing() = default;
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
  static Result<QueueClient> client(const Seams& seams, Settings settings, std::unique_ptr<Backing> backing);

  Core(const Seams& seams, Settings settings, std::unique_ptr<Backing> backing)
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

  Error error(const sluice::Error& failure, Asked asked) const {
    return to_error(failure, asked, settings_.store_name);
  }
  /// Sends what is sound, and has an id where the store makes none; results in the order given.
  std::vector<Result<std::string>> send(std::vector<queue::NewMessage> messages, Deadline deadline) const;
  /// One change of one message.
  Result<void> change(queue::Change change) const;
  /// The message after a change of ours.
  Result<Message> look(const std::string& id) const;

 private:
  sluice::Result<void> open();

  // Fixed after `client`.
  const std::unique_ptr<Backing> backing_;
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
