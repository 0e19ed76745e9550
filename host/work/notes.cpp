#include "host/work/notes.hpp"

#include "host/work/disposition.hpp"

namespace sluice::work {

void publish(const Notes& notes, const std::string& job, observe::Log& log, observe::JobMetrics& metrics) {
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
  for (const auto& [mean, count] : notes.handler_times) {
    metrics.handler_time(mean, count);
  }
  if (notes.settle_failed > 0) {
    metrics.settle_failed(notes.settle_failed);
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
  for (const Notes::Line& line : notes.lines) {
    if (line.message_id.empty()) {
      log.write(line.level, line.text, {{"job", job}, {"reason", line.detail}});
    } else {
      log.write(line.level, line.text, {{"job", job}, {"id", line.message_id}, {"reason", line.detail}});
    }
  }
}

}  // namespace sluice::work
