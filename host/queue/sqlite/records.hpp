#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/sqlite/connection.hpp"
#include "host/queue/sqlite/deliveries.hpp"
#include "host/queue/sqlite/id_index.hpp"
#include "host/queue/sqlite/tally.hpp"
#include "host/queue/store.hpp"

namespace sluice::queue::sqlite {

/// Queues by their names. Works on either kind of connection.
class QueueNames {
 public:
  explicit QueueNames(Connection& connection);
  std::optional<std::int64_t> find(const std::string& name);

 private:
  Statement find_;
};

/// The messages of a file as records: made, looked up, changed, removed. Works inside a transaction of its connection.
class Records {
 public:
  explicit Records(Connection& connection);

  /// At the start of each transaction, and before its commit.
  void begin() { tally_.begin(); }
  void finish() { tally_.finish(); }

  Deliveries& deliveries() { return deliveries_; }

  std::optional<std::int64_t> queue(const std::string& name) { return names_.find(name); }
  /// Makes the queue where it is absent.
  std::int64_t make_queue(const std::string& name);
  /// False: the id is taken.
  bool insert(std::int64_t queue, const std::string& id, const NewMessage& message, WallTime now);
  std::optional<Standing> find(std::int64_t queue, const std::string& id);
  void replace_content(const Standing& standing, const NewMessage& content, WallTime now);
  /// Removes at most `max` messages of a half whose seq is below `end`; returns how many.
  std::size_t purge(std::int64_t half, std::int64_t end, std::size_t max);
  /// The seq that the next message gets.
  std::int64_t end();

 private:
  std::vector<std::int64_t> gather(Statement& statement, std::int64_t half, std::int64_t end, std::size_t max);

  Tally tally_;
  Deliveries deliveries_;
  QueueNames names_;
  IdLookup ids_;
  Statement queue_insert_;
  Statement insert_;
  Statement content_;
  Statement purge_ready_;
  Statement purge_waiting_;
  Statement end_;
};

}  // namespace sluice::queue::sqlite
