#include "sluice/client/producer.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/mutex.hpp"
#include "base/signal_block.hpp"
#include "base/uuid.hpp"
#include "client/src/core.hpp"
#include "client/src/send_queue.hpp"

namespace sluice::client {

using detail::Core;
using detail::Outgoing;
using detail::SendQueue;

namespace {

/// In nanoseconds, or the longest span that those can count.
Duration span_of(std::chrono::milliseconds span) {
  constexpr auto kMost = std::chrono::duration_cast<std::chrono::milliseconds>(Duration::max());
  return span > kMost ? Duration::max() : Duration(std::max(span, std::chrono::milliseconds::zero()));
}

// The callback and what it holds are gone when this returns, before anybody is told that all is settled.
void tell(ProduceCallback done, ProduceResult result) {
  if (const ProduceCallback callback = std::move(done)) {
    callback(std::move(result));
  }
}

}  // namespace

/// The queue with its lock, and the one thread that empties it.
class Producer::Parts {
 public:
  Parts(std::shared_ptr<Core> core, ProducerOptions options)
      : core_(std::move(core)),
        options_(std::move(options)),
        queue_({options_.max_messages, options_.max_bytes, span_of(options_.linger), core_->settings().send_lot}),
        thread_(started()) {}

  void produce(Outgoing outgoing, bool urgent) {
    std::optional<ErrorKind> refused;
    {
      const MutexLock lock(mutex_);
      refused = await_room(detail::bytes_of(outgoing.message));
      if (!refused) {
        const SteadyTime now = core_->clock().steady_now();
        const std::uint64_t place = queue_.add(std::move(outgoing), now);
        if (urgent) {
          queue_.hurry(place + 1);
        }
        // The first one starts the wait for company, the last one ends it; those between need not wake anybody.
        if (queue_.waiting() == 1 || queue_.order(now).take > 0) {
          work_.notify_one();
        }
        return;
      }
    }
    tell(std::move(outgoing.done), Error(*refused));
  }
  std::future<ProduceResult> promised(queue::NewMessage message, bool urgent) {
    // Shared, since whoever waits may be gone before the call that woke them has returned.
    auto promise = std::make_shared<std::promise<ProduceResult>>();
    auto result = promise->get_future();
    produce({std::move(message), [promise](ProduceResult sent) { promise->set_value(std::move(sent)); }}, urgent);
    return result;
  }
  queue::NewMessage message(std::string data, ProduceOptions options) const {
    std::string id = std::move(options.id);
    if (id.empty() && (options_.id_generator || !core_->settings().store_makes_ids)) {
      id = options_.id_generator ? options_.id_generator() : make_uuid_v7(core_->random(), core_->clock().wall_now());
    }
    return detail::to_store({.id = std::move(id),
                             .data = std::move(data),
                             .content_type = std::move(options.content_type),
                             .attributes = std::move(options.attributes),
                             .group = std::move(options.group),
                             .delay = options.delay,
                             .dedup_id = std::move(options.dedup_id),
                             .dedup_window = options.dedup_window,
                             .unique_key = std::move(options.unique_key),
                             .unique_until = options.unique_until,
                             .priority = options.priority});
  }
  ProduceResult send_now(queue::NewMessage message) {
    {
      const MutexLock lock(mutex_);
      if (closed_) {
        return Error(ErrorKind::producer_closed);
      }
    }
    std::vector<queue::NewMessage> one;
    one.push_back(std::move(message));
    return std::move(core_->send(std::move(one), core_->deadline()).front());
  }
  bool flush(Duration limit) {
    const MutexLock lock(mutex_);
    const std::uint64_t end = queue_.end();
    queue_.hurry(end);
    work_.notify_one();
    return settled_.wait_until(mutex_, core_->deadline_after(limit).time(),
                               [&]() SLUICE_REQUIRES(mutex_) { return ended_ || queue_.settled_up_to(end); });
  }
  bool close(Duration limit) {
    const MutexLock lock(mutex_);
    closed_ = true;
    queue_.hurry(queue_.end());
    close_by_ = std::min(close_by_, core_->deadline_after(limit).time());
    work_.notify_one();
    settled_.notify_all();
    if (on_own_thread()) {
      return false;
    }
    settled_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_REQUIRES(mutex_) { return ended_; });
    return !abandoned_;
  }
  bool on_own_thread() const { return std::this_thread::get_id() == sender_.load(); }

 private:
  std::jthread started() {
    const SignalBlock quiet;
    return std::jthread([this] { run(); });
  }
  // Why a message of this size is not taken; nothing when it is.
  std::optional<ErrorKind> await_room(std::size_t bytes) SLUICE_REQUIRES(mutex_) {
    const bool patient = options_.overflow == Overflow::wait && !on_own_thread();
    settled_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_REQUIRES(mutex_) {
      if (closed_ || queue_.has_room(bytes) || !patient) {
        return true;
      }
      // Each time: the room may have gone to a message that nobody hurries.
      queue_.hurry(queue_.end());
      work_.notify_one();
      return false;
    });
    if (closed_) {
      return ErrorKind::producer_closed;
    }
    return queue_.has_room(bytes) ? std::nullopt : std::optional(ErrorKind::queue_full);
  }
  void run() {
    sender_ = std::this_thread::get_id();
    while (true) {
      std::vector<Outgoing> lot;
      Deadline close_by = Deadline::never();
      {
        const MutexLock lock(mutex_);
        lot = next_lot();
        close_by = Deadline::at(close_by_);
      }
      if (lot.empty()) {
        break;
      }
      send_lot(std::move(lot), core_->deadline().earlier(close_by));
    }
    give_up();
  }
  // Whatever is left when closed and out of time is not taken: `give_up` sees to it.
  std::vector<Outgoing> next_lot() SLUICE_REQUIRES(mutex_) {
    while (true) {
      const SteadyTime now = core_->clock().steady_now();
      if (closed_ && (queue_.empty() || now >= close_by_)) {
        return {};
      }
      const detail::BatchOrder order = queue_.order(now);
      if (order.take > 0) {
        return queue_.take(order.take);
      }
      const bool none = queue_.empty();
      work_.wait_until(mutex_, std::min(order.wait_until, close_by_), [&]() SLUICE_REQUIRES(mutex_) {
        return closed_ || queue_.empty() != none || queue_.order(core_->clock().steady_now()).take > 0;
      });
    }
  }
  void send_lot(std::vector<Outgoing> lot, Deadline deadline) {
    std::vector<queue::NewMessage> messages;
    messages.reserve(lot.size());
    for (Outgoing& outgoing : lot) {
      messages.push_back(std::move(outgoing.message));
    }
    auto results = core_->send(std::move(messages), deadline);
    {
      const MutexLock lock(mutex_);
      const bool late = core_->clock().steady_now() >= close_by_;
      abandoned_ = abandoned_ || (late && std::any_of(results.begin(), results.end(), [](const ProduceResult& result) {
                                    return !result && result.error().transient();
                                  }));
      queue_.free_taken();
      settled_.notify_all();
    }
    for (std::size_t i = 0; i < lot.size(); ++i) {
      tell(std::move(lot[i].done), std::move(results[i]));
    }
    const MutexLock lock(mutex_);
    queue_.settle_taken();
    settled_.notify_all();
  }
  void give_up() {
    MutexLock lock(mutex_);
    while (!queue_.empty()) {
      abandoned_ = true;
      std::vector<Outgoing> lot = queue_.take(core_->settings().send_lot);
      queue_.free_taken();
      lock.unlock();
      for (Outgoing& outgoing : lot) {
        tell(std::move(outgoing.done), Error(ErrorKind::producer_closed));
      }
      lock.lock();
      queue_.settle_taken();
    }
    ended_ = true;
    settled_.notify_all();
  }

  // Fixed after construction.
  const std::shared_ptr<Core> core_;
  const ProducerOptions options_;
  // Synchronises itself.
  std::atomic<std::thread::id> sender_{};

  Mutex mutex_;
  Condition work_;     ///< for the sender: messages, hurry, the end
  Condition settled_;  ///< for everybody else: room, results, the end
  // Guarded by mutex_.
  SendQueue queue_ SLUICE_GUARDED_BY(mutex_);
  bool closed_ SLUICE_GUARDED_BY(mutex_) = false;
  bool ended_ SLUICE_GUARDED_BY(mutex_) = false;
  bool abandoned_ SLUICE_GUARDED_BY(mutex_) = false;
  SteadyTime close_by_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::max();

  std::jthread thread_;
};

Producer::Producer(const QueueClient& client, ProducerOptions options)
    : parts_(std::make_unique<Parts>(client.core_, std::move(options))) {}

Producer::~Producer() {
  // Its thread cannot wait for its own end.
  SLUICE_ASSERT(!parts_->on_own_thread() && "a Producer is destroyed by its own callback");
  close();
}

ProduceResult Producer::produce(std::string data, ProduceOptions options) {
  queue::NewMessage message = parts_->message(std::move(data), std::move(options));
  if (parts_->on_own_thread()) {
    return parts_->send_now(std::move(message));
  }
  return parts_->promised(std::move(message), true).get();
}

std::future<ProduceResult> Producer::produce_async(std::string data, ProduceOptions options) {
  return parts_->promised(parts_->message(std::move(data), std::move(options)), false);
}

void Producer::produce_async(std::string data, ProduceOptions options, ProduceCallback done) {
  parts_->produce({parts_->message(std::move(data), std::move(options)), std::move(done)}, false);
}

bool Producer::flush(std::chrono::milliseconds limit) {
  return !parts_->on_own_thread() && parts_->flush(span_of(limit));
}

bool Producer::close(std::chrono::milliseconds limit) { return parts_->close(span_of(limit)); }

}  // namespace sluice::client
