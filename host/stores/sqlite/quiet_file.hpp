#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/record_reader.hpp"

namespace sluice::queue::sqlite {

/// Remembers a claim that found nothing, so that the next one need not look as long as nobody has written to the file:
/// a job that is idle then reads a number, instead of taking the lock of the file. Thread-safe.
class QuietFile {
 public:
  /// What a claim depends on beside the file.
  struct Moment {
    std::uint64_t heard = 0;                       ///< of the bell
    std::optional<RecordReader::Version> version;  ///< of the file; nothing: it is not known
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
