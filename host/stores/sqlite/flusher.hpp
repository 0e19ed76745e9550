#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/stores/sqlite/checkpointer.hpp"
#include "host/stores/sqlite/store_file.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

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
  void request_stop();
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

}  // namespace sluice::queue::sqlite
