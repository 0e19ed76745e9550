#include "host/observe/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "host/observe/build_info.hpp"

namespace sluice::observe {

namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricType;

constexpr std::array<std::string_view, 9> kOutcomes{"done",    "retry", "snooze",    "reject",   "discard",
                                                    "release", "fault", "exhausted", "duplicate"};
constexpr std::array<std::string_view, 6> kEndings{"done", "retried", "snoozed", "rejected", "discarded", "released"};
// Prometheus gives every series a label `job` of its own, and renames one that is there already.
constexpr const char* kJobLabel = "sluice_job";

constexpr std::size_t kMostTypes = 100;
constexpr std::size_t kMostReasons = 50;

const Histogram::BucketBoundaries kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                           1,     2.5,    5,     10,   30,    60,   300, 1800, 3600};
const Histogram::BucketBoundaries kRows{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000};

// The registry gives the same family for the same name, and a family the same series for the same labels.

Counter& counter(prometheus::Registry& registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
}

Gauge& gauge(prometheus::Registry& registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
}

Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help, const std::string& outbox,
                     const Histogram::BucketBoundaries& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({{"outbox", outbox}}, bounds);
}

Counter& outcome_counter(prometheus::Registry& registry, Labels labels, std::string_view outcome) {
  labels["outcome"] = outcome;
  return counter(registry, "sluice_outcomes_total", "Outcomes of attempts, by outcome", labels);
}

/// How long attempts took, by buckets. Thread-safe; an observation is two atomic additions, whatever its count, where
/// the library's own histogram takes a lock and touches every bucket.
class DurationHistogram {
 public:
  /// `count` times the same duration.
  void observe(Duration duration, std::uint64_t count) {
    const double seconds = std::chrono::duration<double>(duration).count();
    const auto* bound = std::lower_bound(kUpperBounds.begin(), kUpperBounds.end(), seconds);
    buckets_[static_cast<std::size_t>(bound - kUpperBounds.begin())].fetch_add(count, std::memory_order_relaxed);
    const auto nanoseconds = static_cast<std::uint64_t>(std::max(duration, Duration::zero()).count());
    sum_.fetch_add(nanoseconds * count, std::memory_order_relaxed);
  }

  /// The sample without its labels. Observations made meanwhile may be in the sum and not yet in the buckets.
  prometheus::ClientMetric collect() const {
    prometheus::ClientMetric metric;
    std::uint64_t cumulative = 0;
    for (std::size_t index = 0; index < buckets_.size(); ++index) {
      cumulative += buckets_[index].load(std::memory_order_relaxed);
      const bool last = index == kUpperBounds.size();
      metric.histogram.bucket.push_back(
          {cumulative, last ? std::numeric_limits<double>::infinity() : kUpperBounds[index]});
    }
    metric.histogram.sample_count = cumulative;
    const std::chrono::duration<double, std::nano> sum(sum_.load(std::memory_order_relaxed));
    metric.histogram.sample_sum = std::chrono::duration<double>(sum).count();
    return metric;
  }

 private:
  /// From handlers that only touch memory to those that run for minutes.
  static constexpr std::array<double, 16> kUpperBounds{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25,
                                                       0.5,    1,      2.5,   5,     10,   30,   60,  300};

  std::array<std::atomic<std::uint64_t>, kUpperBounds.size() + 1> buckets_{};
  std::atomic<std::uint64_t> sum_{0};  // nanoseconds; enough for five centuries
};

prometheus::MetricFamily family_of(const FigureFamily& family) {
  prometheus::MetricFamily out{family.name, family.help, family.counter ? MetricType::Counter : MetricType::Gauge, {}};
  for (const Figure& figure : family.figures) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : figure.labels) {
      metric.label.push_back({name, value});
    }
    (family.counter ? metric.counter.value : metric.gauge.value) = figure.value;
    out.metric.push_back(std::move(metric));
  }
  return out;
}

/// Of /proc/self/stat from the state on, which follows the parenthesised command name: proc(5).
std::vector<double> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(std::min(line.rfind(')'), line.size() - 1) + 1));
  std::vector<double> fields;
  for (std::string field; rest >> field;) {
    fields.push_back(std::strtod(field.c_str(), nullptr));
  }
  return fields;
}

double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("btime ", 0) == 0) {
      return std::strtod(line.c_str() + 6, nullptr);
    }
  }
  return 0;
}

double count_open_files() {
  std::error_code failed;
  std::filesystem::directory_iterator entries("/proc/self/fd", failed);
  double count = 0;
  while (!failed && entries != std::filesystem::directory_iterator()) {
    ++count;
    entries.increment(failed);
  }
  return count == 0 ? 0 : count - 1;  // the one that looks
}

/// What the kernel says about this process; what cannot be read is 0.
std::vector<FigureFamily> process_figures() {
  constexpr std::size_t kUserTicks = 11;
  constexpr std::size_t kSystemTicks = 12;
  constexpr std::size_t kThreads = 17;
  constexpr std::size_t kStartTicks = 19;
  constexpr std::size_t kResidentPages = 21;
  std::vector<double> fields = stat_fields();
  const double boot = fields.size() > kResidentPages ? boot_time() : 0;
  fields.resize(std::max(fields.size(), kResidentPages + 1));
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return {
      {"process_cpu_seconds_total",
       "User and system time",
       true,
       {{{}, (fields[kUserTicks] + fields[kSystemTicks]) / ticks}}},
      {"process_start_time_seconds", "Start, in seconds since 1970", false, {{{}, boot + fields[kStartTicks] / ticks}}},
      {"process_resident_memory_bytes", "Resident memory", false, {{{}, fields[kResidentPages] * page}}},
      {"process_threads", "Threads", false, {{{}, fields[kThreads]}}},
      {"process_open_fds", "Open file descriptors", false, {{{}, count_open_files()}}},
      {"process_max_fds",
       "Limit of open file descriptors",
       false,
       {{{}, limited ? static_cast<double>(limit.rlim_cur) : 0}}}};
}

}  // namespace

/// Holds the counters themselves, so that a call neither looks up a label nor allocates.
class Metrics::PrometheusJob final : public JobMetrics {
 public:
  PrometheusJob(prometheus::Registry& registry, Labels labels) : registry_(registry), labels_(std::move(labels)) {
    for (std::size_t index = 0; index < kEndings.size(); ++index) {
      Labels with_ending = labels_;
      with_ending["ending"] = kEndings[index];
      settled_[index] =
          &counter(registry, "sluice_settled_total", "Messages whose attempt is written, by ending", with_ending);
    }
    for (std::size_t index = 0; index < kOutcomes.size(); ++index) {
      outcomes_[index] = &outcome_counter(registry, labels_, kOutcomes[index]);
    }
  }

  void claimed(std::uint64_t count) override { claims_.Increment(static_cast<double>(count)); }

  void outcome(std::string_view outcome, std::uint64_t count) override {
    const auto* const known = std::find(kOutcomes.begin(), kOutcomes.end(), outcome);
    Counter& attempts = known == kOutcomes.end() ? outcome_counter(registry_, labels_, outcome)
                                                 : *outcomes_[static_cast<std::size_t>(known - kOutcomes.begin())];
    attempts.Increment(static_cast<double>(count));
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
  // Fixed after construction; what they refer to synchronises itself.
  prometheus::Registry& registry_;
  const Labels labels_;
  Counter& claims_ = counter(registry_, "sluice_claims_total", "Messages claimed", labels_);
  Counter& claim_failures_ = counter(registry_, "sluice_claim_failures_total", "Claim requests that failed", labels_);
  Counter& attempts_ = counter(registry_, "sluice_attempts_total", "Attempts that a handler has finished", labels_);
  Counter& settle_failures_ = counter(registry_, "sluice_settle_failures_total", "Settlements that failed", labels_);
  Counter& effects_refused_ =
      counter(registry_, "sluice_effects_refused_total",
              "Messages whose effects the store refused; nothing of them was committed", labels_);
  Counter& lost_receipts_ = counter(registry_, "sluice_lost_receipts_total",
                                    "Receipts found to be no longer ours, at settle or extend", labels_);
  Counter& timeouts_ = counter(registry_, "sluice_timeouts_total", "Attempts that ran into their time-out", labels_);
  Gauge& in_flight_ = gauge(registry_, "sluice_in_flight", "Messages that this host holds at the moment", labels_);
  Gauge& concurrency_ = gauge(registry_, "sluice_concurrency", "Workers that the job is configured to have", labels_);
  Gauge& stuck_ =
      gauge(registry_, "sluice_stuck_handlers", "Handlers that have not returned long after their time-out", labels_);
  std::array<Counter*, kOutcomes.size()> outcomes_{};
  std::array<Counter*, kEndings.size()> settled_{};
  // Synchronises itself.
  DurationHistogram durations_;
};

OutboxMetrics::OutboxMetrics(prometheus::Registry& registry, std::string outbox)
    : registry_(registry),
      outbox_(std::move(outbox)),
      latency_(histogram(registry, "sluice_outbox_publish_seconds",
                         "From a row's created_at, or its first fetch, until it is marked as sent", outbox_, kSeconds)),
      batches_(histogram(registry, "sluice_outbox_marked_rows", "Rows marked in one transaction", outbox_, kRows)) {}

std::string OutboxMetrics::bounded(std::set<std::string>& known, const std::string& name, std::size_t most) {
  const MutexLock lock(mutex_);
  if (known.size() < most) {
    known.insert(name);
  }
  return known.contains(name) ? name : "other";
}

void OutboxMetrics::published(const std::string& type, Duration latency) {
  counter(registry_, "sluice_outbox_published_total", "Rows marked as sent, by aggregate type",
          {{"outbox", outbox_}, {"type", bounded(types_, type, kMostTypes)}})
      .Increment();
  latency_.Observe(std::chrono::duration<double>(latency).count());
}

void OutboxMetrics::failed(const std::string& type, const std::string& reason) {
  counter(registry_, "sluice_outbox_failed_total", "Rows marked as failed, by aggregate type and reason",
          {{"outbox", outbox_},
           {"type", bounded(failed_types_, type, kMostTypes)},
           {"reason", bounded(reasons_, reason, kMostReasons)}})
      .Increment();
}

void OutboxMetrics::marked(std::size_t rows) { batches_.Observe(static_cast<double>(rows)); }

Metrics::Metrics() : registry_(std::make_unique<prometheus::Registry>()) {
  const BuildInfo build = build_info();
  gauge(*registry_, "sluice_build_info", "Always 1; says what runs",
        {{"version", build.version}, {"abi", build.abi}, {"compiler", build.compiler}})
      .Set(1);
}

Metrics::~Metrics() = default;

JobMetrics& Metrics::job(const std::string& job, const std::string& queue) {
  const MutexLock lock(mutex_);
  auto& entry = by_job_[{job, queue}];
  if (!entry) {
    entry = std::make_unique<PrometheusJob>(*registry_, Labels{{kJobLabel, job}, {"queue", queue}});
  }
  return *entry;
}

OutboxMetrics& Metrics::outbox(const std::string& name) {
  const MutexLock lock(mutex_);
  auto& outbox = outboxes_[name];
  if (outbox == nullptr) {
    outbox = std::make_unique<OutboxMetrics>(*registry_, name);
  }
  return *outbox;
}

void Metrics::queue_depth(const std::string& queue, std::string_view state, double messages) {
  gauge(*registry_, "sluice_queue_depth", "Messages in a queue by state, sampled",
        {{"queue", queue}, {"state", std::string(state)}})
      .Set(messages);
}

void Metrics::queue_oldest(const std::string& queue, Duration age) {
  gauge(*registry_, "sluice_queue_oldest_seconds", "How long the oldest ready message has waited, sampled",
        {{"queue", queue}})
      .Set(std::chrono::duration<double>(age).count());
}

void Metrics::wake_datagrams(std::string_view result, std::uint64_t count) {
  counter(*registry_, "sluice_wake_datagrams_total", "Datagrams that came to wake this host, by what they were worth",
          {{"result", std::string(result)}})
      .Increment(static_cast<double>(count));
}

void Metrics::dynamodb_request(const DynamoDbAttempt& attempt) {
  Labels labels{{"operation", std::string(attempt.operation)},
                {"queue", std::string(attempt.queue)},
                {"table", std::string(attempt.table)}};
  const auto add = [&](const char* name, const char* help, double amount) {
    counter(*registry_, name, help, labels).Increment(amount);
  };
  add("sluice_dynamodb_requests_total", "HTTP requests to DynamoDB, retries included", 1);
  add("sluice_dynamodb_throttles_total", "DynamoDB requests that were throttled", attempt.throttled ? 1 : 0);
  add("sluice_dynamodb_read_units_total", "Read capacity units that answers reported", attempt.read_units);
  add("sluice_dynamodb_write_units_total", "Write capacity units that answers reported", attempt.write_units);
  if (!attempt.error.empty()) {
    labels.emplace("error", attempt.error);
    add("sluice_dynamodb_errors_total", "DynamoDB requests that failed, by kind of error", 1);
  }
}

void Metrics::collect_from(Figures figures) { figures_.push_back(std::move(figures)); }

std::string Metrics::text() const {
  auto families = registry_->Collect();
  prometheus::MetricFamily durations{
      "sluice_handler_duration_seconds", "How long handlers took for one attempt", MetricType::Histogram, {}};
  {
    const MutexLock lock(mutex_);
    for (const auto& [names, job] : by_job_) {
      durations.metric.push_back(job->durations());
    }
  }
  families.push_back(std::move(durations));
  for (const Figures& figures : figures_) {
    for (const FigureFamily& family : figures()) {
      families.push_back(family_of(family));
    }
  }
  for (const FigureFamily& family : process_figures()) {
    families.push_back(family_of(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace sluice::observe
