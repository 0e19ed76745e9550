#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/plugin/outcome.hpp"
#include "host/queue/message.hpp"
#include "host/work/account.hpp"

namespace sluice::work {

/// What a step of the flow leaves to be done once its lock is free: threads to wake, counts and log lines to publish.
struct StepEffects {
  struct Line {
    observe::LogLevel level = observe::LogLevel::info;
    std::string_view text;  ///< a literal
    std::string message_id;
    std::string detail;
    std::string trace{};  ///< the message's `traceparent`, empty without one
    /// Of an attempt that has failed: its number, how long it took, and after which wait the next one may begin.
    std::uint32_t attempt = 0;
    Duration took{};
    std::optional<Duration> wait{};
  };

  // Whom to wake.
  std::size_t workers = 0;
  std::size_t lanes = 0;
  bool poller = false;
  bool settler = false;
  bool keeper = false;
  bool keys = false;
  bool drained = false;

  // Threads to make.
  std::size_t hire_workers = 0;
  std::size_t hire_lanes = 0;

  // What to count.
  std::uint64_t claimed = 0;
  std::array<std::uint64_t, plugin::kOutcomes> outcomes{};
  std::uint64_t exhausted = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t timed_out = 0;
  std::array<std::uint64_t, kEndings> endings{};
  std::uint64_t settle_failed = 0;
  std::uint64_t effects_refused = 0;
  std::uint64_t lost = 0;
  std::uint64_t claim_failed = 0;
  std::vector<std::pair<Duration, std::uint64_t>> handler_times;
  bool held_changed = false;
  std::int64_t held = 0;

  std::vector<Line> lines;
  std::optional<std::size_t> more_lost;  ///< the line that stands for many

  void outcome(plugin::OutcomeStatus status) { ++outcomes[static_cast<std::size_t>(status)]; }
  void line(observe::LogLevel level, std::string_view text, std::string message_id = {}, std::string detail = {}) {
    lines.push_back({level, text, std::move(message_id), std::move(detail)});
  }
  /// A line about one message.
  void about(observe::LogLevel level, std::string_view text, const queue::Message& message, std::string detail = {});
  /// A message is no longer ours. Where a step loses many, as it does when the host's own lease has ended, all but the
  /// first have a line together.
  void lose(const queue::Message& message);
};

/// Publishes the counts and lines; not the wakes. Where the job's messages are `traced`, a line about one of them says
/// where in its trace it belongs: what its handler's span is called there. Call without any lock.
void publish(const StepEffects& notes, const std::string& job, bool traced, observe::Log& log,
             observe::JobMetrics& metrics);

}  // namespace sluice::work
