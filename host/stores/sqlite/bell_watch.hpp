#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/mutex.hpp"
#include "host/stores/sqlite/store_lock_file.hpp"

namespace sluice::queue::sqlite {

/// Wakes a job when its half has been rung for: at most once between two claims, and not at all while it claims anyway.
///
/// A claim that found less than it asked for arms the watch. Rings of other processes are waited for by a thread of the
/// door's; where that cannot be made, only those of this process are heard.
class BellWatch {
 public:
  /// `door` may be null. `on_ready` is called from any thread, with no lock held.
  BellWatch(StoreLockFile* lock_file, const QueueAddress& address, std::function<void()> on_ready);
  /// Waits for a call under way. Nothing is called afterwards.
  ~BellWatch();
  BellWatch(const BellWatch&) = delete;
  BellWatch& operator=(const BellWatch&) = delete;

  /// How often it has rung; before a claim.
  std::uint64_t heard() const;
  /// After a claim that left nothing. Calls `on_ready` at once if it has rung since `heard`.
  void arm(std::uint64_t heard);
  /// It has rung in this process.
  void ring();

 private:
  void look();
  bool disarm();

  // Fixed after construction.
  StoreLockFile* const lock_file_;
  const std::size_t bell_;
  const std::function<void()> on_ready_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  bool armed_ SLUICE_GUARDED_BY(mutex_) = true;
  std::uint64_t heard_ SLUICE_GUARDED_BY(mutex_) = 0;      ///< before the claim that armed it
  std::uint64_t rung_here_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< counted where there is no door

  std::shared_ptr<StoreLockFile::Looker> looker_;
};

}  // namespace sluice::queue::sqlite
