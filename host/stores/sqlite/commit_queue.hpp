#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/store_file.hpp"
#include "host/stores/sqlite/store_lock_file.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

/// Writes what lies in the log to its place in the file, beside the writers and without waiting for readers.
///
/// The log begins anew once all of it is written and nobody reads from it. A reader that stays keeps it growing: that
/// costs disk space and no time, and is reported.
class Checkpointer {
 public:
  using Report = std::function<void(const std::string& warning)>;

  Checkpointer(std::unique_ptr<Connection> connection, Report report);

  /// The log has so many pages now. Returns at once; true: most of it has been written, and the rest is so little that
  /// the caller, who keeps writers away, should write it, so that the log begins anew.
  bool log_has(std::int64_t pages);
  /// Writes all that was committed before the call, or says why not.
  Result<void> write_all();
  /// The same for a store whose files were taken away: whatever lies in its place later must not take what is in the
  /// log for its own.
  void write_and_empty();

  void request_stop() { thread_.request_stop(); }
  bool ended_by(SteadyTime limit) { return thread_.ended_by(limit); }

 private:
  void serve(const std::stop_token& stop);
  Connection::Written write();
  void judge(const Connection::Written& written);

  // Fixed after construction.
  const std::string path_;
  const Report report_;

  Mutex connection_mutex_;
  const std::unique_ptr<Connection> connection_ SLUICE_GUARDED_BY(connection_mutex_);

  // Touched only by its thread.
  SteadyTime next_report_ = SteadyTime::min();

  Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  bool wanted_ SLUICE_GUARDED_BY(mutex_) = false;
  bool rest_is_small_ SLUICE_GUARDED_BY(mutex_) = false;
  std::int64_t seen_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< pages when it was last wanted

  StoreThread thread_;
};

/// Brings what is committed onto the disk, and then says so: all that came while one flush was under way shares the
/// next. The lock of the file is not held meanwhile.
///
/// After a flush that failed, the system has forgotten what it could not write. From then on only a checkpoint, which
/// writes everything once more to another place, counts as a flush, until one has succeeded.
class Flusher {
 public:
  /// Told the outcome, from the flusher's thread.
  using Done = std::function<void(const std::optional<Error>&)>;

  Flusher(StoreFile& file, Checkpointer& checkpointer);

  /// For what is committed already.
  void flush(Done done);
  void request_stop() { thread_.request_stop(); }
  bool ended_by(SteadyTime limit) { return thread_.ended_by(limit); }

 private:
  void serve(const std::stop_token& stop);
  std::optional<Error> flush_now();

  // Fixed after construction.
  StoreFile& file_;
  Checkpointer& checkpointer_;

  // Touched only by its thread.
  bool failed_before_ = false;

  Mutex mutex_;
  Condition changed_;
  std::vector<Done> waiting_ SLUICE_GUARDED_BY(mutex_);

  StoreThread thread_;
};

/// Group commit: what several threads want written at one time goes into one transaction, and what several transactions
/// want on the disk into one flush.
///
/// A thread of its own writes, so that no caller waits beyond its deadline whatever the disk does. Who leaves while his
/// work is being written has an unknown outcome. When a group fails, each of its members gets a transaction of its own,
/// so that one message too many for the disk fails no settlement beside it.  Thread-safe.
class CommitQueue {
 public:
  /// A transaction takes nothing more once it has lasted so long: nobody else writes meanwhile.
  static constexpr Duration kWanted = std::chrono::milliseconds(100);

  /// All of it runs on the queue's thread, so that it owns what it touches. It never throws.
  struct Task {
    /// Inside a transaction. It may run twice, the first time rolled back, so it sets its results anew each time.
    std::function<void()> work;
    /// True: done when it is on the disk. False: when it is committed, and survives the end of the process.
    bool flush = true;
    /// Once others can see it, which may be before it is on the disk. May be empty.
    std::function<void()> committed = {};
    /// When it is committed, but its caller is told that its outcome is unknown; on any thread. May be empty.
    std::function<void()> unconfirmed = {};
    /// Then also, inside a transaction of its own. May be empty.
    std::function<void()> undo = {};
  };

  struct Hooks {
    std::function<void()> begin;   ///< before the first work of a transaction
    std::function<void()> finish;  ///< after the last, before the commit
  };

  /// What it writes with. All of it outlives the queue; `door` may be null.
  struct Tools {
    StoreFile& file;
    Connection& connection;
    Checkpointer& checkpointer;
    Flusher& flusher;
    StoreLockFile* lock_file = nullptr;
    bool durable = true;
  };

  CommitQueue(const Clock& clock, const Tools& tools, Hooks hooks);

  /// Returns when the task is done, or with the reason why it is not.
  Result<void> run(Task task, Deadline deadline);

  /// Takes no more, and ends once what it has taken is committed. Nobody waits for it any more.
  void request_stop() { thread_.request_stop(); }
  bool ended_by(SteadyTime limit) { return thread_.ended_by(limit); }

 private:
  struct Request {
    Task task;
    Deadline deadline = Deadline::never();
    // Guarded by mutex_ of the queue.
    bool taken = false;    ///< into a transaction
    bool visible = false;  ///< committed
    bool left = false;     ///< by its caller, after it was taken
    bool done = false;
    std::optional<Error> error;
    Condition changed;
  };
  using Group = std::vector<std::shared_ptr<Request>>;

  using Outcomes = std::vector<std::optional<Error>>;

  void serve(const std::stop_token& stop);
  void write_some(const std::stop_token& stop);
  void save_log();
  Group take_group();
  // Of those of the group, from its first on, that came to their turn in time.
  Outcomes write(const Group& group);
  Outcomes write_each(const Group& group);
  /// Those behind them go first next time.
  void put_back(Group& group, std::size_t written);
  bool still_wanted(const Request& request);
  std::optional<Error> begin();
  std::optional<Error> commit();
  /// Of the connection; then what was begun is rolled back.
  std::optional<Error> failure();
  void roll_back();
  void tell(const Group& group, const Outcomes& outcomes);
  void answer(const Group& group, const std::optional<Error>& error);
  void undo_later(Request& request) SLUICE_REQUIRES(mutex_);
  void fail_waiting(const Error& error);
  void checkpoint();

  // Fixed after construction.
  const Clock& clock_;
  const Tools tools_;
  const Hooks hooks_;

  // Touched only by its thread.
  Statement begin_{tools_.connection, "BEGIN IMMEDIATE"};
  Statement commit_{tools_.connection, "COMMIT"};
  bool log_saved_ = false;  ///< since a file of the store was found to be taken away

  Mutex mutex_;
  Condition work_there_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<Request>> waiting_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Error> held_up_ SLUICE_GUARDED_BY(mutex_);  ///< why nothing is written just now

  StoreThread thread_;
};

}  // namespace sluice::queue::sqlite
