#include "host/work/account.hpp"

#include <bit>

#include "base/text/decimal.hpp"
#include "base/text/utf8.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::work {

void LedgerSnapshot::end(Ending ending) { ++(this->*kEndingCounts[static_cast<std::size_t>(ending)].count); }

LedgerSnapshot& LedgerSnapshot::operator+=(const LedgerSnapshot& other) {
  claimed += other.claimed;
  stranded += other.stranded;
  for (const EndingCount& ending : kEndingCounts) {
    this->*ending.count += other.*ending.count;
  }
  return *this;
}

void HandlerTimes::add(Duration each, std::uint64_t count) {
  const auto micros = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(each).count()));
  buckets_[std::min<std::size_t>(std::bit_width(micros), kBuckets - 1)] += count;
  count_ += count;
  total_ += each * static_cast<Duration::rep>(count);
  slowest_ = std::max(slowest_, each);
}

Duration HandlerTimes::quantile_since(const HandlerTimes& before, double share) const {
  const std::uint64_t count = count_ - before.count_;
  if (count == 0) {
    return Duration::zero();
  }
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < kBuckets; ++bucket) {
    seen += buckets_[bucket] - before.buckets_[bucket];
    if (static_cast<double>(seen) >= share * static_cast<double>(count)) {
      break;
    }
  }
  return std::chrono::microseconds(std::int64_t{1} << bucket);
}

std::vector<std::string> left_behind(const JobActivity& activity, SteadyTime now) {
  constexpr std::size_t kMostTold = 10;
  const auto same = [](const RunningHandler& one) {
    return [&one](const RunningHandler& other) {
      return other.message_id == one.message_id && other.worker == one.worker && other.started_at == one.started_at;
    };
  };
  const auto after = [now](const RunningHandler& handler) {
    return " after " + fixed_decimal(std::chrono::duration<double>(now - handler.started_at).count(), 1) + " s";
  };
  const std::vector<RunningHandler>& running = activity.running;
  const std::vector<RunningHandler>& abandoned = activity.abandoned;
  std::vector<std::string> handlers;
  handlers.reserve(running.size() + abandoned.size());
  for (const RunningHandler& handler : abandoned) {
    const bool runs = std::any_of(running.begin(), running.end(), same(handler));
    handlers.push_back("message " + handler.message_id + " was taken from its handler, which had " +
                       (runs ? "still not returned" + after(handler) : "not returned in time"));
  }
  for (const RunningHandler& handler : running) {
    if (std::none_of(abandoned.begin(), abandoned.end(), same(handler))) {
      handlers.push_back("the handler of message " + handler.message_id + " had not returned" + after(handler) +
                         (handler.stuck ? ", long beyond its time-out" : ""));
    }
  }
  std::vector<std::string> lines(handlers.begin(),
                                 handlers.begin() + static_cast<std::ptrdiff_t>(std::min(handlers.size(), kMostTold)));
  if (handlers.size() > kMostTold) {
    lines.push_back("and so for " + std::to_string(handlers.size() - kMostTold) + " more");
  }
  if (const std::uint32_t count = activity.lingering; count > 0) {
    lines.push_back(std::to_string(count) + (count == 1 ? " handler" : " handlers") +
                    " had not returned although the message was completed");
  }
  if (const std::uint64_t left = activity.ledger.stranded + activity.ledger.in_flight(); left > 0) {
    lines.push_back(std::to_string(left) + (left == 1 ? " message stays" : " messages stay") +
                    " claimed until the lease runs out, as the store was not told in time");
  }
  if (activity.claiming) {
    lines.emplace_back("the store had not answered a claim: what it grants is due again when the lease runs out");
  }
  if (activity.denial) {
    lines.push_back("the store refuses the job its work: " + activity.denial->message());
  }
  return lines;
}

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
  std::vector<observe::LogField> fields{{"job", job}};
  if (!line.message_id.empty()) {
    fields.emplace_back("id", line.message_id);
  }
  if (line.attempt > 0) {
    fields.emplace_back("attempt", line.attempt);
    fields.emplace_back("took_ms", milliseconds(line.took));
  }
  if (line.wait) {
    fields.emplace_back("wait_ms", milliseconds(*line.wait));
  }
  fields.emplace_back("reason", reason);
  log.write(line.level, line.text, fields);
}

}  // namespace

void StepEffects::lose(const queue::Message& message) {
  if (++counts.lost <= kLostLines) {
    about(observe::LogLevel::warn,
          "the message is no longer ours: its lease or the host's has ended, or somebody has changed or removed it",
          message);
    return;
  }
  if (!more_lost) {
    more_lost = lines.size();
    line(observe::LogLevel::warn, "more messages are no longer ours");
  }
  lines[*more_lost].detail = std::to_string(counts.lost - kLostLines) + " messages";
}

void publish(const StepEffects& effects, const std::string& job, bool traced, observe::Log& log,
             observe::JobMetrics& metrics) {
  metrics.add(effects.counts);
  for (const StepEffects::Line& line : effects.lines) {
    std::optional<observe::TraceScope> scope;
    if (const auto context = traced ? observe::parse_traceparent(line.trace) : std::nullopt) {
      scope.emplace(*context);
    }
    write(line, job, log);
  }
}

void StepEffects::about(observe::LogLevel level, std::string_view text, const queue::Message& message,
                        std::string detail) {
  line(level, text, message.id, std::move(detail));
  if (const auto found = message.attributes.find(observe::kTraceParent); found != message.attributes.end()) {
    lines.back().trace = found->second;
  }
}

}  // namespace sluice::work
