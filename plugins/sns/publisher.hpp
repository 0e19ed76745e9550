#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sluice/handler.hpp>
#include <stop_token>
#include <thread>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "publish_queue.hpp"
#include "service.hpp"

namespace sns {

/// What came of one message. A value.
struct Delivery {
  enum class End : std::uint8_t {
    stored,
    failed,     ///< `failure` says why
    timed_out,  ///< the attempt is over before an answer came; SNS may have it all the same
  };
  End end = End::stored;
  Failure failure{};
};

/// Publishes what many threads bring, in as few requests as it takes: one thread puts batches together and sends them,
/// and each caller waits for the answer to its own message. Thread-safe.
class Publisher {
 public:
  /// The references outlive it and all requests that are under way.
  Publisher(Service& service, QueueLimits limits, sluice::Duration timeout, const sluice::Clock& clock,
            sluice::Random& random);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  Delivery publish(const Topic& topic, Entry entry, const sluice::Context& context);

 private:
  struct Waiter {
    std::condition_variable finished;
    bool done = false;
    std::optional<Failure> failure;
  };
  /// What the transport's callbacks share with it, which may outlast it.
  struct State {
    explicit State(QueueLimits limits) : queue(limits) {}

    std::mutex mutex;
    std::condition_variable_any changed;
    // Guarded by mutex.
    PublishQueue queue;
    std::uint64_t changes = 0;  ///< messages that came and answers
    std::map<PublishQueue::Ticket, Waiter*> waiters;
  };

  void run(const std::stop_token& stop);
  void send(PublishQueue::Batch batch);
  static void finish(State& state, const std::vector<PublishQueue::Finished>& finished);

  Service& service_;
  const sluice::Duration timeout_;
  const sluice::Clock& clock_;
  sluice::Random& random_;
  const std::shared_ptr<State> state_;
  std::jthread thread_;
};

}  // namespace sns
