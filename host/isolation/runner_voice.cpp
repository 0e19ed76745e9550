#include "host/isolation/runner_voice.hpp"

#include <string>

#include "host/isolation/effect_parcel.hpp"
#include "sluice/abi.h"

namespace sluice::isolation {

void RunnerVoice::ready() { say(RunnerEvent::ready, 0, 0, {}); }
void RunnerVoice::refused(std::string_view why) { say(RunnerEvent::refused, 0, 0, why); }

void RunnerVoice::log(bool of_attempt, std::int32_t level, std::string_view text) {
  say(of_attempt ? RunnerEvent::attempt_log : RunnerEvent::host_log, level, 0, text);
}

void RunnerVoice::outcome(const plugin::Outcome& outcome) {
  if (outcome.effects) {
    const std::string bytes = pack_effects(*outcome.effects);
    for (std::size_t at = 0; at < bytes.size(); at += kEventTextLimit) {
      say(RunnerEvent::effects, 0, static_cast<std::int64_t>(bytes.size()),
          std::string_view(bytes).substr(at, kEventTextLimit));
    }
  }
  say(RunnerEvent::outcome, static_cast<std::int32_t>(outcome.status), outcome.delay ? outcome.delay->count() : -1,
      outcome.reason);
}

void RunnerVoice::health(std::string_view part, bool works, std::string_view text) {
  say(RunnerEvent::health, works ? 1 : 0, static_cast<std::int64_t>(part.size()),
      std::string(part) + std::string(text));
}

void RunnerVoice::extended(Duration duration) noexcept { say(RunnerEvent::extended, 0, duration.count(), {}); }

void RunnerVoice::say(RunnerEvent kind, std::int32_t level, std::int64_t number, std::string_view text) noexcept {
  const MutexLock lock(mutex_);
  if (lost_ > 0) {
    const std::string note = std::to_string(lost_) + " log lines between two messages were lost: too many at once";
    if (writer_.write(RunnerEvent::host_log, SLUICE_LOG_WARN, 0, note)) {
      lost_ = 0;
    }
  }
  while (!writer_.write(kind, static_cast<std::int16_t>(level), number, text)) {
    if (!heard_.load()) {
      ++lost_;
      return;
    }
    writer_.wait_for_room();
  }
}

}  // namespace sluice::isolation
