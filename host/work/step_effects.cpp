#include "host/work/step_effects.hpp"

#include <array>
#include <chrono>

#include "base/text/utf8.hpp"
#include "host/observe/trace_context.hpp"
#include "host/work/disposition.hpp"

namespace sluice::work {

namespace {

// A reason may be 4 KB of somebody's exception: the first attempt logs it whole, and the record keeps it.
constexpr std::size_t kLongestRepeated = 200;
// So many messages that a step has lost have a line each.
constexpr std::uint64_t kLostLines = 10;

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

std::string reason_of(const StepEffects::Line& line) {
  if (line.attempt <= 1 || line.detail.size() <= kLongestRepeated) {
    return line.detail;
  }
  return std::string(cut_utf8(line.detail, kLongestRepeated)) + "... (" + std::to_string(line.detail.size()) +
         " bytes)";
}

void write(const StepEffects::Line& line, const std::string& job, observe::Log& log) {
  const std::string reason = reason_of(line);
  if (line.message_id.empty()) {
    log.write(line.level, line.text, {{"job", job}, {"reason", reason}});
  } else if (line.attempt == 0) {
    log.write(line.level, line.text, {{"job", job}, {"id", line.message_id}, {"reason", reason}});
  } else if (line.wait) {
    log.write(line.level, line.text,
              {{"job", job},
               {"id", line.message_id},
               {"attempt", line.attempt},
               {"took_ms", milliseconds(line.took)},
               {"wait_ms", milliseconds(*line.wait)},
               {"reason", reason}});
  } else {
    log.write(line.level, line.text,
              {{"job", job},
               {"id", line.message_id},
               {"attempt", line.attempt},
               {"took_ms", milliseconds(line.took)},
               {"reason", reason}});
  }
}

void count_endings(const StepEffects& notes, observe::JobMetrics& metrics) {
  for (std::size_t i = 0; i < kEndings; ++i) {
    if (notes.endings[i] > 0) {
      metrics.settled(kEndingCounts[i].name, notes.endings[i]);
    }
  }
}

}  // namespace

void StepEffects::about(observe::LogLevel level, std::string_view text, const queue::Message& message,
                        std::string detail) {
  line(level, text, message.id, std::move(detail));
  if (const auto found = message.attributes.find(observe::kTraceParent); found != message.attributes.end()) {
    lines.back().trace = found->second;
  }
}

void StepEffects::lose(const queue::Message& message) {
  if (++lost <= kLostLines) {
    about(observe::LogLevel::warn,
          "the message is no longer ours: its lease or the host's has ended, or somebody has changed or removed it",
          message);
    return;
  }
  if (!more_lost) {
    more_lost = lines.size();
    line(observe::LogLevel::warn, "more messages are no longer ours");
  }
  lines[*more_lost].detail = std::to_string(lost - kLostLines) + " messages";
}

void publish(const StepEffects& notes, const std::string& job, bool traced, observe::Log& log,
             observe::JobMetrics& metrics) {
  if (notes.claimed > 0) {
    metrics.claimed(notes.claimed);
  }
  for (std::size_t i = 0; i < notes.outcomes.size(); ++i) {
    if (notes.outcomes[i] > 0) {
      metrics.outcome(to_string(static_cast<plugin::OutcomeStatus>(i)), notes.outcomes[i]);
    }
  }
  if (notes.exhausted > 0) {
    metrics.outcome("exhausted", notes.exhausted);
  }
  if (notes.duplicates > 0) {
    metrics.outcome("duplicate", notes.duplicates);
  }
  for (const auto& [mean, count] : notes.handler_times) {
    metrics.handler_time(mean, count);
  }
  if (notes.settle_failed > 0) {
    metrics.settle_failed(notes.settle_failed);
  }
  if (notes.effects_refused > 0) {
    metrics.effects_refused(notes.effects_refused);
  }
  if (notes.lost > 0) {
    metrics.lost(notes.lost);
  }
  for (std::uint64_t i = 0; i < notes.claim_failed; ++i) {
    metrics.claim_failed();
  }
  if (notes.held_changed) {
    metrics.in_flight(notes.held);
  }
  if (notes.timed_out > 0) {
    metrics.timed_out(notes.timed_out);
  }
  count_endings(notes, metrics);
  for (const StepEffects::Line& line : notes.lines) {
    std::optional<observe::TraceScope> scope;
    if (const auto context = traced ? observe::parse_traceparent(line.trace) : std::nullopt) {
      scope.emplace(*context);
    }
    write(line, job, log);
  }
}

}  // namespace sluice::work
