#pragma once

#include "host/observe/http_endpoint.hpp"
#include "host/observe/metrics.hpp"
#include "host/observe/shipper.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/job_set.hpp"

namespace sluice::runtime {

/// How much lies in a queue, as it was counted last. A value.
struct QueueDepth {
  queue::QueueStats standard;
  queue::QueueStats dlq;
  Duration oldest{};  ///< how long the oldest ready message had waited; zero without one
  SteadyTime at{};    ///< when it was asked for

  /// What workers are needed for: due, or being worked on.
  std::uint64_t backlog() const { return standard.ready + standard.in_flight; }
  std::uint64_t dead_letters() const { return dlq.total(); }
  Duration age(SteadyTime now) const { return now - at + standard.age.value_or(Duration::zero()); }
};

/// Keeps the depths of queues. Counting a queue costs reads on DynamoDB, so it happens only when somebody has asked for
/// them, and no more than once in `interval`: a scrape shows the depth as the scrape before it caused it. A queue with
/// a limit to its lag is counted all the time, twice within the limit and at least every `interval`, and every second
/// while it cannot be counted.
class DepthSampler final : public RepeatingService {
 public:
  using Addresses = std::function<std::vector<queue::QueueAddress>()>;
  using Limits = std::map<std::string, Duration>;  ///< by queue

  /// For how long the oldest message of a queue has waited. A value.
  struct Lag {
    Duration age{};  ///< when it was counted
    Duration counted_ago{};
    Duration limit{};       ///< zero: there is none
    std::string unknown{};  ///< with a limit: why the age is not known now; empty: it is
    bool beyond() const { return !unknown.empty() || (limit > Duration::zero() && age > limit); }
  };

  /// The references outlive the sampler.
  DepthSampler(Addresses addresses, queue::Queues& queues, const Clock& clock, Duration interval, Limits limits = {});
  ~DepthSampler() override { stop(); }

  /// Somebody reads the depths. Thread-safe, returns at once.
  void asked() {
    asked_ = true;
    wake();
  }
  /// As it was counted last; nothing before the first time.
  std::optional<QueueDepth> depth(const std::string& queue) const {
    const MutexLock lock(mutex_);
    const auto found = depths_.find(queue);
    return found == depths_.end() ? std::nullopt : std::optional(found->second);
  }
  std::map<std::string, QueueDepth> depths() const {
    const MutexLock lock(mutex_);
    return depths_;
  }
  Duration interval() const { return interval_; }
  /// Of the queues that were counted, as they were then. Thread-safe, returns at once.
  std::map<std::string, Lag> lags() const;

 private:
  SteadyTime step(const std::stop_token& stop) override;
  /// False: one with a limit could not be counted.
  bool sample(const std::stop_token& stop, bool all);
  Result<QueueDepth> count(const std::string& queue, bool cheap);

  const Addresses addresses_;
  queue::Queues& queues_;
  const Duration interval_;
  const Limits limits_;
  const Duration pace_;  ///< of queues with a limit

  std::atomic<bool> asked_{false};
  mutable Mutex mutex_;
  std::map<std::string, QueueDepth> depths_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::string> uncounted_ SLUICE_GUARDED_BY(mutex_);  ///< queues with a limit: why not

  // Touched only by the thread.
  SteadyTime next_ = SteadyTime::min();             ///< not before, whoever asks
  SteadyTime all_again_ = SteadyTime::min();        ///< when the queues without a limit may be counted next
  std::map<std::string, SteadyTime> untold_again_;  ///< when a queue without a job, of which nobody tells, may be
  std::map<std::string, std::unique_ptr<queue::Operator>> operators_;
};

/// Whether queues have nothing due or in flight, here or elsewhere. Of one thread. The references outlive it.
class EmptyCheck {
 public:
  EmptyCheck(queue::Queues& queues, const Clock& clock) : queues_(queues), clock_(clock) {}

  /// Where a cheap count says that all of them are, a consistent one has the last word: an index that lags behind shows
  /// nothing of what was sent just now. An Error that names the queue when one cannot be counted.
  Result<bool> empty(const std::vector<queue::QueueAddress>& addresses);

 private:
  Result<bool> empty(const queue::QueueAddress& address, bool consistent);

  queue::Queues& queues_;
  const Clock& clock_;
  std::map<std::string, std::unique_ptr<queue::Operator>> operators_;
};

/// Says in one line what is wrong with a queue and how a person mends it.
using ExplainQueue = std::function<std::string(const std::string& queue, const Error& error)>;

/// One look at each queue before anything runs. The first failure that waiting does not mend, explained, forbids the
/// start.
Result<void> probe_queues(std::vector<std::string> names, queue::Queues& queues, const Clock& clock, observe::Log& log,
                          const ExplainQueue& explain);

/// What /metrics shows of what others keep. Pure functions.
std::vector<observe::FigureFamily> depth_figures(const DepthSampler& depths, SteadyTime now);
std::vector<observe::FigureFamily> ledger_figures(bool kept);
/// Of who is sent log lines and spans; none where nobody is.
std::vector<observe::FigureFamily> sender_figures(const std::vector<observe::SenderStatus>& statuses);
std::vector<observe::FigureFamily> cost_figures(const cost::CostView& view, const cost::Prices& prices);

/// What the plugins of jobs count for themselves, on these boards, by the name of the job. Where two jobs have metrics
/// of one name and different kinds the first one's are shown, and the other one's board says so.
using MetricBoards = std::vector<std::pair<std::string, std::shared_ptr<plugin::MetricBoard>>>;
std::vector<observe::FigureFamily> plugin_figures(const MetricBoards& boards);
/// Of the jobs that run.
MetricBoards boards_of(const JobSet& jobs);

/// What /scale/QUEUE says to an autoscaler: 200 with the numbers, 404 for a queue that no job here works on, 503 while
/// there are none to scale by. `depth`: as it was counted last, once in `interval` at most.
observe::HttpReply scale_of(std::string_view queue, const JobSet& jobs, const std::optional<QueueDepth>& depth,
                            Duration interval, SteadyTime now);

/// By queue.
using Lags = std::map<std::string, DepthSampler::Lag>;

/// What the probes tell of. A value that borrows.
struct HealthSources {
  const JobSet& jobs;
  const config::HostConfig& config;
  std::vector<observe::SenderStatus> senders;
  Lags lags;
  std::string ledger_trouble;  ///< why there is no crash ledger; empty: there is one
};

/// What /healthz and /readyz say: how each store, collector, broker and the crash ledger fare. The host is healthy
/// without them. It is not ready while a job's store has failed it for long, the database of a job's outbox is away, or
/// an outbox lags by more than its `lag_limit` or cannot be counted.
observe::ProbeResult health_of(const HealthSources& sources);
/// The same without the others: the host is unwell when it has lost its workers.
observe::ProbeResult health_of(const JobSet& jobs);
/// Why a host that runs is not ready; empty: it is.
std::string unreadiness_of(const JobSet& jobs, const Lags& lags);
/// Whether nothing comes out of the job's queue. Of an outbox it is known at once, for its sessions have ended.
bool is_cut_off(const JobSet::Member& member, const work::JobActivity& activity);
observe::ProbeResult readiness_of(bool running, const HealthSources& sources);
/// The queues whose lag has a limit.
DepthSampler::Limits lag_limits_of(const config::HostConfig& config);

}  // namespace sluice::runtime
