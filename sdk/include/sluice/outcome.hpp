#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "sluice/abi.h"

namespace sluice {

/// What a handler made of a message. A value; made by the functions below, read by tests.
class [[nodiscard]] Outcome {
 public:
  static constexpr std::chrono::nanoseconds kByPolicy{-1};

  /// For the layer itself.
  explicit Outcome(sluice_status status, std::string reason = {}, std::chrono::nanoseconds delay = kByPolicy)
      : status_(status), delay_(delay), reason_(std::move(reason)) {}

  sluice_status status() const { return status_; }
  /// For a snooze, and for a retry that names its delay; negative: by the job's retry policy.
  std::chrono::nanoseconds delay() const { return delay_; }
  const std::string& reason() const { return reason_; }

  /// With `done()`, where the job keeps idempotency keys: what duplicates of the message see as `first_result`. At most
  /// 32 KiB.
  Outcome result(std::string bytes) && {
    result_ = std::move(bytes);
    return std::move(*this);
  }
  const std::string& result() const& { return result_; }

 private:
  sluice_status status_;
  std::chrono::nanoseconds delay_;
  std::string reason_;
  std::string result_;
};

/// Worked: the message is deleted.
inline Outcome done() { return Outcome(SLUICE_DONE); }

/// Failed, to be tried again when the job's retry policy says. Counts as an attempt; when the attempts are used up the
/// message goes to the DLQ with the reason.
inline Outcome retry(std::string reason = {}) { return Outcome(SLUICE_RETRY, std::move(reason)); }

/// Failed, to be tried again after this long; a time that has passed means at once.
inline Outcome retry(std::chrono::nanoseconds after, std::string reason = {}) {
  return Outcome(SLUICE_RETRY, std::move(reason), std::max(after, std::chrono::nanoseconds::zero()));
}

/// Not yet: comes again after this long, and does not count as an attempt.
inline Outcome snooze(std::chrono::nanoseconds after) {
  return Outcome(SLUICE_SNOOZE, {}, std::max(after, std::chrono::nanoseconds::zero()));
}

/// Will never work: to the DLQ at once, with the reason.
inline Outcome reject(std::string reason) { return Outcome(SLUICE_REJECT, std::move(reason)); }

/// Not wanted: deleted; the reason is logged.
inline Outcome discard(std::string reason) { return Outcome(SLUICE_DISCARD, std::move(reason)); }

/// Put back at once for anybody, and does not count as an attempt: what a handler does that is asked to stop.
inline Outcome release() { return Outcome(SLUICE_RELEASE); }

}  // namespace sluice
