#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/mutex.hpp"
#include "host/isolation/event_ring.hpp"
#include "host/plugin/attempt.hpp"
#include "host/plugin/outcome.hpp"

namespace sluice::isolation {

/// What a Runner tells its host. Thread-safe: a plugin's own threads may log at any time. The host listens while a
/// message is at work, and a full ring is waited for then; between messages what does not fit is lost, and counted.
class RunnerVoice final : public plugin::AttemptWatcher {
 public:
  explicit RunnerVoice(RunnerControl& control) : writer_(control) {}

  /// Whether the host listens.
  void heard(bool listens) { heard_.store(listens); }

  void ready();
  void refused(std::string_view why);
  void log(bool of_attempt, std::int32_t level, std::string_view text);
  void outcome(const plugin::Outcome& outcome);
  void health(std::string_view part, bool works, std::string_view text);

  void stop_requested(SteadyTime, bool) noexcept override {}  // The host knows: it has asked for it.
  void extended(Duration duration) noexcept override;

 private:
  void say(RunnerEvent kind, std::int32_t level, std::int64_t number, std::string_view text) noexcept;

  // Synchronise themselves.
  std::atomic<bool> heard_{true};
  // Guarded by mutex_.
  Mutex mutex_;
  EventWriter writer_ SLUICE_GUARDED_BY(mutex_);
  std::uint64_t lost_ SLUICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::isolation
