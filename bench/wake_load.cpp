#include "bench/wake_load.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace sluice::bench {

namespace {

// As most messages have; what the time in front leaves is filled.
constexpr std::size_t kBodyBytes = 100;

class Calls {
 public:
  Calls(client::QueueClient& queue, const Load& load) : queue_(queue), load_(load) {}

  /// Those of one thread, each at its time, or as soon as the one before has returned.
  void make(std::size_t thread, std::size_t threads, std::int64_t begin) {
    const auto calls = (load_.messages + load_.batch - 1) / load_.batch;
    const double gap = 1e9 * static_cast<double>(load_.batch) / load_.rate;
    for (std::size_t call = thread; call < calls; call += threads) {
      wait_until(begin + static_cast<std::int64_t>(gap * static_cast<double>(call)));
      const std::size_t first = call * load_.batch;
      make_one(first, std::min(load_.batch, load_.messages - first));
    }
  }

 private:
  void make_one(std::size_t first, std::size_t count) {
    std::vector<client::NewMessage> messages(count);
    for (std::size_t i = 0; i < count; ++i) {
      messages[i].id = "wake-" + std::to_string(first + i);
      messages[i].delay = std::chrono::duration_cast<client::Duration>(std::chrono::nanoseconds(load_.delay));
    }
    const std::string due = std::to_string(monotonic_now() + load_.delay);
    for (client::NewMessage& message : messages) {
      message.data = due;
      message.data.resize(kBodyBytes, ' ');
    }
    if (count == 1) {
      return check(queue_.send(messages.front()));
    }
    for (const auto& result : queue_.send(messages)) {
      check(result);
    }
  }

  static void check(const client::Result<std::string>& result) {
    if (!result) {
      std::cerr << "wake_bench: not sent: " << result.error().message() << '\n';
      std::_Exit(1);
    }
  }

  client::QueueClient& queue_;
  const Load load_;
};

}  // namespace

void send_all(const WakeHost& host, const Load& load) {
  auto queue = host.open_queue();
  if (!queue) {
    throw std::runtime_error(queue.error().message());
  }
  const std::size_t threads = std::min(load.threads, std::max<std::size_t>(1, load.messages / load.batch));
  const std::int64_t begin = monotonic_now() + static_cast<std::int64_t>(kBeginsInSeconds * 1e9);
  Calls calls(*queue, load);
  std::vector<std::jthread> all;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    all.emplace_back([&calls, thread, threads, begin] { calls.make(thread, threads, begin); });
  }
}

}  // namespace sluice::bench
