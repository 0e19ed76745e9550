#include "host/stores/sqlite/bell_watch.hpp"

#include <system_error>
#include <utility>

namespace sluice::queue::sqlite {

BellWatch::BellWatch(StoreLockFile* lock_file, const QueueAddress& address, std::function<void()> on_ready)
    : lock_file_(lock_file),
      bell_(lock_file == nullptr ? 0 : lock_file->bell_of(address)),
      on_ready_(std::move(on_ready)) {
  {
    const MutexLock lock(mutex_);
    heard_ = lock_file_ == nullptr ? 0 : lock_file_->rings(bell_);
  }
  if (lock_file_ != nullptr) {
    try {
      looker_ = lock_file_->listen([this] { look(); });
    } catch (const std::system_error&) {
      // Without another thread the job finds by polling what comes from elsewhere.
    }
  }
}

BellWatch::~BellWatch() {
  if (looker_) {
    lock_file_->stop_listening(looker_);
  }
}

std::uint64_t BellWatch::heard() const {
  if (lock_file_ != nullptr) {
    return lock_file_->rings(bell_);
  }
  const MutexLock lock(mutex_);
  return rung_here_;
}

void BellWatch::arm(std::uint64_t heard) {
  {
    const MutexLock lock(mutex_);
    armed_ = true;
    heard_ = heard;
  }
  if (this->heard() != heard) {
    ring();
  }
}

void BellWatch::ring() {
  if (disarm()) {
    on_ready_();
  }
}

bool BellWatch::disarm() {
  const MutexLock lock(mutex_);
  ++rung_here_;
  return std::exchange(armed_, false);
}

void BellWatch::look() {
  {
    const MutexLock lock(mutex_);
    if (!armed_ || lock_file_->rings(bell_) == heard_) {
      return;
    }
  }
  ring();
}

}  // namespace sluice::queue::sqlite
