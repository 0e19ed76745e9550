#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/stores/sqlite/checkpointer.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/flusher.hpp"
#include "host/stores/sqlite/store_file.hpp"
#include "host/stores/sqlite/store_lock_file.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

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
  std::unique_ptr<Statement> begin_;
  std::unique_ptr<Statement> commit_;
  bool log_saved_ = false;  ///< since a file of the store was found to be taken away

  Mutex mutex_;
  Condition work_there_;
  // Guarded by mutex_.
  std::deque<std::shared_ptr<Request>> waiting_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Error> held_up_ SLUICE_GUARDED_BY(mutex_);  ///< why nothing is written just now

  StoreThread thread_;
};

}  // namespace sluice::queue::sqlite
