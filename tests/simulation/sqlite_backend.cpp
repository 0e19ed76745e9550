#include "tests/simulation/sqlite_backend.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include "host/stores/sqlite/sqlite_store.hpp"

namespace sluice::simulation {

SqliteBackend::Party::Party(const std::string& file, const Clock& clock, std::uint64_t seed) : random(seed) {
  // Nobody cuts the power.
  auto opened = queue::open_sqlite_queues({.path = file, .durable = false}, clock, random);
  if (!opened) {
    throw std::runtime_error(opened.error().message());
  }
  queues = std::move(*opened);
}

SqliteBackend::SqliteBackend(const Clock& clock, Random& random)
    : clock_(clock),
      random_(random),
      file_(folder_.file("store.db")),
      own_(file_, clock, random.next()),
      outside_(*own_.queues) {}

queue::Queues& SqliteBackend::queues_of(Truth::Host host) {
  auto& party = parties_[host];
  if (!party) {
    party = std::make_unique<Party>(file_, clock_, random_.next());
  }
  return *party->queues;
}

// Whoever had them has lost them, also where his lease has ended by a clock that was set forward.
void SqliteBackend::take_away(const queue::QueueAddress& address) {
  const auto page = outside_.list(address.queue, {.half = address.half, .limit = 1000}, Deadline::never());
  if (!page) {
    throw std::runtime_error(page.error().message());
  }
  std::vector<queue::Change> changes;
  for (const queue::StoredMessage& stored : page->messages) {
    if (stored.received_at) {
      changes.push_back(
          {.id = stored.message.id, .action = queue::ChangeAction::set_visibility, .after = std::chrono::seconds(2)});
    }
  }
  outside_.change(address.queue, changes, Deadline::never());
}

void SqliteBackend::begin_trade(Stored) {
  test::raw_sql(file_, "CREATE TABLE accounts (name TEXT PRIMARY KEY, times INTEGER NOT NULL) STRICT");
}

queue::EffectWrite SqliteBackend::add_one(const std::string& account) {
  return {queue::SqlWrite{
      "INSERT INTO accounts VALUES (?1, 1) ON CONFLICT (name) DO UPDATE SET times = times + 1", {account}, 1}};
}

queue::EffectWrite SqliteBackend::never() {
  return {queue::SqlWrite{"UPDATE accounts SET times = times WHERE name = 'nobody'", {}, 1}};
}

std::map<std::string, std::int64_t> SqliteBackend::accounts() {
  std::map<std::string, std::int64_t> all;
  for (const std::string& row : test::raw_sql(file_, "SELECT times || ' ' || name FROM accounts")) {
    const auto space = row.find(' ');
    all.emplace(row.substr(space + 1), std::stoll(row.substr(0, space)));
  }
  return all;
}

std::string SqliteBackend::damage() {
  const auto broken = test::broken_invariants(file_);
  return broken.empty() ? std::string() : broken.front();
}

}  // namespace sluice::simulation
