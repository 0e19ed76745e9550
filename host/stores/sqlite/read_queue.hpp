#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/lane.hpp"
#include "host/stores/sqlite/record_reader.hpp"
#include "host/stores/sqlite/store_file.hpp"

namespace sluice::queue::sqlite {

/// Operators' reads, one after the other on a thread and a connection of their own: so that no caller waits beyond its
/// deadline, and no writer for a read. Thread-safe.
class ReadQueue {
 public:
  /// On the queue's thread, on one state of the file. It owns what it touches, for its caller may have left.
  using Work = std::function<void(RecordReader&)>;

  ReadQueue(const Clock& clock, const StoreFile& file, std::unique_ptr<Connection> connection);

  Result<void> run(Work work, Deadline deadline);

  void request_stop() { lane_.request_stop(); }
  bool ended_by(SteadyTime limit) { return lane_.ended_by(limit); }

 private:
  struct Request {
    Work work;
    Deadline deadline = Deadline::never();
    // Guarded by mutex_ of the queue.
    bool done = false;
    std::optional<Error> error;
    Condition changed;
  };

  void serve(const std::stop_token& stop);
  std::optional<Error> read(const Request& request);

  // Fixed after construction.
  const Clock& clock_;
  const StoreFile& file_;

  // Touched only by the lane.
  const std::unique_ptr<Connection> connection_;
  RecordReader reader_;

  Mutex mutex_;
  Condition work_there_;
  std::deque<std::shared_ptr<Request>> waiting_ SLUICE_GUARDED_BY(mutex_);

  Lane lane_;
};

}  // namespace sluice::queue::sqlite
