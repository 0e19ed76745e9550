// What does the engine cost, from Source.claim to Source.settle, with a handler that does nothing?
//
//   engine_bench [--messages N] [--concurrency N] [--folder DIR] [--latency N] [--groups N] [--scattered yes] [--only
//   dispatch|memory|sqlite|keys|effects|groups|latency|idle|batch|async]
//
// 1. dispatch: one thread plays poller, worker and settler; nanoseconds a message from the claim in memory to the
// outcome
//    and its settlement, through the C table. Budget: 1,000.
// 2. memory: a whole job with its threads over a queue that costs nothing. Budget: 200,000 a second.
// 3. sqlite: the same over the embedded store, durable, beside that store's own claim-and-settle loop. Budget: 120,000
// a
//    second on two idle cores; under 64 MiB.
// 4. keys: the same job without and with idempotency keys by message id, in turns on one file. Budget: at most 30 %
// off.
// 5. effects: the same job without and with a message and an SQL statement that each handler stages, in turns on one
// file.
// 6. groups: the same job over a queue that keeps no order and over one in --groups groups, in turns on one file; the
//    groups' messages come one group after the other, or at random with --scattered yes. Budget: half the rate.
// 7. latency: from the call of send to the start of the handler on an idle queue. Budget: p50 1 ms, p99 4 ms.
// 8. idle: ten jobs on empty queues of the embedded store. Budget: 1 % of one core, 30 MiB.
// 9. batch: the second one with a handler that takes a hundred messages in a call, and the call alone: nanoseconds a
//    message. Budget: 100.
// 10. async: the second one with an asynchronous handler whose messages another thread completes; then what 10,000 of
//    them take in memory. Budget: 100,000 a second on two idle cores; 1.5 KiB each.
// Seconds of processor are printed too: they count when the machine has other things to do.
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "bench/memory_queue.hpp"
#include "bench/raw_sqlite.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/work/dispatcher.hpp"
#include "host/work/job.hpp"
#include "host/work/job_flow.hpp"
#include "sluice/async.h"
#include "sluice/batch.h"
#include "sluice/effects.h"

namespace sluice::bench {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

struct Options {
  std::uint64_t messages = 1'000'000;
  std::uint32_t concurrency = 16;
  std::uint64_t latency = 2'000;
  std::string folder = std::filesystem::temp_directory_path().string();
  std::uint64_t groups = 10'000;
  bool scattered = false;
  std::string only;  ///< one of the ten; empty: all
};

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == name + ":") {
      double kib = 0;
      status >> kib;
      return kib / 1024;
    }
  }
  return 0;
}

// The machine's clock; one for all, as in the host.
const SystemClock kClock;

// When the handler last started, for the latency; a count of messages handled.
std::atomic<SteadyTime::rep> started_at{0};
std::atomic<std::uint64_t> handled{0};

int32_t create(const sluice_host*, const sluice_option_value* const*, size_t, void** instance,
               void (*)(void*, sluice_string), void*) {
  *instance = nullptr;
  return 0;
}
void destroy(void*) {}
void handle_nothing(void*, const sluice_message*, const sluice_context* context) {
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
  context->report(context, &outcome);
}
void handle_timed(void*, const sluice_message*, const sluice_context* context) {
  started_at.store(kClock.steady_now().time_since_epoch().count());
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
  context->report(context, &outcome);
  handled.fetch_add(1);
  handled.notify_all();
}

/// What a handler with effects costs from the plugin's side of the table on.
void handle_with_effects(void*, const sluice_message* message, const sluice_context* context) {
  constexpr std::int64_t kAccounts = 1'000;
  constexpr std::string_view kStatement = "UPDATE accounts SET balance = balance + ?1 WHERE number = ?2";
  const auto* effects = static_cast<const sluice_effects*>(context->extension(context, SLUICE_EFFECTS_1));
  sluice_effect_message emitted{};
  emitted.struct_size = sizeof(emitted);
  emitted.queue = {"receipts", 8};
  emitted.body = message->body;
  const auto account = static_cast<std::int64_t>(std::hash<std::string_view>{}({message->id.data, message->id.size}) %
                                                 static_cast<std::size_t>(kAccounts));
  const sluice_sql_value parameters[] = {{SLUICE_SQL_INTEGER, 0, 1, 0, {}}, {SLUICE_SQL_INTEGER, 0, account, 0, {}}};
  sluice_effect_sql sql{};
  sql.struct_size = sizeof(sql);
  sql.statement = {kStatement.data(), kStatement.size()};
  sql.parameters = parameters;
  sql.parameter_count = 2;
  sql.rows = 1;
  effects->send(effects, &emitted);
  effects->run_sql(effects, &sql);
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
  context->report(context, &outcome);
}

sluice_handler table(void (*handle)(void*, const sluice_message*, const sluice_context*)) {
  sluice_handler handler{};
  handler.struct_size = sizeof(sluice_handler);
  handler.flags = SLUICE_HANDLER_CONCURRENT;
  handler.name = "nothing";
  handler.create = &create;
  handler.destroy = &destroy;
  handler.handle = handle;
  return handler;
}

class NoMetrics final : public observe::JobMetrics {
 public:
  void add(const observe::JobCounts&) override {}
  void workers(std::uint64_t, std::uint64_t) override {}
};

config::JobConfig job_config(std::uint32_t concurrency, const std::string& name = "bench") {
  config::JobConfig config;
  config.name = config.queue = name;
  config.handler = "nothing";
  config.concurrency = concurrency;
  return config;
}

void wait(Duration span) {
  Mutex mutex;
  Condition never;
  const MutexLock lock(mutex);
  never.wait_until(mutex, kClock.steady_now() + span, [] { return false; });
}

/// What one run took.
struct Took {
  double seconds = 0;
  double processor = 0;

  void operator+=(const Took& more) {
    seconds += more.seconds;
    processor += more.processor;
  }
};

template <typename Work>
Took timed(Work work) {
  const SteadyTime start = kClock.steady_now();
  const double processor = processor_seconds();
  work();
  return {std::chrono::duration<double>(kClock.steady_now() - start).count(), processor_seconds() - processor};
}

void print(const char* what, const Took& took, std::uint64_t count) {
  const auto messages = static_cast<double>(count);
  std::printf("%-28s %10.0f a second, %6.2f us of processor each\n", what, messages / took.seconds,
              took.processor / messages * 1e6);
  std::fflush(stdout);
}

void dispatch(const Options& options) {
  SeededRandom random(1);
  const sluice_handler handler = table(&handle_nothing);
  const auto instance = *plugin::HandlerInstance::create({}, handler, "bench", {});
  work::WorkerBatch batch(kClock, 60s);
  isolation::JobLedger none;
  work::JobFlow flow(job_config(1), {.host = "bench"}, random, none, kClock.steady_now());
  MemoryQueue store(kClock, options.messages, 100);
  work::StepEffects effects;
  const std::uint32_t seat = flow.enlist(batch, work::SeatKind::worker, false, kClock.steady_now(), effects);
  double making = 0;
  const Took took = timed([&] {
    while (store.settled() < options.messages) {
      if (const auto order = flow.next_claim(kClock.steady_now()); order.count > 0) {
        const double before = processor_seconds();
        auto claims = store.claim({.max = order.count, .visibility = 30s}, Deadline::never());
        making += processor_seconds() - before;
        flow.claimed(std::move(claims), kClock.steady_now(), effects);
      }
      while (flow.deal(seat, kClock.steady_now(), effects)) {
        SteadyTime now = kClock.steady_now();
        while (work::WorkerBatch::Running* const run = batch.next(now)) {
          plugin::Outcome outcome = instance->handle({run->task->message, "bench", 5, run->attempt});
          now = kClock.steady_now();
          batch.finish(*run, std::move(outcome), now);
        }
        flow.collect(seat, kClock.steady_now(), effects);
      }
      auto order = flow.next_settlement(kClock.steady_now(), kClock.wall_now(), effects);
      if (!order.tasks.empty()) {
        auto results = store.settle(order.completions, Deadline::never());
        flow.settled(std::move(order), std::move(results), kClock.steady_now(), effects);
      }
      effects = {};
    }
  });
  std::printf("dispatch on one worker       %10.0f ns of processor a message\n",
              (took.processor - making) / static_cast<double>(options.messages) * 1e9);
}

std::unique_ptr<work::Job> make_job(const sluice_handler& handler, std::uint32_t concurrency,
                                    std::unique_ptr<queue::Source> source, const work::JobSeams& seams,
                                    const std::string& name = "bench", config::Order order = config::Order::none) {
  work::JobSpec spec;
  spec.config = job_config(concurrency, name);
  spec.config.order = order;
  if (seams.keys) {
    spec.config.idempotency.emplace();
  }
  spec.handler = &handler;
  spec.host = "bench";
  auto job = work::Job::create(std::move(spec), std::move(source), seams);
  if (!job) {
    throw std::runtime_error(job.error().message());
  }
  return std::move(*job);
}

// Runs a job until it has done `count` messages. It looks every few milliseconds, which costs nothing.
Took work_off(std::unique_ptr<queue::Source> source, std::uint64_t count, std::uint32_t concurrency,
              std::function<Result<std::unique_ptr<queue::IdempotencyKeys>>(const std::string&)> keys = {},
              const sluice_handler& handler = table(&handle_nothing), config::Order order = config::Order::none) {
  SeededRandom random(2);
  observe::Log log(observe::LogLevel::warn, observe::LogFormat::text);
  NoMetrics metrics;
  work::JobSeams seams{kClock, random, log, metrics};
  seams.keys = std::move(keys);
  const auto job = make_job(handler, concurrency, std::move(source), seams, "bench", order);
  const Took took = timed([&] {
    job->start();
    while (job->ledger().done < count) {
      wait(5ms);
    }
  });
  const work::JobActivity report = job->drain(Deadline::after(kClock, 10s));
  if (!report.clean() || report.ledger.done != count) {
    throw std::runtime_error("the job lost messages");
  }
  return took;
}

void in_memory(const Options& options) {
  auto queue = std::make_unique<MemoryQueue>(kClock, options.messages, 100);
  print("memory, whole job", work_off(std::move(queue), options.messages, options.concurrency), options.messages);
}

// A handler that takes batches.
void handle_batch(void*, const sluice_message* const*, const sluice_context* const* contexts, size_t count) {
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
  for (size_t i = 0; i < count; ++i) {
    contexts[i]->report(contexts[i], &outcome);
  }
}
const sluice_batch kBatch{sizeof(sluice_batch), 0, &handle_batch};

void in_batches(const Options& options) {
  constexpr std::size_t kMessages = 100;
  sluice_handler handler = table(&handle_nothing);
  handler.extension = [](const char* id) -> const void* {
    return std::string_view(id) == SLUICE_BATCH_1 ? &kBatch : nullptr;
  };
  const auto instance = *plugin::HandlerInstance::create({}, handler, "bench", {});
  queue::Message message;
  message.id = "0b5e8f0e-6b0a-4b6e-9a39-000000000000";
  message.body.assign(100, 'x');
  std::deque<plugin::Attempt> attempts;
  std::vector<plugin::Work> batch;
  for (std::size_t i = 0; i < kMessages; ++i) {
    batch.push_back({message, "bench", 5, attempts.emplace_back(kClock)});
  }
  std::vector<plugin::Outcome> outcomes(kMessages);
  const Took took = timed([&] {
    for (std::uint64_t i = 0; i < options.messages; i += kMessages) {
      instance->handle_batch(batch, outcomes);
    }
  });
  std::printf("%-28s %10.0f ns a message, %.0f of processor\n", "batch, the call alone",
              took.seconds / static_cast<double>(options.messages) * 1e9,
              took.processor / static_cast<double>(options.messages) * 1e9);
  auto queue = std::make_unique<MemoryQueue>(kClock, options.messages, 100);
  print("batch, whole job", work_off(std::move(queue), options.messages, 1, {}, handler), options.messages);
}

/// Before the first CompletingThread is made.
const sluice_async_host* async_host = nullptr;

/// Completes what an asynchronous handler has begun with, on a thread of its own; while it is held it only counts.
class CompletingThread {
 public:
  explicit CompletingThread(bool holds) : holds_(holds), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void add(sluice_token token) {
    const MutexLock lock(mutex_);
    tokens_.push_back(token);
    if (tokens_.size() == 1) {
      came_.notify_all();
    }
  }
  std::size_t held() {
    const MutexLock lock(mutex_);
    return tokens_.size();
  }
  void let_go() {
    const MutexLock lock(mutex_);
    holds_ = false;
    came_.notify_all();
  }

 private:
  void run(const std::stop_token& stop) {
    const sluice_async_host& host = *async_host;
    const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
    while (!stop.stop_requested()) {
      std::vector<sluice_token> mine;
      {
        const MutexLock lock(mutex_);
        came_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return !holds_ && !tokens_.empty(); });
        mine.swap(tokens_);
      }
      for (const sluice_token token : mine) {
        host.complete(&host, token, &outcome);
      }
    }
  }

  Mutex mutex_;
  Condition came_;
  bool holds_ SLUICE_GUARDED_BY(mutex_);
  std::vector<sluice_token> tokens_ SLUICE_GUARDED_BY(mutex_);
  std::jthread thread_;
};
CompletingThread* completing = nullptr;

void begin_nothing(void*, const sluice_message*, const sluice_async_context* context) {
  completing->add(context->token);
}
const sluice_async kAsync{sizeof(sluice_async), 0, &begin_nothing};

sluice_handler async_table() {
  sluice_handler handler = table(&handle_nothing);
  handler.create = [](const sluice_host* host, const sluice_option_value* const*, size_t, void** instance,
                      void (*)(void*, sluice_string), void*) -> int32_t {
    async_host = static_cast<const sluice_async_host*>(host->extension(host, SLUICE_ASYNC_1));
    *instance = nullptr;
    return 0;
  };
  handler.extension = [](const char* id) -> const void* {
    return std::string_view(id) == SLUICE_ASYNC_1 ? &kAsync : nullptr;
  };
  return handler;
}

// Before anything else, as memory that was given back would be taken again.
void many_in_flight(const sluice_handler& handler, std::uint32_t count) {
  CompletingThread thread(true);
  completing = &thread;
  SeededRandom random(2);
  observe::Log log(observe::LogLevel::warn, observe::LogFormat::text);
  NoMetrics metrics;
  const work::JobSeams seams{kClock, random, log, metrics};
  const auto job =
      make_job(handler, count, std::make_unique<MemoryQueue>(kClock, count, 100), seams, "bench", config::Order::none);
  const double before = memory("RssAnon");
  job->start();
  while (thread.held() < count) {
    wait(5ms);
  }
  std::printf("%-28s %10.0f bytes each, 147 of them body and id\n", "async, 10,000 in flight",
              (memory("RssAnon") - before) * 1024 * 1024 / count);
  thread.let_go();
  job->drain(Deadline::after(kClock, 10s));
}

void asynchronous(const Options& options) {
  constexpr std::uint32_t kInFlight = 10'000;
  const sluice_handler handler = async_table();
  static_cast<void>(*plugin::HandlerInstance::create({}, handler, "bench", {}));
  many_in_flight(handler, kInFlight);
  CompletingThread thread(false);
  completing = &thread;
  auto queue = std::make_unique<MemoryQueue>(kClock, options.messages, 100);
  print("async, whole job", work_off(std::move(queue), options.messages, kInFlight, {}, handler), options.messages);
}

/// Which groups messages get; none of 0.
struct Groups {
  std::uint64_t count = 0;
  bool scattered = false;
};

void fill(queue::Sender& sender, std::uint64_t count, const Groups& groups = {}) {
  SeededRandom random(9);
  std::uint64_t next = 0;
  std::vector<queue::NewMessage> messages(1000);
  for (std::uint64_t sent = 0; sent < count;) {
    messages.resize(std::min<std::uint64_t>(1000, count - sent));
    for (queue::NewMessage& message : messages) {
      message.body.assign(100, 'x');
      if (groups.count > 0) {
        message.group = "group-" + std::to_string((groups.scattered ? random.next() : next++) % groups.count);
      }
    }
    for (const queue::SendResult& result : sender.send(messages, Deadline::never())) {
      if (result.status != queue::SendStatus::sent) {
        throw std::runtime_error(result.error.message());
      }
    }
    sent += messages.size();
  }
}

// The store's own claim and settle, one after the other on one thread.
Took store_alone(queue::Source& source) {
  return timed([&] {
    while (true) {
      const auto claimed = source.claim({.max = 1000, .visibility = 30s}, Deadline::never());
      if (claimed->deliveries.empty()) {
        return;
      }
      std::vector<queue::Completion> completions;
      for (const queue::Delivery& delivery : claimed->deliveries) {
        completions.push_back({.receipt = delivery.receipt});
      }
      source.settle(completions, Deadline::never());
    }
  });
}

std::unique_ptr<queue::Queues> open(const std::string& folder, const char* name, Random& random) {
  auto store = queue::open_sqlite_queues({.path = folder + "/" + name}, kClock, random);
  if (!store) {
    throw std::runtime_error(store.error().message());
  }
  return std::move(*store);
}

void on_sqlite(const Options& options, const std::string& folder) {
  SeededRandom random(3);
  const auto store = open(folder, "queue.db", random);
  const auto sender = *store->open_sender("bench");
  fill(*sender, options.messages);
  const Took alone = store_alone(**store->open_source({"bench"}));
  print("sqlite, the store alone", alone, options.messages);
  fill(*sender, options.messages);
  const Took whole = work_off(*store->open_source({"bench"}), options.messages, options.concurrency);
  print("sqlite, whole job", whole, options.messages);
  std::printf("                             %10.2f of the store alone; %.1f MiB resident, %.1f at most\n",
              alone.seconds / whole.seconds, memory("VmRSS"), memory("VmHWM"));
}

/// What two jobs took in turns, so that whatever else the machine does hits both.
struct Turns {
  static constexpr int kRounds = 3;
  Took plain;
  Took other;

  double rate() const { return plain.seconds / other.seconds; }
  double processor() const { return other.processor / plain.processor; }
};

template <typename Plain, typename Other>
Turns in_turns(const Options& options, const char* plain_name, Plain plain, const char* other_name, Other other) {
  Turns turns;
  for (int round = 0; round < Turns::kRounds; ++round) {
    turns.plain += plain();
    turns.other += other();
  }
  print(plain_name, turns.plain, Turns::kRounds * options.messages);
  print(other_name, turns.other, Turns::kRounds * options.messages);
  return turns;
}

void with_keys(const Options& options, const std::string& folder) {
  SeededRandom random(6);
  const auto store = open(folder, "keys.db", random);
  const auto sender = *store->open_sender("bench");
  const auto turn = [&](std::function<Result<std::unique_ptr<queue::IdempotencyKeys>>(const std::string&)> keys) {
    fill(*sender, options.messages);
    return work_off(*store->open_source({"bench"}), options.messages, options.concurrency, std::move(keys));
  };
  const Turns turns = in_turns(
      options, "sqlite, without keys", [&] { return turn({}); }, "sqlite, keys by message id",
      [&] { return turn([&store](const std::string& queue) { return store->open_keys(queue); }); });
  std::printf("                             %10.0f %% off the plain rate; %.0f %% more processor\n",
              (1 - turns.rate()) * 100, (turns.processor() - 1) * 100);
}

void with_effects(const Options& options, const std::string& folder) {
  SeededRandom random(7);
  const auto store = open(folder, "effects.db", random);
  const UserTable accounts(folder + "/effects.db", 1'000);
  const auto sender = *store->open_sender("bench");
  const auto turn = [&](const sluice_handler& handler) {
    fill(*sender, options.messages);
    return work_off(*store->open_source({"bench"}), options.messages, options.concurrency, {}, handler);
  };
  const Turns turns = in_turns(
      options, "sqlite, without effects", [&] { return turn(table(&handle_nothing)); }, "sqlite, message and SQL",
      [&] { return turn(table(&handle_with_effects)); });
  std::printf("                             %10.2f of the processor, %.2f of the rate\n", turns.processor(),
              turns.rate());
}

void in_groups(const Options& options, const std::string& folder) {
  SeededRandom random(8);
  const auto store = open(folder, "groups.db", random);
  const auto turn = [&](const char* queue, std::uint64_t count, config::Order order, const Groups& groups) {
    fill(**store->open_sender(queue), count, groups);
    return work_off(*store->open_source({queue}), count, options.concurrency, {}, table(&handle_nothing), order);
  };
  turn("grouped", 1, config::Order::group, {});  // its order is kept from the first claim on
  const Turns turns = in_turns(
      options, "sqlite, without an order", [&] { return turn("plain", options.messages, config::Order::none, {}); },
      "sqlite, in groups",
      [&] {
        return turn("grouped", options.messages, config::Order::group, {options.groups, options.scattered});
      });
  std::printf("                             %10.2f of the processor, %.2f of the rate\n", turns.processor(),
              turns.rate());
}

void latency(const Options& options, const std::string& folder) {
  SeededRandom random(4);
  observe::Log log(observe::LogLevel::warn, observe::LogFormat::text);
  NoMetrics metrics;
  const auto store = open(folder, "latency.db", random);
  const auto sender = *store->open_sender("bench");
  const sluice_handler handler = table(&handle_timed);
  const auto job =
      make_job(handler, options.concurrency, *store->open_source({"bench"}), {kClock, random, log, metrics});
  job->start();
  std::vector<double> milliseconds;
  for (std::uint64_t i = 0; i < options.latency; ++i) {
    while (!job->activity().quiescent) {
      wait(1ms);
    }
    queue::NewMessage message;
    message.body.assign(100, 'x');
    const SteadyTime before = kClock.steady_now();
    sender->send({&message, 1}, Deadline::never());
    handled.wait(i);
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(SteadyTime(Duration(started_at.load())) - before).count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  const auto at = [&](double part) {
    return milliseconds[static_cast<std::size_t>(part * static_cast<double>(milliseconds.size() - 1))];
  };
  std::printf("send to handler start         p50 %.3f ms, p90 %.3f ms, p99 %.3f ms, most %.3f ms\n", at(0.5), at(0.9),
              at(0.99), milliseconds.back());
  job->drain(Deadline::after(kClock, 10s));
}

void idle(const std::string& folder) {
  constexpr Duration kWatched = 10s;
  SeededRandom random(5);
  observe::Log log(observe::LogLevel::warn, observe::LogFormat::text);
  NoMetrics metrics;
  const auto store = open(folder, "idle.db", random);
  const sluice_handler handler = table(&handle_nothing);
  std::vector<std::unique_ptr<work::Job>> jobs;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "idle-" + std::to_string(i);
    jobs.push_back(make_job(handler, 8, *store->open_source({name}), {kClock, random, log, metrics}, name));
    jobs.back()->start();
  }
  wait(3s);  // until they have backed off
  const Took took = timed([&] { wait(kWatched); });
  std::printf("ten idle jobs                %10.2f %% of one core, %.1f MiB resident\n",
              took.processor / took.seconds * 100, memory("VmRSS"));
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--messages") {
      options.messages = std::stoull(argv[i + 1]);
    } else if (name == "--concurrency") {
      options.concurrency = static_cast<std::uint32_t>(std::stoul(argv[i + 1]));
    } else if (name == "--latency") {
      options.latency = std::stoull(argv[i + 1]);
    } else if (name == "--groups") {
      options.groups = std::stoull(argv[i + 1]);
    } else if (name == "--scattered") {
      options.scattered = std::string(argv[i + 1]) == "yes";
    } else if (name == "--only") {
      options.only = argv[i + 1];
    } else if (name == "--folder") {
      options.folder = argv[i + 1];
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  return options;
}

void run(const Options& options) {
  std::string folder = options.folder + "/engine_bench_XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder in " + options.folder);
  }
  const auto wanted = [&](const char* name) { return options.only.empty() || options.only == name; };
  if (wanted("dispatch")) {
    dispatch(options);
  }
  if (wanted("memory")) {
    in_memory(options);
  }
  if (wanted("batch")) {
    in_batches(options);
  }
  if (wanted("async")) {
    asynchronous(options);
  }
  if (wanted("sqlite")) {
    on_sqlite(options, folder);
  }
  if (wanted("keys")) {
    with_keys(options, folder);
  }
  if (wanted("effects")) {
    with_effects(options, folder);
  }
  if (wanted("groups")) {
    in_groups(options, folder);
  }
  if (wanted("latency")) {
    latency(options, folder);
  }
  if (wanted("idle")) {
    idle(folder);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  try {
    sluice::bench::run(sluice::bench::read_options(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "engine_bench: " << error.what() << "\n";
    return 70;
  }
}
