#include "host/runtime/errand.hpp"

#include <system_error>
#include <utility>

#include "base/assert.hpp"

namespace sluice::runtime {

Errand::~Errand() { stop(); }

Result<void> Errand::start() {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unavailable, "cannot make a thread: " + error.code().message());
  }
  return {};
}

void Errand::stop() {
  const MutexLock lock(stopping_);
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Errand::send(Work work) {
  {
    const MutexLock lock(mutex_);
    SLUICE_ASSERT(!under_way_);
    under_way_ = true;
    work_ = std::move(work);
  }
  changed_.notify_all();
}

bool Errand::wait_for(Duration span) {
  const std::stop_token stop = thread_.get_stop_token();
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, stop, std::chrono::steady_clock::now() + span, [] { return false; });
  return !stop.stop_requested();
}

bool Errand::under_way() const {
  const MutexLock lock(mutex_);
  return under_way_;
}

std::optional<Errand::Rest> Errand::take() {
  const MutexLock lock(mutex_);
  if (!rest_) {
    return std::nullopt;
  }
  under_way_ = false;
  return std::exchange(rest_, std::nullopt);
}

void Errand::run(const std::stop_token& stop) {
  while (true) {
    Work work;
    {
      const MutexLock lock(mutex_);
      if (!changed_.wait(mutex_, stop, [this]() SLUICE_NO_TSA { return work_.has_value(); })) {
        return;
      }
      work = std::move(*work_);
      work_.reset();
    }
    Rest rest = work();
    {
      const MutexLock lock(mutex_);
      rest_ = std::move(rest);
    }
    done_();
  }
}

}  // namespace sluice::runtime
