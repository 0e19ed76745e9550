#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sluice/handler.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "protocol.hpp"
#include "service.hpp"

namespace sns {

struct QueueLimits {
  sluice::Duration linger = std::chrono::milliseconds(5);         ///< after the last message that came
  sluice::Duration longest_wait = std::chrono::milliseconds(50);  ///< of one message for its batch
  int attempts = 3;                                               ///< of one message
};

/// Which messages go out together, and when. Step functions that are told the time; used by one thread at a time.
///
/// A batch goes out when it is full; when nothing of its topic is under way and nothing more has come for a moment; or
/// when its first message has waited long enough. While a request of the topic is under way the next batch waits for
/// it: its answer lets workers go who bring more messages.
class PublishQueue {
 public:
  /// A message on its way. Its queue alone writes it.
  struct Pending {
    Entry entry;
    std::string arn;
    sluice::SteadyTime since{};  ///< ready to go out
    int attempts = 0;
    bool alone = false;  ///< a batch that it was in was refused as a whole: it may have been the cause
    bool abandoned = false;
    std::optional<Failure> failure{};  ///< of the last attempt; nothing: SNS has it, has not been asked, or is asked
    std::promise<void> ended{};        ///< for who waits; the queue does not touch it
  };
  using Ticket = std::shared_ptr<Pending>;

  /// Entries of one topic that go out in one request.
  struct Batch {
    Topic topic;
    std::vector<Ticket> tickets;
    std::string form;
  };

  explicit PublishQueue(QueueLimits limits) : limits_(limits) {}

  Ticket add(const Topic& topic, Entry entry, sluice::SteadyTime now);
  /// A batch that is to go out now; call it until there is none.
  std::optional<Batch> next(sluice::SteadyTime now);
  /// When to ask again; `SteadyTime::max()`: when something happens.
  sluice::SteadyTime wake(sluice::SteadyTime now) const;
  /// What SNS answered: the messages that have ended with it. What may succeed a moment later stays; `chance` is
  /// uniform in [0, 1).
  std::vector<Ticket> answered(const Batch& batch, const BatchAnswer& answer, sluice::SteadyTime now, double chance);
  /// Gives up a message that failed and waits for another try. False of any other.
  bool give_up(const Ticket& ticket);
  /// Nobody wants to know any more.
  void abandon(const Ticket& ticket);

 private:
  struct Lane {
    Topic topic;
    std::deque<Ticket> waiting;
    int under_way = 0;  ///< requests
    sluice::SteadyTime last_arrival{};
  };

  std::optional<Batch> due(Lane& lane, sluice::SteadyTime now);
  Batch take(Lane& lane, std::vector<Ticket> tickets);
  bool keep(Pending& pending, bool may_be_another, sluice::SteadyTime now, double chance) const;
  void drop_if_idle(const std::string& arn);

  const QueueLimits limits_;
  std::map<std::string, Lane> lanes_;  // by ARN
};

/// Publishes what many threads bring, in as few requests as it takes: one thread puts batches together and sends them,
/// and each caller waits for the answer to its own message. Thread-safe.
class Publisher {
 public:
  /// The references outlive it, and it outlives all requests that are under way.
  Publisher(Service& service, QueueLimits limits, sluice::Duration timeout, const sluice::Clock& clock,
            sluice::Random& random);
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Nothing once SNS has it.
  std::optional<Failure> publish(const Topic& topic, Entry entry, const sluice::Context& context);

 private:
  void run(const std::stop_token& stop);
  void send(PublishQueue::Batch batch);

  Service& service_;
  const sluice::Duration timeout_;
  const sluice::Clock& clock_;
  sluice::Random& random_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  PublishQueue queue_;
  std::uint64_t changes_ = 0;  ///< messages that came and answers

  std::jthread thread_;
};

}  // namespace sns
