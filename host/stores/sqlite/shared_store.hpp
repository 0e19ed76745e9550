#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/receipt_memory.hpp"
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
  void add_settled(const Receipt& receipt) { memory_.remember(receipt, Did::settle); }
  void add_extended(const Receipt& receipt) { memory_.remember(receipt, Did::extend); }

  /// Whether what is lost was settled by ourselves.
  bool settled(const Receipt& receipt) const { return did(receipt, Did::settle); }
  /// The receipt as it is now, after extensions that its holder has not learnt of.
  Receipt current(Receipt receipt) const {
    while (did(receipt, Did::extend)) {
      ++receipt.version;
    }
    return receipt;
  }

 private:
  enum class Did : std::uint8_t { settle, extend };
  bool did(const Receipt& receipt, Did what) const {
    const auto all = memory_.about(receipt);
    return std::find(all.begin(), all.end(), what) != all.end();
  }

  core::ReceiptMemory<Did, 100'000> memory_;  ///< more than a host has in hand at one time
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
  /// Waits a second for a disk that hangs, and then leaves to the system what is under way, with all that it is inside
  /// of.
  static void close(std::unique_ptr<SharedStore> store);

  /// Once, before anything else. A file that this user can only read is opened for reading.
  Result<void> open();
  /// Why nothing can be written, where the file is opened for reading.
  const std::optional<Error>& read_only() const { return read_only_; }

  /// Returns what `write` has made when it is done, or the reason why it is not.
  template <typename Made>
  Result<Made> write(Write<Made> write, Deadline deadline) {
    if (read_only_) {
      return *read_only_;
    }
    const auto made = std::make_shared<Made>();
    const auto told = [made](std::function<void(const Made&)> tell) {
      return tell ? [made, tell = std::move(tell)] { tell(*made); } : std::function<void()>();
    };
    CommitQueue::Task task{.work = [made, to = writer_.get(), work = std::move(write.work)] { *made = work(*to); },
                           .flush = write.flush,
                           .committed = told(std::move(write.committed)),
                           .unconfirmed = told(std::move(write.unconfirmed))};
    if (write.undo) {
      task.undo = [made, to = writer_.get(), undo = std::move(write.undo)] { undo(*to, *made); };
    }
    SLUICE_PASS_ON(commits_->run(std::move(task), deadline));
    return std::move(*made);
  }
  /// Returns what `work` has seen on one state of the file. It owns what it touches, too.
  template <typename Seen>
  Result<Seen> read(std::function<Seen(RecordReader&)> work, Deadline deadline) {
    const auto seen = std::make_shared<Seen>();
    SLUICE_PASS_ON(
        reads_->run([seen, work = std::move(work)](RecordReader& reader) { *seen = work(reader); }, deadline));
    return std::move(*seen);
  }

  /// What it has seen of one queue, by its number.
  template <typename Seen>
  Result<Seen> look(const std::string& queue, std::function<Seen(RecordReader&, std::int64_t)> work,
                    Deadline deadline) {
    return read<Seen>(
        [queue, work = std::move(work)](RecordReader& reader) { return work(reader, reader.queue(queue)); }, deadline);
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
  Doorbell& doorbell() { return doorbell_; }
  /// Null where there is none.
  StoreLockFile* lock_file() { return lock_file_.get(); }
  Unconfirmed& unconfirmed() { return unconfirmed_; }

 private:
  /// The path of the lock file.
  std::string door() const;
  Result<void> refuse_another_file() const;
  /// Waits until the log is there, or is the right one; an error after a while.
  Result<void> await_end_of(const std::function<bool()>& log_is_gone) const;
  Result<void> await_log() const;
  Result<void> await_one_log() const;
  Result<void> open_writer();
  Result<void> open_reader();

  // Fixed after construction.
  const SqliteOptions options_;
  const Clock& clock_;
  // Synchronise themselves.
  Random& random_;
  StoreFile file_;
  std::unique_ptr<StoreLockFile> lock_file_;
  Doorbell doorbell_;
  Unconfirmed unconfirmed_;
  std::optional<Error> read_only_;
  // In the order in which they use each other: the last one first to go.
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<Flusher> flusher_;
  std::unique_ptr<CommitQueue> commits_;
  std::unique_ptr<ReadThread> reads_;
};

/// How many of these go into the next transaction: large enough to share its flush, small enough that nobody waits long
/// for it.
template <typename Item, typename Bytes>
std::size_t batch_of(std::span<Item> items, std::size_t most, Bytes bytes_of) {
  constexpr std::size_t kBytes = std::size_t{8} * 1024 * 1024;
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (count < items.size() && count < most && (count == 0 || bytes < kBytes)) {
    bytes += bytes_of(items[count++]);
  }
  return count;
}

/// Of items that are small whatever they are.
inline constexpr auto kNoBytes = [](const auto&) { return std::size_t{0}; };
/// What `work` comes to for all of them, batch by batch.
template <typename Made, typename Item, typename Work, typename Bytes = decltype(kNoBytes)>
std::vector<Made> in_batches(std::span<Item> items, std::size_t most, Work work, Bytes bytes_of = kNoBytes) {
  std::vector<Made> all;
  while (!items.empty()) {
    const auto batch = items.first(batch_of(items, most, bytes_of));
    std::vector<Made> made = work(batch);
    std::move(made.begin(), made.end(), std::back_inserter(all));
    items = items.subspan(batch.size());
  }
  return all;
}

}  // namespace sluice::queue::sqlite
