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
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/store_file.hpp"

namespace sluice::queue::sqlite {

/// Group commit: what several threads want written at one time goes into one transaction, with one flush to disk.
///
/// There is no thread of its own. The first caller to come leads: it takes the lock of the file, runs the work of all
/// who wait, commits, and hands over to the next. Thread-safe. When a group fails, each of its members gets a
/// transaction of its own, so that one message too many for the disk fails no settlement beside it.
class CommitQueue {
 public:
  /// Work inside a transaction, on whichever caller's thread leads. It may run twice, the first time rolled back, so it
  /// sets its results anew each time. It never throws.
  using Work = std::function<void()>;

  struct Hooks {
    std::function<void()> begin;   ///< before the first work of a transaction
    std::function<void()> finish;  ///< after the last, before the commit
  };

  CommitQueue(const Clock& clock, StoreFile& file, Connection& connection, bool durable, Hooks hooks);

  /// Returns when `work` is committed (and, when `flush` is set, on the disk), or with the reason why nothing of it is.
  Result<void> run(Work work, bool flush, Deadline deadline);

 private:
  struct Request {
    Work work;
    bool flush = false;
    Deadline deadline = Deadline::never();
    bool taken = false;  ///< by a leader; its own thread only waits from here on
    bool done = false;
    std::optional<Error> error;
    Condition changed;
  };

  SteadyTime machine_limit(Deadline deadline) const;
  void lead(Request& own) noexcept;
  std::vector<Request*> take_group(Request& own, bool flush);
  void commit_group(const std::vector<Request*>& group);
  void commit_alone(Request& request);
  std::optional<Error> begin(SteadyTime limit, bool flush);
  std::optional<Error> commit();
  void roll_back();
  void answer(const std::vector<Request*>& group);
  void checkpoint();

  // Fixed after construction.
  const Clock& clock_;
  StoreFile& file_;
  const bool durable_;
  const Hooks hooks_;

  // Touched only by the leader.
  Connection& connection_;
  std::unique_ptr<Statement> begin_;
  std::unique_ptr<Statement> commit_;
  bool flushing_;

  Mutex mutex_;
  // Guarded by mutex_.
  std::deque<Request*> waiting_ SLUICE_GUARDED_BY(mutex_);
  bool led_ SLUICE_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::queue::sqlite
