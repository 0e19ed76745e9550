#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/ready_index.hpp"
#include "host/stores/sqlite/store_file.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

/// Reads whole records and counts, on whichever connection. Everything it returns is void when the connection has
/// failed.
class RecordReader {
 public:
  explicit RecordReader(Connection& connection);

  /// For what is read beside messages.
  Connection& connection() { return connection_; }

  /// As Records::queue.
  std::int64_t queue(const std::string& name) { return queue_.bind(std::string_view(name)).only().value_or(0); }
  /// All of them, by name.
  std::vector<std::string> queues();
  std::optional<StoredMessage> find(std::int64_t queue, const std::string& id);
  std::optional<StoredMessage> read(std::int64_t seq) { return read(record_, seq); }
  /// The same without body, content type, attributes and group.
  std::optional<StoredMessage> read_head(std::int64_t seq) { return read(head_, seq); }
  /// What `put` was given as StoredMessage::native.
  std::string native(std::int64_t seq);

  /// The places after `from`, oldest first, whether ready, delayed or in flight; with `newest_first` those before it,
  /// the youngest first.
  std::vector<Place> list(std::int64_t half, const Place& from, std::size_t limit, bool newest_first = false);
  QueueStats stats(std::int64_t half, WallTime now);
  QueueOverview overview(std::int64_t half, std::size_t ids, std::size_t errors, WallTime now);

 private:
  std::optional<StoredMessage> read(Statement& statement, std::int64_t seq);
  bool ordered(std::int64_t half);
  std::string text(Statement& statement, std::int64_t seq);

  Connection& connection_;
  Statement queue_{connection_, "SELECT id FROM sluice_queues WHERE name = ?1"};
  Statement kept_{connection_, "SELECT kept FROM sluice_queues WHERE id = ?1"};
  Statement queues_{connection_, "SELECT name FROM sluice_queues ORDER BY name"};
  Statement by_id_{connection_, kFindById};
  Statement record_;
  Statement head_;
  Statement native_{connection_, "SELECT native FROM sluice_messages WHERE seq = ?1"};
  Statement id_{connection_, "SELECT id FROM sluice_messages WHERE seq = ?1"};
  std::array<Statement, 4> list_;  ///< by whether an order is kept, and whether the newest come first
  Statement stats_;
  Statement hidden_;
  // CROSS JOIN: the failures first, and only their messages.
  Statement failures_{
      connection_,
      "SELECT d.failure, m.id FROM sluice_deliveries AS d CROSS JOIN sluice_messages AS m ON m.seq = d.seq "
      "WHERE d.half = ?1 AND d.failure IS NOT NULL"};
};

/// Reads one after the other on a thread and a connection of their own: so that no caller waits beyond its deadline,
/// and no writer for a read. Thread-safe.
class ReadThread {
 public:
  /// On its thread, on one state of the file. It owns what it touches, for its caller may have left.
  using Work = std::function<void(RecordReader&)>;

  ReadThread(const Clock& clock, const StoreFile& file, std::unique_ptr<Connection> connection);

  Result<void> run(Work work, Deadline deadline);
  void request_stop() { thread_.request_stop(); }
  bool ended_by(SteadyTime limit) { return thread_.ended_by(limit); }

 private:
  struct Request {
    Work work;
    Deadline deadline = Deadline::never();
    // Guarded by mutex_ of the reads.
    std::optional<Result<void>> outcome;  ///< once it is done
    Condition changed;
  };

  void serve(const std::stop_token& stop);
  Result<void> read(const Request& request);

  // Fixed after construction.
  const Clock& clock_;
  const StoreFile& file_;

  // Touched only by its thread.
  const std::unique_ptr<Connection> connection_;
  RecordReader reader_;

  Mutex mutex_;
  Condition work_there_;
  std::deque<std::shared_ptr<Request>> waiting_ SLUICE_GUARDED_BY(mutex_);

  StoreThread thread_;
};

}  // namespace sluice::queue::sqlite
