// How fast do messages go out to NATS JetStream through a real job, and what does it cost?
//
//   publish_bench [MESSAGES]
//
// The engine, the built nats plugin, the distribution's nats-server with a stream on files, all on this machine;
// 200-byte payloads out of a queue in memory that costs nothing. Once for each concurrency, with 1,000 subjects.
// Budget: 15,000 a second at concurrency 256.
#include <time.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/mutex.hpp"
#include "bench/memory_queue.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/work/job.hpp"
#include "tests/publishers/jet_stream.hpp"
#include "tests/support/nats_server.hpp"

namespace sluice::bench {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

constexpr std::size_t kPayload = 200;
constexpr std::uint64_t kSubjects = 1000;

const SystemClock kClock;

/// The rows of an outbox, made when they are claimed.
class Rows final : public MemoryQueue {
 public:
  explicit Rows(std::uint64_t count) : MemoryQueue(kClock, count, kPayload) {}

  Result<queue::Claimed> claim(const queue::ClaimRequest& request, Deadline deadline) override {
    auto claimed = MemoryQueue::claim(request, deadline);
    for (queue::Delivery& delivery : claimed->deliveries) {
      delivery.message.group = std::to_string(next_++ % kSubjects);
      delivery.message.attributes = {{"event", "order.created"},
                                     {"aggregate_type", "rn::nats:::bench"},
                                     {"aggregate_id", delivery.message.group},
                                     {"producer", "bench"}};
    }
    return claimed;
  }

 private:
  std::uint64_t next_ = 0;  // one poller claims
};

class NoMetrics final : public observe::JobMetrics {
 public:
  void add(const observe::JobCounts&) override {}
  void workers(std::uint64_t, std::uint64_t) override {}
};

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double processor_seconds_of(pid_t process) {
  clockid_t clock{};
  return ::clock_getcpuclockid(process, &clock) == 0 ? seconds_of(clock) : 0;
}

void wait(Duration span) {
  Mutex mutex;
  Condition never;
  const MutexLock lock(mutex);
  never.wait_until(mutex, kClock.steady_now() + span, [] { return false; });
}

void measure(const sluice_handler& handler, std::uint64_t messages, std::uint32_t concurrency) {
  const auto server = test::NatsServer::start();
  if (!server) {
    throw std::runtime_error(test::NatsServer::absence());
  }
  publishers::JetStream stream(server->url());
  stream.add_stream("BENCH", {"bench.>"});
  SeededRandom random(1);
  observe::Log log(observe::LogLevel::warn, observe::LogFormat::text);
  NoMetrics metrics;
  work::JobSpec spec;
  spec.config.name = spec.config.queue = "bench";
  spec.config.handler = "nats";
  spec.config.concurrency = concurrency;
  spec.config.options["servers"].value = std::vector<std::string>{server->url()};
  auto options = plugin::bind_options(handler, spec.config);
  spec.options = std::move(*options);
  spec.handler = &handler;
  spec.host = "bench";
  auto job = work::Job::create(std::move(spec), std::make_unique<Rows>(messages), {kClock, random, log, metrics});
  if (!job) {
    throw std::runtime_error(job.error().message());
  }
  const double processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const double of_server = processor_seconds_of(server->pid());
  const SteadyTime start = kClock.steady_now();
  (*job)->start();
  while ((*job)->ledger().done < messages) {
    wait(5ms);
  }
  const double seconds = std::chrono::duration<double>(kClock.steady_now() - start).count();
  const double spent = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor;
  const double spent_by_server = processor_seconds_of(server->pid()) - of_server;
  (*job)->drain(Deadline::after(kClock, 10s));
  if (stream.count("BENCH") != messages) {
    throw std::runtime_error("the stream does not hold what was published");
  }
  const auto count = static_cast<double>(messages);
  std::printf("concurrency %4u   %8.0f a second, %6.1f us of processor each, %6.1f us of the server's\n", concurrency,
              count / seconds, spent / count * 1e6, spent_by_server / count * 1e6);
  std::fflush(stdout);
}

int run(std::uint64_t messages) {
  const plugin::LibraryResult library = plugin::load_library(SLUICE_NATS_PLUGIN);
  if (library.plugin == nullptr) {
    throw std::runtime_error(library.why);
  }
  for (const std::uint32_t concurrency : {16U, 64U, 128U, 256U}) {
    measure(*library.plugin->handlers[0], messages, concurrency);
  }
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  try {
    return sluice::bench::run(argc > 1 ? std::stoull(argv[1]) : 200'000);
  } catch (const std::exception& error) {
    std::cerr << "publish_bench: " << error.what() << "\n";
    return 70;
  }
}
