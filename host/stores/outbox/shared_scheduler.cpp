#include "host/stores/outbox/shared_scheduler.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/assert.hpp"

namespace sluice::queue::outbox {

SharedScheduler::SharedScheduler(RowScheduler::Settings settings)
    : wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), scheduler_(std::move(settings)) {
  SLUICE_ASSERT(wake_.open());
}

void SharedScheduler::on_ready(std::function<void()> told) {
  const MutexLock lock(mutex_);
  told_ = std::move(told);
}

void SharedScheduler::finish(MutexLock& lock) {
  if (reader_waits_) {
    reader_waits_ = false;
    wake_reader();
  }
  changed_.notify_all();
  if (!scheduler_.ready() || !claimer_waits_ || !told_) {
    return;
  }
  claimer_waits_ = false;
  ++telling_;
  const auto told = told_;
  lock.unlock();
  told();
  lock.lock();
  --telling_;
  changed_.notify_all();
}

ReadOrder SharedScheduler::next_read(SteadyTime now) {
  const MutexLock lock(mutex_);
  ReadOrder order = scheduler_.next_read(now);
  reader_waits_ = order.kind == ReadOrder::Kind::none;
  return order;
}

std::vector<Row> SharedScheduler::take(std::size_t max, std::size_t bytes) {
  const MutexLock lock(mutex_);
  auto rows = scheduler_.take(max, bytes);
  claimer_waits_ = !scheduler_.ready();
  if (reader_waits_ && !rows.empty()) {
    reader_waits_ = false;
    wake_reader();
  }
  return rows;
}

void SharedScheduler::wait_for_first(SteadyTime until) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, until, [this]() SLUICE_REQUIRES(mutex_) {
    return scheduler_.ready() || scheduler_.read_once() || locks_trouble_ || reader_trouble_;
  });
}

void SharedScheduler::wake_reader() {
  const std::uint64_t one = 1;
  // It fails only where the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void SharedScheduler::clear_wake() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wake_.get(), &count, sizeof count);
}

void SharedScheduler::trouble(Part part, std::optional<Error> error) {
  const MutexLock lock(mutex_);
  (part == Part::locks ? locks_trouble_ : reader_trouble_) = std::move(error);
  changed_.notify_all();
}

std::optional<Error> SharedScheduler::trouble() const {
  const MutexLock lock(mutex_);
  return locks_trouble_ ? locks_trouble_ : reader_trouble_;
}

void SharedScheduler::stop_telling() {
  const MutexLock lock(mutex_);
  told_ = nullptr;
  changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return telling_ == 0; });
}

}  // namespace sluice::queue::outbox
