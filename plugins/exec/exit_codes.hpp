#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <sluice/handler.hpp>
#include <string>

/// What an exit code means for the message.
struct Verdict {
  sluice_status status = SLUICE_RETRY;
  std::optional<std::chrono::nanoseconds> delay;  ///< of a retry or a snooze

  sluice::Outcome outcome(std::string reason) const;
};

/// From exit codes to verdicts: 0 done, 65 reject, 75 retry, everything else and death by a signal retry, unless
/// changed.
class ExitCodes {
 public:
  /// `changes` as the option "exit_codes" has them: "3", "default" or "signal" to "done", "retry", "retry 30s",
  /// "snooze 5m", "reject", "discard" or "release". Throws std::invalid_argument for anything else.
  explicit ExitCodes(const std::map<std::string, std::string>& changes);

  const Verdict& of_exit(int code) const;
  const Verdict& of_signal() const { return signal_; }

 private:
  std::map<int, Verdict> verdicts_;
  Verdict default_;
  Verdict signal_;
};
