#include "host/observe/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/observe/build_info.hpp"
#include "host/observe/duration_histogram.hpp"
#include "host/observe/process_families.hpp"
#include "host/observe/prometheus_outbox.hpp"

namespace sluice::observe {

namespace {

using Labels = prometheus::Labels;
using CounterFamily = prometheus::Family<prometheus::Counter>;
using GaugeFamily = prometheus::Family<prometheus::Gauge>;

constexpr std::array<std::string_view, 9> kOutcomes{"done",    "retry", "snooze",    "reject",   "discard",
                                                    "release", "fault", "exhausted", "duplicate"};
constexpr std::array<std::string_view, 6> kEndings{"done", "retried", "snoozed", "rejected", "discarded", "released"};
// Prometheus gives every series a label `job` of its own, and renames one that is there already.
constexpr const char* kJobLabel = "sluice_job";

CounterFamily& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

GaugeFamily& gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

/// The families that carry a job's labels.
struct JobFamilies {
  explicit JobFamilies(prometheus::Registry& registry)
      : claims(counter(registry, "sluice_claims_total", "Messages claimed")),
        claim_failures(counter(registry, "sluice_claim_failures_total", "Claim requests that failed")),
        outcomes(counter(registry, "sluice_outcomes_total", "Outcomes of attempts, by outcome")),
        attempts(counter(registry, "sluice_attempts_total", "Attempts that a handler has finished")),
        settle_failures(counter(registry, "sluice_settle_failures_total", "Settlements that failed")),
        effects_refused(counter(registry, "sluice_effects_refused_total",
                                "Messages whose effects the store refused; nothing of them was committed")),
        lost_receipts(counter(registry, "sluice_lost_receipts_total",
                              "Receipts found to be no longer ours, at settle or extend")),
        in_flight(gauge(registry, "sluice_in_flight", "Messages that this host holds at the moment")),
        timeouts(counter(registry, "sluice_timeouts_total", "Attempts that ran into their time-out")),
        settled(counter(registry, "sluice_settled_total", "Messages whose attempt is written, by ending")),
        concurrency(gauge(registry, "sluice_concurrency", "Workers that the job is configured to have")),
        stuck(gauge(registry, "sluice_stuck_handlers", "Handlers that have not returned long after their time-out")) {}

  CounterFamily& claims;
  CounterFamily& claim_failures;
  CounterFamily& outcomes;
  CounterFamily& attempts;
  CounterFamily& settle_failures;
  CounterFamily& effects_refused;
  CounterFamily& lost_receipts;
  GaugeFamily& in_flight;
  CounterFamily& timeouts;
  CounterFamily& settled;
  GaugeFamily& concurrency;
  GaugeFamily& stuck;
};

/// Holds the counters themselves, so that a call neither looks up a label nor allocates.
class PrometheusJob final : public JobMetrics {
 public:
  PrometheusJob(JobFamilies& families, const Labels& labels)
      : families_(families),
        labels_(labels),
        claims_(families.claims.Add(labels)),
        claim_failures_(families.claim_failures.Add(labels)),
        attempts_(families.attempts.Add(labels)),
        settle_failures_(families.settle_failures.Add(labels)),
        effects_refused_(families.effects_refused.Add(labels)),
        lost_receipts_(families.lost_receipts.Add(labels)),
        in_flight_(families.in_flight.Add(labels)),
        timeouts_(families.timeouts.Add(labels)),
        concurrency_(families.concurrency.Add(labels)),
        stuck_(families.stuck.Add(labels)) {
    for (std::size_t index = 0; index < kEndings.size(); ++index) {
      Labels with_ending = labels;
      with_ending["ending"] = kEndings[index];
      settled_[index] = &families.settled.Add(with_ending);
    }
    for (std::size_t index = 0; index < kOutcomes.size(); ++index) {
      outcomes_[index] = &outcome_counter(kOutcomes[index]);
    }
  }

  void claimed(std::uint64_t count) override { claims_.Increment(static_cast<double>(count)); }

  void outcome(std::string_view outcome, std::uint64_t count) override {
    for (std::size_t index = 0; index < kOutcomes.size(); ++index) {
      if (kOutcomes[index] == outcome) {
        outcomes_[index]->Increment(static_cast<double>(count));
        return;
      }
    }
    outcome_counter(outcome).Increment(static_cast<double>(count));
  }

  void handler_time(Duration duration, std::uint64_t count) override {
    if (count == 0) {
      return;
    }
    attempts_.Increment(static_cast<double>(count));
    durations_.observe(duration, count);
  }

  void effects_refused(std::uint64_t count) override { effects_refused_.Increment(static_cast<double>(count)); }
  void settle_failed(std::uint64_t count) override { settle_failures_.Increment(static_cast<double>(count)); }
  void lost(std::uint64_t count) override { lost_receipts_.Increment(static_cast<double>(count)); }
  void claim_failed() override { claim_failures_.Increment(); }
  void in_flight(std::int64_t now) override { in_flight_.Set(static_cast<double>(now)); }
  void timed_out(std::uint64_t count) override { timeouts_.Increment(static_cast<double>(count)); }
  void settled(std::string_view ending, std::uint64_t count) override {
    const auto* const known = std::find(kEndings.begin(), kEndings.end(), ending);
    if (known != kEndings.end()) {
      settled_[static_cast<std::size_t>(known - kEndings.begin())]->Increment(static_cast<double>(count));
    }
  }
  void workers(std::uint64_t configured, std::uint64_t stuck) override {
    concurrency_.Set(static_cast<double>(configured));
    stuck_.Set(static_cast<double>(stuck));
  }

  prometheus::ClientMetric durations() const {
    auto metric = durations_.collect();
    for (const auto& [name, value] : labels_) {
      metric.label.push_back({name, value});
    }
    return metric;
  }

 private:
  prometheus::Counter& outcome_counter(std::string_view outcome) {
    Labels labels = labels_;
    labels["outcome"] = outcome;
    return families_.outcomes.Add(labels);
  }

  // Fixed after construction; what they refer to synchronises itself.
  JobFamilies& families_;
  const Labels labels_;
  prometheus::Counter& claims_;
  prometheus::Counter& claim_failures_;
  prometheus::Counter& attempts_;
  prometheus::Counter& settle_failures_;
  prometheus::Counter& effects_refused_;
  prometheus::Counter& lost_receipts_;
  prometheus::Gauge& in_flight_;
  prometheus::Counter& timeouts_;
  prometheus::Gauge& concurrency_;
  prometheus::Gauge& stuck_;
  std::array<prometheus::Counter*, kOutcomes.size()> outcomes_{};
  std::array<prometheus::Counter*, kEndings.size()> settled_{};
  // Synchronises itself.
  DurationHistogram durations_;
};

struct DynamoFamilies {
  explicit DynamoFamilies(prometheus::Registry& registry)
      : requests(counter(registry, "sluice_dynamodb_requests_total", "HTTP requests to DynamoDB, retries included")),
        errors(counter(registry, "sluice_dynamodb_errors_total", "DynamoDB requests that failed, by kind of error")),
        throttles(counter(registry, "sluice_dynamodb_throttles_total", "DynamoDB requests that were throttled")),
        read_units(counter(registry, "sluice_dynamodb_read_units_total", "Read capacity units that answers reported")),
        write_units(
            counter(registry, "sluice_dynamodb_write_units_total", "Write capacity units that answers reported")) {}

  CounterFamily& requests;
  CounterFamily& errors;
  CounterFamily& throttles;
  CounterFamily& read_units;
  CounterFamily& write_units;
};

struct DynamoCounters {
  DynamoCounters(DynamoFamilies& families, const Labels& labels)
      : requests(families.requests.Add(labels)),
        throttles(families.throttles.Add(labels)),
        read_units(families.read_units.Add(labels)),
        write_units(families.write_units.Add(labels)) {}

  prometheus::Counter& requests;
  prometheus::Counter& throttles;
  prometheus::Counter& read_units;
  prometheus::Counter& write_units;
};

class PrometheusSender final : public SenderMetrics {
 public:
  PrometheusSender(prometheus::Registry& registry, const Labels& labels)
      : sent_(
            counter(registry, "sluice_sender_sent_total", "Log lines or spans that their collector took").Add(labels)),
        dropped_(counter(registry, "sluice_sender_dropped_total", "Log lines or spans that were given up").Add(labels)),
        failed_(counter(registry, "sluice_sender_failures_total", "Requests to a collector that failed").Add(labels)),
        waiting_(
            gauge(registry, "sluice_sender_queue", "Log lines or spans that wait for their collector").Add(labels)) {}

  void sent(std::uint64_t count) override { sent_.Increment(static_cast<double>(count)); }
  void dropped(std::uint64_t count) override { dropped_.Increment(static_cast<double>(count)); }
  void failed(std::uint64_t requests) override { failed_.Increment(static_cast<double>(requests)); }
  void waiting(std::size_t now) override { waiting_.Set(static_cast<double>(now)); }

 private:
  prometheus::Counter& sent_;
  prometheus::Counter& dropped_;
  prometheus::Counter& failed_;
  prometheus::Gauge& waiting_;
};

}  // namespace

class Metrics::Registry {
 public:
  Registry()
      : jobs_(registry_),
        dynamo_(registry_),
        depth_(gauge(registry_, "sluice_queue_depth", "Messages in a queue by state, sampled")),
        oldest_(
            gauge(registry_, "sluice_queue_oldest_seconds", "How long the oldest ready message has waited, sampled")) {
    const BuildInfo build = build_info();
    gauge(registry_, "sluice_build_info", "Always 1; says what runs")
        .Add({{"version", build.version}, {"abi", build.abi}, {"compiler", build.compiler}})
        .Set(1);
  }

  JobMetrics& job(const std::string& job, const std::string& queue) {
    MutexLock lock(mutex_);
    auto& entry = by_job_[{job, queue}];
    if (!entry) {
      entry = std::make_unique<PrometheusJob>(jobs_, Labels{{kJobLabel, job}, {"queue", queue}});
    }
    return *entry;
  }

  void queue_depth(const std::string& queue, std::string_view state, double messages) {
    depth_.Add({{"queue", queue}, {"state", std::string(state)}}).Set(messages);
  }

  SenderMetrics& sender(const std::string& name) {
    const MutexLock lock(mutex_);
    auto& sender = senders_[name];
    if (sender == nullptr) {
      sender = std::make_unique<PrometheusSender>(registry_, Labels{{"sender", name}});
    }
    return *sender;
  }

  OutboxMetrics& outbox(const std::string& name) {
    const MutexLock lock(mutex_);
    auto& outbox = outboxes_[name];
    if (outbox == nullptr) {
      outbox = std::make_unique<PrometheusOutbox>(registry_, name);
    }
    return *outbox;
  }

  void queue_oldest(const std::string& queue, Duration age) {
    oldest_.Add({{"queue", queue}}).Set(std::chrono::duration<double>(age).count());
  }

  void wake_datagrams(std::string_view result, std::uint64_t count) {
    // A host that nobody can wake has no such family.
    counter(registry_, "sluice_wake_datagrams_total", "Datagrams that came to wake this host, by what they were worth")
        .Add({{"result", std::string(result)}})
        .Increment(static_cast<double>(count));
  }

  void dynamodb_error(const DynamoDbAttempt& attempt) {
    Labels labels = labels_of(attempt);
    labels.emplace("error", attempt.error);
    dynamo_.errors.Add(labels).Increment();
  }

  DynamoCounters& dynamodb(const DynamoDbAttempt& attempt) {
    MutexLock lock(mutex_);
    std::pair key(std::string(attempt.operation), std::string(attempt.table));
    const auto found = by_operation_.find(key);
    if (found != by_operation_.end()) {
      return found->second;
    }
    return by_operation_.emplace(std::move(key), DynamoCounters(dynamo_, labels_of(attempt))).first->second;
  }

  void collect_from(Figures figures) { figures_.push_back(std::move(figures)); }

  std::string text() const {
    auto families = registry_.Collect();
    families.push_back(durations());
    for (const Metrics::Figures& figures : figures_) {
      for (const FigureFamily& family : figures()) {
        families.push_back(family_of(family));
      }
    }
    append_process(families);
    return prometheus::TextSerializer().Serialize(families);
  }

 private:
  static Labels labels_of(const DynamoDbAttempt& attempt) {
    return {{"operation", std::string(attempt.operation)},
            {"queue", std::string(attempt.queue)},
            {"table", std::string(attempt.table)}};
  }

  prometheus::MetricFamily durations() const {
    prometheus::MetricFamily family{"sluice_handler_duration_seconds",
                                    "How long handlers took for one attempt",
                                    prometheus::MetricType::Histogram,
                                    {}};
    MutexLock lock(mutex_);
    for (const auto& [names, job] : by_job_) {
      family.metric.push_back(job->durations());
    }
    return family;
  }

  // Synchronise themselves.
  prometheus::Registry registry_;
  JobFamilies jobs_;
  DynamoFamilies dynamo_;
  GaugeFamily& depth_;
  GaugeFamily& oldest_;
  // Fixed before the first text.
  std::vector<Metrics::Figures> figures_;
  // Guarded by mutex_; entries stay for ever, so references to them may leave the lock.
  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<PrometheusJob>> by_job_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, std::string>, DynamoCounters> by_operation_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<PrometheusSender>> senders_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<PrometheusOutbox>> outboxes_ SLUICE_GUARDED_BY(mutex_);
};

Metrics::Metrics() : registry_(std::make_unique<Registry>()) {}

Metrics::~Metrics() = default;

JobMetrics& Metrics::job(const std::string& job, const std::string& queue) { return registry_->job(job, queue); }

SenderMetrics& Metrics::sender(const std::string& name) { return registry_->sender(name); }

OutboxMetrics& Metrics::outbox(const std::string& name) { return registry_->outbox(name); }

void Metrics::queue_depth(const std::string& queue, std::string_view state, double messages) {
  registry_->queue_depth(queue, state, messages);
}

void Metrics::queue_oldest(const std::string& queue, Duration age) { registry_->queue_oldest(queue, age); }

void Metrics::wake_datagrams(std::string_view result, std::uint64_t count) { registry_->wake_datagrams(result, count); }

void Metrics::dynamodb_request(const DynamoDbAttempt& attempt) {
  DynamoCounters& counters = registry_->dynamodb(attempt);
  counters.requests.Increment();
  counters.read_units.Increment(attempt.read_units);
  counters.write_units.Increment(attempt.write_units);
  if (attempt.throttled) {
    counters.throttles.Increment();
  }
  if (!attempt.error.empty()) {
    registry_->dynamodb_error(attempt);
  }
}

void Metrics::collect_from(Figures figures) { registry_->collect_from(std::move(figures)); }

std::string Metrics::text() const { return registry_->text(); }

}  // namespace sluice::observe
