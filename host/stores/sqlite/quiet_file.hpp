#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/store_file.hpp"

namespace sluice::queue::sqlite {

/// Remembers a claim that found nothing, so that the next one need not look as long as nobody has written to the file:
/// a job that is idle then asks the system about three files, instead of taking the lock of the file and waking two
/// threads. Thread-safe.
///
/// What another process writes is noticed by the times of the files, which have to be older than any that a write at
/// that moment could have been given; all the same it is believed for a while only. `StoreFile` sees to the times, this
/// class to what else a claim depends on.
class QuietFile {
 public:
  /// What a claim depends on beside the file.
  struct Moment {
    std::uint64_t heard = 0;              ///< of the bell
    std::optional<StoreFile::Mark> mark;  ///< nothing: the file is not known to be at rest
    WallTime wall{};
    SteadyTime steady{};
  };

  /// The answer, where it has to be the last one's: nothing, and when the next message is due.
  std::optional<Claimed> same_again(const ClaimRequest& request, const Moment& now);
  /// A claim that began at `begun` gave this.
  void looked(const ClaimRequest& request, const Moment& begun, const Claimed& claimed);
  void forget();

 private:
  struct Look {
    Moment moment;
    bool suspects;
    bool counts;
    ClaimRules rules;
    std::optional<WallTime> due;
  };

  Mutex mutex_;
  std::optional<Look> last_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::sqlite
