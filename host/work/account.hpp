#pragma once

#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/plugin/handler_instance.hpp"

namespace sluice::work {

using queue::core::Ending;
using queue::core::kEndingNames;
using queue::core::kEndings;

/// Where the messages of one job have gone: the counts behind the drain certificate. A value; counts of several jobs
/// add up.
struct LedgerSnapshot {
  std::uint64_t claimed = 0;
  std::uint64_t done = 0;
  std::uint64_t retried = 0;    ///< visible again later, the attempt counted; messages that a policy keeps too
  std::uint64_t snoozed = 0;    ///< visible again later, the attempt given back
  std::uint64_t rejected = 0;   ///< in the DLQ: rejected, attempts used up, or exhausted at claim time
  std::uint64_t discarded = 0;  ///< removed without having been done
  std::uint64_t released = 0;   ///< put back at once, the attempt given back
  std::uint64_t lost = 0;  ///< the receipt was no longer ours, or the lease ran out before the settlement was through
  std::uint64_t stranded = 0;  ///< left behind when the job ended: others get it when its lease runs out

  std::uint64_t ended() const { return done + retried + snoozed + rejected + discarded + released + lost; }
  /// What the job holds at this moment: waiting, running or being settled. Zero once the job has ended.
  std::uint64_t in_flight() const { return claimed - ended() - stranded; }

  void end(Ending ending);
  /// Ends the book: whatever has not ended by now is stranded.
  void close() { stranded += in_flight(); }

  LedgerSnapshot& operator+=(const LedgerSnapshot& other);
  friend bool operator==(const LedgerSnapshot&, const LedgerSnapshot&) = default;
};

/// An ending's name and its count.
struct EndingCount {
  std::string_view name;
  std::uint64_t LedgerSnapshot::*count;
};
/// In the order of Ending.
inline constexpr std::array<EndingCount, kEndings> kEndingCounts{{{kEndingNames[0], &LedgerSnapshot::done},
                                                                  {kEndingNames[1], &LedgerSnapshot::retried},
                                                                  {kEndingNames[2], &LedgerSnapshot::snoozed},
                                                                  {kEndingNames[3], &LedgerSnapshot::rejected},
                                                                  {kEndingNames[4], &LedgerSnapshot::discarded},
                                                                  {kEndingNames[5], &LedgerSnapshot::released},
                                                                  {kEndingNames[6], &LedgerSnapshot::lost}}};

/// How long a job's handlers have taken, since it began. A value: the difference of two tells of the time between.
class HandlerTimes {
 public:
  /// `count` handlers took `each`.
  void add(Duration each, std::uint64_t count);
  /// One of them ran into its time-out, whatever came of it then.
  void timed_out() { ++time_outs_; }

  std::uint64_t count() const { return count_; }
  std::uint64_t time_outs() const { return time_outs_; }
  Duration slowest() const { return slowest_; }
  /// Of those since `before`; zero: there were none.
  Duration mean_since(const HandlerTimes& before) const {
    const std::uint64_t count = count_ - before.count_;
    return count == 0 ? Duration::zero() : (total_ - before.total_) / static_cast<Duration::rep>(count);
  }
  /// The time within which that share of them was through, to the next power of two; zero: there were none.
  Duration quantile_since(const HandlerTimes& before, double share) const;

 private:
  // Handlers of less than 2^n microseconds, and not less than half of it.
  static constexpr std::size_t kBuckets = 48;

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t time_outs_ = 0;
  Duration total_{};
  Duration slowest_{};
};

/// How operators want a job to run, beside what its file says. A value.
struct JobSteering {
  bool paused = false;        ///< nothing is claimed, no handler starts; what runs goes on
  std::uint32_t workers = 0;  ///< 0: as the file says

  friend bool operator==(const JobSteering&, const JobSteering&) = default;
};

/// A handler at work. A value.
struct RunningHandler {
  std::string message_id;
  std::uint32_t worker = 0;
  std::uint32_t attempt = 0;
  std::uint16_t part = 0;  ///< of the job's queues, the one that the message is of
  SteadyTime started_at{};
  SteadyTime times_out_at{};  ///< SteadyTime::max(): never
  SteadyTime leased_until{};
  bool stuck = false;
  bool stop_requested = false;
};

/// What a host may claim of a limit that all hosts of a job share. A value.
struct RateLease {
  double rate = 0;    ///< messages a second
  double credit = 0;  ///< and this at once
  SteadyTime until = SteadyTime::min();
};

/// What a job is at. A value.
struct JobActivity {
  bool paused = false;
  std::uint32_t workers = 0;  ///< as many as there are to be
  LedgerSnapshot ledger;
  HandlerTimes times;
  std::vector<RunningHandler> running;
  std::vector<RunningHandler> abandoned{};  ///< whose messages the drain took from them, as they were then
  std::uint32_t lingering = 0;              ///< workers in a `begin` whose message is completed
  std::optional<Error> trouble{};           ///< why claims, settlements or looks at keys fail just now
  bool cut_off = false;                     ///< they have failed for long
  std::optional<Error> denial{};            ///< why it can do nothing: the store refuses the role what it takes
  bool out_of_workers = false;              ///< so many are stuck that no more workers take their place
  bool claiming = false;                    ///< a call of the source has not been answered
  double rate = 0;                          ///< messages a second that it may claim, where it has a limit
  bool short_of_rate = false;               ///< that has kept a claim back since it was shared last
  bool quiescent = false;       ///< nothing is held, and the last claim, begun after the last wake, found nothing due
  bool held_by_budget = false;  ///< it waits for what one of its queues may cost

  /// Handlers that have not returned: their threads are busy.
  std::size_t handlers_running() const { return running.size() + lingering; }
  /// Of a job that has drained: nothing was left behind, but for what the store refused.
  bool clean() const { return ledger.stranded == 0 && handlers_running() == 0 && abandoned.empty() && !claiming; }
  /// Handlers that do not return. Their messages are settled, and other workers have taken their place.
  std::vector<RunningHandler> stuck() const {
    std::vector<RunningHandler> some;
    std::copy_if(running.begin(), running.end(), std::back_inserter(some), [](const auto& one) { return one.stuck; });
    return some;
  }
};

/// Why a job that has drained, or has to end as it is, leaves something behind: a line for each thing. None: nothing.
std::vector<std::string> left_behind(const JobActivity& activity, SteadyTime now);

/// How one delivery of a message has ended: what its handler made of it, and what became of it by the job's policy. A
/// value.
struct AttemptEnd {
  std::string id;
  std::uint32_t attempt = 0;
  Ending ending = Ending::released;
  std::optional<plugin::Outcome>
      outcome;         ///< with the effects that were committed; nothing: no handler came to its end
  std::string reason;  ///< the outcome's, or why it ended without one
  Duration took{};     ///< how long the handler ran
  Duration delay{};    ///< after which it is seen again, where it stays
};
/// Is told of each, once the source has written it. Called without a lock, from any of the job's threads; returns at
/// once.
using AttemptWatch = std::function<void(const AttemptEnd& end)>;

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
  std::size_t quarantine = 0;
  bool poller = false;
  bool settler = false;
  bool keeper = false;
  bool keys = false;
  bool drained = false;
  bool checkpoints = false;
  SteadyTime deal_again = SteadyTime::max();  ///< when a worker that was dealt nothing asks again

  // Threads to make.
  std::size_t hire_workers = 0;
  std::size_t hire_quarantine = 0;

  observe::JobCounts counts;

  bool follows = false;  ///< the source wants to be told what was handled
  std::vector<queue::Receipt> handled;

  bool watched = false;  ///< somebody wants to be told of ends
  std::vector<AttemptEnd> ended;

  std::vector<Line> lines;
  std::optional<std::size_t> more_lost;  ///< the line that stands for many

  void outcome(plugin::OutcomeStatus status) { ++counts.outcomes[static_cast<std::size_t>(status)]; }
  void line(observe::LogLevel level, std::string_view text, std::string message_id = {}, std::string detail = {}) {
    lines.push_back({level, text, std::move(message_id), std::move(detail)});
  }
  /// A line about one message.
  void about(observe::LogLevel level, std::string_view text, const queue::Message& message, std::string detail = {});
  /// A message is no longer ours. Where a step loses many, all but the first have a line together.
  void lose(const queue::Message& message);
};

/// Publishes the counts and lines; not the wakes. Where the job's messages are `traced`, a line about one of them says
/// where in its trace it belongs: what its handler's span is called there. Call without any lock.
void publish(const StepEffects& effects, const std::string& job, bool traced, observe::Log& log,
             observe::JobMetrics& metrics);

/// Until when a thread sleeps that has nothing to do: it is woken for what is due earlier only. Not thread-safe.
class Alarm {
 public:
  /// True when the thread must be woken for what is to be done at `time`.
  bool set(SteadyTime time) {
    if (time >= time_) {
      return false;
    }
    time_ = time;
    return true;
  }
  void sleeps_until(SteadyTime time) { time_ = time; }
  /// It comes back by itself.
  void is_busy() { time_ = SteadyTime::min(); }

 private:
  SteadyTime time_ = SteadyTime::min();
};

/// `first`, doubled so often, and at most `last`.
inline Duration doubled(Duration first, std::uint32_t times, Duration last) {
  return std::min(first * (1U << std::min(times, 16U)), last);
}
/// Between nothing of it and all of it.
inline Duration part_of(Duration full, Random& random) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(full.count()) * random.unit()));
}
/// Between half of it and all of it.
inline Duration jittered(Duration full, Random& random) { return full / 2 + part_of(full - full / 2, random); }

/// Failures of one kind of call in a row, logged at the first, then once a minute, so that a store that is down for the
/// night does not fill the disk. Not thread-safe.
class FailureRun {
 public:
  /// One more, with what the log is told when it is time for that.
  void failed(const Error& error, std::string_view text, SteadyTime now, StepEffects& effects) {
    trouble_ = error;
    since_ = count_ == 0 ? now : since_;
    if (count_++ == 0 || now - logged_at_ >= kLogEvery) {
      logged_at_ = now;
      effects.line(observe::LogLevel::error, text, {}, error.message());
    }
  }
  /// A call went well; true when that ended a run, which the log is told.
  bool succeeded(std::string_view text, StepEffects& effects) {
    trouble_.reset();
    const bool ended = std::exchange(count_, 0) > 0;
    if (ended) {
      effects.line(observe::LogLevel::info, text);
    }
    return ended;
  }

  static constexpr Duration kPatience = std::chrono::seconds(10);

  /// Why the last call has failed.
  std::optional<Error> trouble() const { return trouble_; }
  /// More than one try has failed, and none has succeeded for kPatience: who waits for work here should know.
  bool lasts(SteadyTime now) const { return count_ > 1 && now - since_ >= kPatience; }
  /// Why the last calls have failed, where the role may not make them: no waiting mends that.
  std::optional<Error> denial() const {
    return count_ >= kSureAfter && trouble_->code() == ErrorCode::denied ? trouble_ : std::nullopt;
  }

 private:
  static constexpr std::uint64_t kSureAfter = 3;  // a token may be renewed just then
  static constexpr Duration kLogEvery = std::chrono::minutes(1);

  std::uint64_t count_ = 0;
  SteadyTime since_{};
  SteadyTime logged_at_{};
  std::optional<Error> trouble_;
};

}  // namespace sluice::work
