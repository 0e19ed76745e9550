#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/deadline.hpp"
#include "host/queue/doorbell.hpp"
#include "host/stores/sqlite/changes.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/effect_writer.hpp"
#include "host/stores/sqlite/record_reader.hpp"
#include "host/stores/sqlite/records.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/stores/sqlite/store_file.hpp"
#include "host/stores/sqlite/store_lock_file.hpp"
#include "host/stores/sqlite/unconfirmed.hpp"

namespace sluice::queue::sqlite {

/// What is done to messages goes through this one connection. Used only inside a transaction of it.
struct Writer {
  Writer(std::unique_ptr<Connection> opened, std::size_t most_bytes)
      : connection(std::move(opened)),
        records(*connection),
        reader(*connection),
        changes(records),
        effects(*connection, records, most_bytes) {}

  std::unique_ptr<Connection> connection;
  Records records;
  RecordReader reader;
  Changes changes;
  EffectWriter effects;
};

/// What one caller wants written, as CommitQueue::Task has it. It owns what it touches: its caller may have left.
struct Write {
  std::function<void(Writer&)> work;
  bool flush = true;
  std::function<void()> committed = {};
  std::function<void()> unconfirmed = {};
  std::function<void(Writer&)> undo = {};
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

  /// Returns when `write` is done, or with the reason why it is not.
  Result<void> write(Write write, Deadline deadline);
  Result<void> read(std::function<void(RecordReader&)> work, Deadline deadline);

  /// Why a queue cannot have this name.
  static std::optional<Error> refused_name(const std::string& queue);
  /// Why a message cannot be kept. `bytes` counts body, content type, group, attributes and what else is kept with it.
  static std::optional<Error> refused(const std::string& id, std::size_t bytes, std::size_t most_bytes);
  std::optional<Error> refused(const std::string& id, std::size_t bytes) const {
    return refused(id, bytes, most_bytes());
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

  // Fixed after construction.
  const SqliteOptions options_;
  const Clock& clock_;
  // Synchronise themselves.
  Random& random_;
  std::unique_ptr<Core> core_;
};

}  // namespace sluice::queue::sqlite
