#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/stores/sqlite/changes.hpp"
#include "host/stores/sqlite/commit_queue.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/record_reader.hpp"
#include "host/stores/sqlite/records.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/stores/sqlite/store_file.hpp"

namespace sluice::queue::sqlite {

/// What is done to messages goes through this one connection. Used only inside a transaction of it.
struct Writer {
  explicit Writer(std::unique_ptr<Connection> opened)
      : connection(std::move(opened)), records(*connection), reader(*connection), changes(records) {}

  std::unique_ptr<Connection> connection;
  Records records;
  RecordReader reader;
  Changes changes;
};

/// What the sides of all queues of one file share: its two connections, so that operators' reads and the writer do not
/// wait for each other, the group commit, and the doorbell. Thread-safe. A resource.
class SharedStore {
 public:
  using Write = std::function<void(Writer&)>;
  using Read = std::function<void(RecordReader&)>;

  SharedStore(SqliteOptions options, const Clock& clock, Random& random);

  /// Once, before anything else.
  Result<void> open();

  /// Returns when `work` is committed (and, when `flush` is set, on the disk), or with the reason why nothing of it is.
  /// The work may run twice, the first time rolled back, so it sets its results anew each time.
  Result<void> write(const Write& work, bool flush, Deadline deadline);
  /// Runs `work` on one state of the file.
  Result<void> read(const Read& work, Deadline deadline);

  /// Why a queue cannot have this name.
  static std::optional<Error> refused_name(const std::string& queue);
  /// Why a message cannot be kept. `bytes` counts body, content type, group, attributes and what else is kept with it.
  std::optional<Error> refused(const std::string& id, std::size_t bytes) const;

  const Clock& clock() const { return clock_; }
  Random& random() { return random_; }
  Doorbell& doorbell() { return doorbell_; }

 private:
  // Fixed after construction.
  const SqliteOptions options_;
  const Clock& clock_;
  // Synchronise themselves.
  Random& random_;
  StoreFile file_;
  Doorbell doorbell_;

  // Touched only by the leader of commits_.
  std::unique_ptr<Writer> writer_;

  Mutex reader_mutex_;
  // Guarded by reader_mutex_.
  std::unique_ptr<Connection> reader_ SLUICE_GUARDED_BY(reader_mutex_);
  std::unique_ptr<RecordReader> record_reader_ SLUICE_GUARDED_BY(reader_mutex_);

  // Synchronises itself.
  std::unique_ptr<CommitQueue> commits_;
};

}  // namespace sluice::queue::sqlite
