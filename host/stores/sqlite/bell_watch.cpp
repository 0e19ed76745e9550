#include "host/stores/sqlite/bell_watch.hpp"

#include <system_error>
#include <utility>

namespace sluice::queue::sqlite {

BellWatch::BellWatch(Door* door, const QueueAddress& address, std::function<void()> on_ready)
    : door_(door), bell_(door == nullptr ? 0 : door->bell_of(address)), on_ready_(std::move(on_ready)) {
  {
    const MutexLock lock(mutex_);
    heard_ = door_ == nullptr ? 0 : door_->rings(bell_);
  }
  if (door_ != nullptr) {
    try {
      looker_ = door_->listen([this] { look(); });
    } catch (const std::system_error&) {
      // Without another thread the job finds by polling what comes from elsewhere.
    }
  }
}

BellWatch::~BellWatch() {
  if (looker_) {
    door_->stop_listening(looker_);
  }
}

std::uint64_t BellWatch::heard() const {
  if (door_ != nullptr) {
    return door_->rings(bell_);
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
    if (!armed_ || door_->rings(bell_) == heard_) {
      return;
    }
  }
  ring();
}

}  // namespace sluice::queue::sqlite
