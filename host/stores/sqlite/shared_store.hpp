#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/deadline.hpp"
#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/claimer.hpp"
#include "host/stores/sqlite/commit_queue.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/effect_writer.hpp"
#include "host/stores/sqlite/keys.hpp"
#include "host/stores/sqlite/new_messages.hpp"
#include "host/stores/sqlite/record_reader.hpp"
#include "host/stores/sqlite/records.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/stores/sqlite/store_file.hpp"
#include "host/stores/sqlite/store_lock_file.hpp"

namespace sluice::queue::sqlite {

/// What took effect although its caller was told that the outcome is unknown, because the disk did not answer: he will
/// repeat it, or go on with the receipt that he had before. Thread-safe.
class Unconfirmed {
 public:
  void add_settled(std::span<const Completion> completions, std::span<const SettleResult> results);
  void add_extended(std::span<const Receipt> receipts, std::span<const ExtendResult> results);

  /// Whether what is lost was settled by ourselves.
  bool settled(const Receipt& receipt) const;
  /// The receipt as it is now, after extensions that its holder has not learnt of.
  Receipt current(Receipt receipt) const;

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  ///< locator, version
  /// The latest of them.
  struct Latest {
    void add(const Receipt& receipt);
    std::set<Key> set;
    std::deque<Key> order;
  };

  std::atomic<bool> any_{false};  ///< so that nobody pays for it while disks answer
  mutable Mutex mutex_;
  Latest settled_ SLUICE_GUARDED_BY(mutex_);
  Latest extended_ SLUICE_GUARDED_BY(mutex_);
};

/// What is done to messages goes through this one connection. Used only inside a transaction of it.
struct Writer {
  Writer(std::unique_ptr<Connection> opened, std::size_t most_bytes)
      : connection(std::move(opened)),
        records(*connection),
        claimer(*connection, records),
        sending(*connection, records),
        keys(*connection),
        reader(*connection),
        effects(*connection, {records, sending, keys}, most_bytes) {}

  /// At the start of each transaction, and before its commit.
  void begin();
  void finish();

  std::unique_ptr<Connection> connection;
  Records records;
  Claimer claimer;
  NewMessages sending;
  Keys keys;
  RecordReader reader;
  EffectWriter effects;
};

/// What one caller wants written, as CommitQueue::Task has it, and what that makes. It owns what it touches: its caller
/// may have left.
template <typename Made>
struct Write {
  std::function<Made(Writer&)> work;
  bool flush = true;
  std::function<void(const Made&)> committed = {};
  std::function<void(const Made&)> unconfirmed = {};
  std::function<void(Writer&, const Made&)> undo = {};
};

/// What the sides of all queues of one file share: its connections and their threads, and the doorbell, in this process
/// and beyond it. Thread-safe. A resource.
class SharedStore {
 public:
  SharedStore(SqliteOptions options, const Clock& clock, Random& random);
  /// Waits a second for a disk that hangs, and then leaves to the system what is under way.
  ~SharedStore();

  /// Once, before anything else. A file that this user can only read is opened for reading.
  Result<void> open();
  /// Why nothing can be written, where the file is opened for reading.
  const std::optional<Error>& read_only() const;

  /// Returns what `write` has made when it is done, or the reason why it is not.
  template <typename Made>
  Result<Made> write(Write<Made> write, Deadline deadline) {
    const auto made = std::make_shared<Made>();
    CommitQueue::Task task{.work = [made, to = writer(), work = std::move(write.work)] { *made = work(*to); },
                           .flush = write.flush};
    if (write.committed) {
      task.committed = [made, committed = std::move(write.committed)] { committed(*made); };
    }
    if (write.unconfirmed) {
      task.unconfirmed = [made, unconfirmed = std::move(write.unconfirmed)] { unconfirmed(*made); };
    }
    if (write.undo) {
      task.undo = [made, to = writer(), undo = std::move(write.undo)] { undo(*to, *made); };
    }
    SLUICE_PASS_ON(commit(std::move(task), deadline));
    return std::move(*made);
  }
  /// Returns what `work` has seen on one state of the file. It owns what it touches, too.
  template <typename Seen>
  Result<Seen> read(std::function<Seen(RecordReader&)> work, Deadline deadline) {
    const auto seen = std::make_shared<Seen>();
    SLUICE_PASS_ON(look([seen, work = std::move(work)](RecordReader& reader) { *seen = work(reader); }, deadline));
    return std::move(*seen);
  }

  const std::string& path() const { return options_.path; }
  void report(const std::string& warning) const {
    if (options_.report) {
      options_.report(warning);
    }
  }
  std::size_t most_bytes() const { return options_.max_body_bytes; }

  const Clock& clock() const { return clock_; }
  Random& random() { return random_; }
  /// Rings in this process and, through the door, in others.
  Doorbell& doorbell();
  /// Null where there is none.
  StoreLockFile* lock_file();
  Unconfirmed& unconfirmed();

 private:
  struct Core;
  Writer* writer() const;
  Result<void> commit(CommitQueue::Task task, Deadline deadline);
  Result<void> look(std::function<void(RecordReader&)> work, Deadline deadline);

  // Fixed after construction.
  const SqliteOptions options_;
  const Clock& clock_;
  // Synchronise themselves.
  Random& random_;
  std::unique_ptr<Core> core_;
};

}  // namespace sluice::queue::sqlite
