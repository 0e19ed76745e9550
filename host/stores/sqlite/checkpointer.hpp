#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/stores/sqlite/connection.hpp"
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

}  // namespace sluice::queue::sqlite
