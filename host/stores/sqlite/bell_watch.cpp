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
      lane_.emplace([this](const std::stop_token& stop) { listen(stop); });
    } catch (const std::system_error&) {
      // Without another thread the job finds by polling what comes from elsewhere.
    }
  }
}

BellWatch::~BellWatch() {
  if (lane_) {
    lane_->request_stop();
    // Whoever else waits at this bell looks up once for nothing.
    door_->ring(bell_);
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
  changed_.notify_one();
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

void BellWatch::listen(const std::stop_token& stop) {
  while (true) {
    std::uint64_t heard = 0;
    {
      const MutexLock lock(mutex_);
      if (!changed_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return armed_; })) {
        return;
      }
      heard = heard_;
    }
    if (stop.stop_requested()) {
      return;
    }
    door_->wait(bell_, static_cast<std::uint32_t>(heard));
    if (door_->rings(bell_) != heard && !stop.stop_requested()) {
      ring();
    }
  }
}

}  // namespace sluice::queue::sqlite
