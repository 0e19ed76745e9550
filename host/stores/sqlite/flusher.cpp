#include "host/stores/sqlite/flusher.hpp"

#include <utility>

#include "base/guard.hpp"

namespace sluice::queue::sqlite {

Flusher::Flusher(StoreFile& file, Checkpointer& checkpointer)
    : file_(file), checkpointer_(checkpointer), thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void Flusher::flush(Done done) {
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(done));
  }
  changed_.notify_one();
}

void Flusher::request_stop() { thread_.request_stop(); }

void Flusher::serve(const std::stop_token& stop) {
  while (true) {
    std::vector<Done> group;
    {
      const MutexLock lock(mutex_);
      changed_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return !waiting_.empty(); });
      if (waiting_.empty()) {
        return;
      }
      group.swap(waiting_);
    }
    const std::optional<Error> error = SLUICE_GUARD(sqlite_flush) ? flush_now() : std::nullopt;
    for (const Done& done : group) {
      done(error);
    }
  }
}

std::optional<Error> Flusher::flush_now() {
  if (auto there = file_.check(); !there) {
    return Error(ErrorCode::unknown_outcome, there.error().message());
  }
  const auto flushed =
      failed_before_ && SLUICE_GUARD(sqlite_failed_flush) ? checkpointer_.write_all() : file_.flush_log();
  failed_before_ = !flushed;
  if (!flushed) {
    return Error(ErrorCode::unknown_outcome, flushed.error().message());
  }
  return std::nullopt;
}

}  // namespace sluice::queue::sqlite
