// How fast does a job drain an outbox of PostgreSQL in order, and how soon does a row that is committed reach its
// handler?
//
//   outbox_bench [--rows N] [--seconds N] [--only drain|steady]
//
// 1. drain: a backlog of rows with 200-byte payloads, through a whole job whose handler does nothing, every row marked:
//    ten rows a key, all keys distinct, and the first once more with 200,000 sent rows kept. Budget: 10,000 a second in
//    order, 15,000 with distinct keys; memory below 64 MiB.
// 2. steady: 2,000 rows a second, committed ten at a time; from the commit to the handler. Budget: p99 50 ms.
// The server is one of its own, with its usual durability, on the same machine.
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/stores/outbox/outbox_queues.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "host/work/job.hpp"
#include "tests/support/postgres_server.hpp"

namespace sluice::bench {
namespace {

using Connection = queue::outbox::SqlConnection;
using std::chrono::milliseconds;
using std::chrono::seconds;

const SystemClock kClock;
std::atomic<std::uint64_t> handled{0};
Mutex latency_mutex;
std::vector<double> latencies SLUICE_GUARDED_BY(latency_mutex);

double memory_mib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0;
  while (status >> word) {
    if (word == "VmHWM:") {
      status >> kib;
    }
  }
  return kib / 1024;
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

int32_t create(const sluice_host*, const sluice_option_value* const*, size_t, void** instance,
               void (*)(void*, sluice_string), void*) {
  *instance = nullptr;
  return 0;
}
void destroy(void*) {}
void handle(void*, const sluice_message* message, const sluice_context* context) {
  handled.fetch_add(1);
  // The payload begins with the wall clock's microseconds at the commit, in the steady runs.
  const long long sent = message->body.size > 0 ? std::atoll(message->body.data) : 0;
  if (sent > 0) {
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(kClock.wall_now().time_since_epoch());
    const MutexLock lock(latency_mutex);
    latencies.push_back(static_cast<double>(now.count() - sent) / 1000);
  }
  const sluice_outcome outcome{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
  context->report(context, &outcome);
}

sluice_handler handler_table() {
  sluice_handler table{};
  table.struct_size = sizeof(sluice_handler);
  table.flags = SLUICE_HANDLER_CONCURRENT;
  table.name = "nothing";
  table.create = &create;
  table.destroy = &destroy;
  table.handle = &handle;
  return table;
}

class NoMetrics final : public observe::JobMetrics {
 public:
  void add(const observe::JobCounts&) override {}
  void workers(std::uint64_t, std::uint64_t) override {}
};

void wait(Duration span) {
  Mutex mutex;
  Condition never;
  const MutexLock lock(mutex);
  never.wait_until(mutex, kClock.steady_now() + span, [] { return false; });
}

std::unique_ptr<Connection> connect(const test::PostgresServer& server) {
  for (int attempt = 0; attempt < 500; ++attempt) {
    if (auto opened = queue::outbox::postgres::connect({.config = {.url = server.url()}}, "",
                                                       Deadline::after(kClock, seconds(10)))) {
      return std::move(*opened);
    }
    wait(milliseconds(20));
  }
  throw std::runtime_error("the server lets nobody in");
}

void run(Connection& connection, const std::string& sql) {
  if (const auto done = connection.run(sql, Deadline::after(kClock, seconds(600))); !done) {
    throw std::runtime_error(sql + ": " + done.error().message());
  }
}

/// The table as `sluice outbox ddl` makes it, with the trigger.
void make_table(Connection& connection) {
  run(connection, "DROP TABLE IF EXISTS outbox CASCADE");
  SeededRandom random;
  const auto database = queue::outbox::make_postgres_database({}, kClock, random);
  std::string statement;
  bool quoted = false;
  const std::string ddl = database->ddl(false);
  for (std::size_t i = 0; i < ddl.size(); ++i) {
    quoted = ddl.compare(i, 2, "$$") == 0 ? !quoted : quoted;
    statement += ddl[i];
    if (ddl[i] == ';' && !quoted) {
      run(connection, std::exchange(statement, {}));
    }
  }
}

void insert(Connection& connection, std::uint64_t rows, const std::string& key, const std::string& sent = "NULL") {
  run(connection, "INSERT INTO outbox (aggregate_type, aggregate_id, event, payload, sent_at) SELECT 'orders', " + key +
                      ", 'created', to_json(repeat('x', 198)), " + sent + " FROM generate_series(1, " +
                      std::to_string(rows) + ") n");
}

class RunningJob {
 public:
  explicit RunningJob(const test::PostgresServer& server) {
    queue::outbox::OutboxOptions options{
        .settings = {.name = "bench", .config = {.url = server.url(), .producer = "bench"}}};
    database_ = queue::outbox::make_postgres_database(options.settings, kClock, random_);
    work::JobSpec spec;
    spec.config.name = spec.config.queue = "bench";
    spec.config.handler = "nothing";
    spec.handler = &handler_;
    spec.host = "bench";
    auto source = *queue::outbox::make_outbox_source(std::move(options), queue::Selection{.job = "bench"}, *database_,
                                                     kClock, random_);
    auto job = work::Job::create(std::move(spec), std::move(source), {kClock, random_, log_, metrics_});
    if (!job) {
      throw std::runtime_error(job.error().message());
    }
    job_ = std::move(*job);
    job_->start();
  }
  ~RunningJob() { job_->drain(Deadline::after(kClock, seconds(10))); }

  std::uint64_t done() const { return job_->ledger().done; }

 private:
  SeededRandom random_{1};
  observe::Log log_{observe::LogLevel::warn, observe::LogFormat::text};
  NoMetrics metrics_;
  const sluice_handler handler_ = handler_table();
  std::unique_ptr<queue::outbox::Database> database_;
  std::unique_ptr<work::Job> job_;
};

void drain(const test::PostgresServer& server, Connection& connection, const char* what, std::uint64_t rows,
           const std::string& key, std::uint64_t kept) {
  make_table(connection);
  if (kept > 0) {
    insert(connection, kept, "n::text", "now()");
  }
  insert(connection, rows, key);
  run(connection, "ANALYZE outbox");
  const double cpu = processor_seconds();
  const SteadyTime begun = kClock.steady_now();
  {
    const RunningJob job(server);
    while (job.done() < rows) {
      wait(milliseconds(2));
    }
  }
  const double took = std::chrono::duration<double>(kClock.steady_now() - begun).count();
  std::printf("drain  %-44s %8.0f rows/s  %5.2f s of processor here  peak %5.1f MiB\n", what,
              static_cast<double>(rows) / took, processor_seconds() - cpu, memory_mib());
}

void steady(const test::PostgresServer& server, Connection& connection, std::uint64_t for_seconds) {
  constexpr int kBatch = 10;
  constexpr Duration kEvery = milliseconds(5);
  make_table(connection);
  const RunningJob job(server);
  wait(seconds(1));
  const double cpu = processor_seconds();
  const SteadyTime begun = kClock.steady_now();
  const std::uint64_t batches = for_seconds * 200;
  for (std::uint64_t i = 0; i < batches; ++i) {
    wait(begun + kEvery * static_cast<int>(i) - kClock.steady_now());
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(kClock.wall_now().time_since_epoch());
    run(connection, "INSERT INTO outbox (aggregate_type, aggregate_id, event, payload) SELECT 'orders', ((" +
                        std::to_string(i) + " * 10 + n) % 500)::text, 'created', '" + std::to_string(now.count()) +
                        "'::json FROM generate_series(1, " + std::to_string(kBatch) + ") n");
  }
  const double inserted =
      static_cast<double>(batches * kBatch) / std::chrono::duration<double>(kClock.steady_now() - begun).count();
  while (job.done() < batches * kBatch) {
    wait(milliseconds(2));
  }
  const MutexLock lock(latency_mutex);
  std::sort(latencies.begin(), latencies.end());
  const auto at = [&](double part) SLUICE_NO_TSA {
    return latencies[static_cast<std::size_t>(part * static_cast<double>(latencies.size() - 1))];
  };
  std::printf("steady %6.0f rows/s: from before the insert to the handler p50 %.1f ms, p99 %.1f ms; %.2f cores here\n",
              inserted, at(0.5), at(0.99),
              (processor_seconds() - cpu) / std::chrono::duration<double>(kClock.steady_now() - begun).count());
}

int main_of(const std::vector<std::string>& words) {
  std::uint64_t rows = 100'000;
  std::uint64_t for_seconds = 10;
  std::string only;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "--rows") {
      rows = std::stoull(words[i + 1]);
    } else if (words[i] == "--seconds") {
      for_seconds = std::stoull(words[i + 1]);
    } else if (words[i] == "--only") {
      only = words[i + 1];
    }
  }
  const auto server = test::PostgresServer::start({});
  if (!server) {
    std::printf("skipped: PostgreSQL is not installed; run ./dev deps\n");
    return 0;
  }
  const auto connection = connect(*server);
  if (only.empty() || only == "drain") {
    const std::string ten = "(n % " + std::to_string(std::max<std::uint64_t>(rows / 10, 1)) + ")::text";
    drain(*server, *connection, "ten rows a key", rows, ten, 0);
    drain(*server, *connection, "all keys distinct", rows, "n::text", 0);
    drain(*server, *connection, "ten rows a key, 200,000 sent rows kept", rows, ten, 200'000);
  }
  if (only.empty() || only == "steady") {
    steady(*server, *connection, for_seconds);
  }
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  try {
    return sluice::bench::main_of({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "outbox_bench: %s\n", error.what());
    return 1;
  }
}
