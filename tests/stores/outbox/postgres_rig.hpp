#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/random.hpp"
#include "host/queue/source.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/outbox_queues.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "tests/support/postgres_server.hpp"

namespace sluice::test {

/// The one server of this test program; null where there is no PostgreSQL.
PostgresServer* postgres();

/// An outbox table of its own in that server, and what a test does to it.
class OutboxTable {
 public:
  /// `side_table`: for coordination = "table".
  explicit OutboxTable(bool side_table = false);
  /// One that somebody else's SQL makes, in which "@T" stands for the table.
  OutboxTable(const std::string& ddl, config::OutboxColumns columns);

  queue::outbox::Settings settings() const;
  std::unique_ptr<queue::outbox::Database> database() const;
  /// Runs SQL in which "@T" stands for the table; the first column of what it gives back.
  std::vector<std::string> sql(std::string text);
  /// Runs statements one after the other: what `ddl` gives.
  void run_all(const std::string& statements);
  /// Rows with these groups, in this order, of type "orders"; their ids begin with `first`.
  void insert(const std::vector<std::string>& groups, std::int64_t first = 1);
  std::int64_t count(const std::string& where);

 private:
  void connect();

  const bool side_table_;
  config::OutboxColumns columns_;
  std::vector<std::string> attributes_;
  SystemClock clock_;
  mutable SeededRandom random_;
  std::string name_;
  std::unique_ptr<queue::outbox::SqlConnection> connection_;
};

/// A source on that table with nobody behind it: the test claims and settles.
class SourceRig {
 public:
  explicit SourceRig(OutboxTable& table, const queue::Selection& selection = {.job = "relay"},
                     Duration lease = std::chrono::seconds(15), std::uint32_t buckets = 64,
                     const std::string& schema = "", const std::string& producer = "shop");

  /// What can be claimed within some time; waits until there is something.
  std::vector<queue::Delivery> claim(std::size_t max = 1000, Duration within = std::chrono::seconds(20));
  /// What can be claimed now.
  std::vector<queue::Delivery> claim_now();
  queue::SettleStatus settle(const queue::Delivery& delivery, queue::CompletionAction action, Duration delay = {},
                             const std::string& error = "it failed");
  /// Claims and removes until so many are through; their ids in order.
  std::vector<std::int64_t> drain(std::size_t count);
  Deadline deadline() const { return Deadline::after(clock, std::chrono::seconds(20)); }
  /// What the source has taken back so far.
  std::vector<std::string> lost();

  SystemClock clock;
  SeededRandom random;
  std::unique_ptr<queue::outbox::Database> database;
  Mutex mutex;
  std::vector<std::string> lost_ids SLUICE_GUARDED_BY(mutex);
  Condition changed;
  bool ready SLUICE_GUARDED_BY(mutex) = false;
  std::vector<std::string> warnings SLUICE_GUARDED_BY(mutex);
  std::unique_ptr<queue::Source> source;
};

}  // namespace sluice::test

/// Loudly, and counted as skipped.
#define SLUICE_NEEDS_POSTGRES()                                    \
  if (sluice::test::postgres() == nullptr) {                       \
    GTEST_SKIP() << "PostgreSQL is not installed; run ./dev deps"; \
  }
