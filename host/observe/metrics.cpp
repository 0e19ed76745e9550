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
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>

#include "dynamo/client.hpp"
#include "host/observe/build_info.hpp"

namespace sluice::observe {

namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::MetricType;

/// What handlers may report, and what a message comes to without one: its attempts are used up, or its key is done.
constexpr std::size_t kExhausted = queue::core::kOutcomes;
constexpr std::size_t kDuplicate = kExhausted + 1;
constexpr auto kOutcomes = [] {
  std::array<std::string_view, kDuplicate + 1> names;
  std::transform(queue::core::kOutcomeRules.begin(), queue::core::kOutcomeRules.end(), names.begin(),
                 [](const queue::core::OutcomeRule& rule) { return rule.name; });
  names[kExhausted] = "exhausted";
  names[kDuplicate] = "duplicate";
  return names;
}();
/// What is lost has a counter of its own.
constexpr std::span kEndings(queue::core::kEndingNames.begin(), static_cast<std::size_t>(queue::core::Ending::lost));
// Prometheus gives every series a label `job` of its own, and renames one that is there already.
constexpr const char* kJobLabel = "sluice_job";

constexpr std::size_t kMostTypes = 100;
constexpr std::size_t kMostReasons = 50;

const Histogram::BucketBoundaries kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                           1,     2.5,    5,     10,   30,    60,   300, 1800, 3600};
/// From handlers that only touch memory to those that run for minutes.
const Histogram::BucketBoundaries kHandlerSeconds{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25,
                                                  0.5,    1,      2.5,   5,     10,   30,   60,  300};
const Histogram::BucketBoundaries kRows{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000};

// The registry gives the same family for the same name, and a family the same series for the same labels.

Counter& counter(prometheus::Registry& registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add(labels);
}

Gauge& gauge(prometheus::Registry& registry, const char* name, const char* help, const Labels& labels) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add(labels);
}

Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help, const Labels& labels,
                     const Histogram::BucketBoundaries& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(labels, bounds);
}

/// A counter for each of some names, under a label. All are there from the start, so that rates have a zero to begin
/// with.
std::vector<Counter*> counters(prometheus::Registry& registry, const char* name, const char* help, Labels labels,
                               const char* label, std::span<const std::string_view> names) {
  std::vector<Counter*> all;
  for (const std::string_view each : names) {
    labels[label] = each;
    all.push_back(&counter(registry, name, help, labels));
  }
  return all;
}

void add_to(Counter& counter, std::uint64_t count) {
  if (count > 0) {
    counter.Increment(static_cast<double>(count));
  }
}

prometheus::MetricFamily family_of(const FigureFamily& family) {
  const MetricType type = family.histogram ? MetricType::Histogram
                          : family.counter ? MetricType::Counter
                                           : MetricType::Gauge;
  prometheus::MetricFamily out{family.name, family.help, type, {}};
  for (const Figure& figure : family.figures) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : figure.labels) {
      metric.label.push_back({name, value});
    }
    (family.counter ? metric.counter.value : metric.gauge.value) = figure.value;
    for (const auto& [bound, count] : figure.buckets) {
      metric.histogram.bucket.push_back({count, bound});
    }
    metric.histogram.sample_sum = figure.value;
    metric.histogram.sample_count = figure.buckets.empty() ? 0 : figure.buckets.back().second;
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
  const auto count = std::distance(std::filesystem::directory_iterator("/proc/self/fd", failed), {});
  return count == 0 ? 0 : static_cast<double>(count - 1);  // the one that looks
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
  PrometheusJob(prometheus::Registry& registry, Labels labels) : registry_(registry), labels_(std::move(labels)) {}

  void add(const JobCounts& counts) override {
    add_to(claims_, counts.claimed);
    for (std::size_t i = 0; i < counts.outcomes.size(); ++i) {
      add_to(*outcomes_[i], counts.outcomes[i]);
    }
    add_to(*outcomes_[kExhausted], counts.exhausted);
    add_to(*outcomes_[kDuplicate], counts.duplicates);
    add_to(timeouts_, counts.timed_out);
    for (std::size_t i = 0; i < settled_.size(); ++i) {
      add_to(*settled_[i], counts.endings[i]);
    }
    add_to(settle_failures_, counts.settle_failed);
    add_to(effects_refused_, counts.effects_refused);
    add_to(lost_receipts_, counts.lost);
    add_to(claim_failures_, counts.claim_failed);
    for (const auto& [duration, count] : counts.handler_times) {
      add_handler_times(duration, count);
    }
    if (counts.held) {
      in_flight_.Set(static_cast<double>(*counts.held));
    }
  }
  void workers(std::uint64_t configured, std::uint64_t stuck) override {
    concurrency_.Set(static_cast<double>(configured));
    stuck_.Set(static_cast<double>(stuck));
  }

 private:
  void add_handler_times(Duration duration, std::uint64_t count) {
    if (count == 0) {
      return;
    }
    attempts_.Increment(static_cast<double>(count));
    const double seconds = std::chrono::duration<double>(std::max(duration, Duration::zero())).count();
    std::vector<double> buckets(kHandlerSeconds.size() + 1);
    const auto bound = std::lower_bound(kHandlerSeconds.begin(), kHandlerSeconds.end(), seconds);
    buckets[static_cast<std::size_t>(bound - kHandlerSeconds.begin())] = static_cast<double>(count);
    durations_.ObserveMultiple(buckets, seconds * static_cast<double>(count));
  }

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
  const std::vector<Counter*> outcomes_ =
      counters(registry_, "sluice_outcomes_total", "Outcomes of attempts, by outcome", labels_, "outcome", kOutcomes);
  const std::vector<Counter*> settled_ = counters(
      registry_, "sluice_settled_total", "Messages whose attempt is written, by ending", labels_, "ending", kEndings);
  Histogram& durations_ = histogram(registry_, "sluice_handler_duration_seconds",
                                    "How long handlers took for one attempt", labels_, kHandlerSeconds);
};

OutboxMetrics::OutboxMetrics(prometheus::Registry& registry, std::string outbox)
    : registry_(registry),
      outbox_(std::move(outbox)),
      latency_(histogram(registry, "sluice_outbox_publish_seconds",
                         "From a row's created_at, or its first fetch, until it is marked as sent",
                         {{"outbox", outbox_}}, kSeconds)),
      batches_(histogram(registry, "sluice_outbox_marked_rows", "Rows marked in one transaction", {{"outbox", outbox_}},
                         kRows)) {}

std::string OutboxMetrics::bounded(std::set<std::string>& known, const std::string& name, std::size_t most) {
  const MutexLock lock(mutex_);
  if (known.size() < most) {
    known.insert(name);
  }
  return known.contains(name) ? name : "other";
}

Counter& OutboxMetrics::published_of(const std::string& type) {
  const MutexLock lock(mutex_);
  const std::string name = published_.size() < kMostTypes || published_.contains(type) ? type : "other";
  Counter*& known = published_[name];
  if (known == nullptr) {
    known = &counter(registry_, "sluice_outbox_published_total", "Rows marked as sent, by aggregate type",
                     {{"outbox", outbox_}, {"type", name}});
  }
  return *known;
}

void OutboxMetrics::published(const std::string& type, Duration latency) {
  published_of(type).Increment();
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

void OutboxMetrics::excluded(std::uint64_t rows) {
  gauge(registry_, "sluice_outbox_excluded", "Rows that the lists of no job take, sampled", {{"outbox", outbox_}})
      .Set(static_cast<double>(rows));
}

Metrics::Metrics() : registry_(std::make_unique<prometheus::Registry>()) {
  const BuildInfo build = build_info();
  gauge(*registry_, "sluice_build_info", "Always 1; says what runs",
        {{"version", build.version}, {"abi", build.abi}, {"compiler", build.compiler}})
      .Set(1);
}

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

void Metrics::wake_datagrams(std::string_view result, std::uint64_t count) {
  counter(*registry_, "sluice_wake_datagrams_total", "Datagrams that came to wake this host, by what they were worth",
          {{"result", std::string(result)}})
      .Increment(static_cast<double>(count));
}

/// Of one operation on one table for one queue.
class Metrics::Requests {
 public:
  Requests(prometheus::Registry& registry, Labels labels) : registry_(registry), labels_(std::move(labels)) {}

  void add(const dynamo::CallRecord& call) {
    requests_.Increment();
    throttles_.Increment(call.error == dynamo::ErrorKind::throttled ? 1 : 0);
    read_units_.Increment(call.capacity.read);
    write_units_.Increment(call.capacity.write);
    if (call.error) {
      Labels labels = labels_;
      labels.emplace("error", dynamo::to_string(*call.error));
      counter(registry_, "sluice_dynamodb_errors_total", "DynamoDB requests that failed, by kind of error", labels)
          .Increment();
    }
  }

 private:
  // Fixed after construction; what they refer to synchronises itself.
  prometheus::Registry& registry_;
  const Labels labels_;
  Counter& requests_ =
      counter(registry_, "sluice_dynamodb_requests_total", "HTTP requests to DynamoDB, retries included", labels_);
  Counter& throttles_ =
      counter(registry_, "sluice_dynamodb_throttles_total", "DynamoDB requests that were throttled", labels_);
  Counter& read_units_ =
      counter(registry_, "sluice_dynamodb_read_units_total", "Read capacity units that answers reported", labels_);
  Counter& write_units_ =
      counter(registry_, "sluice_dynamodb_write_units_total", "Write capacity units that answers reported", labels_);
};

void Metrics::dynamodb_request(const std::string& queue, const dynamo::CallRecord& call) {
  Requests* requests = nullptr;
  {
    const MutexLock lock(mutex_);
    auto& known = requests_[{call.operation, queue, call.table}];
    if (!known) {
      known = std::make_unique<Requests>(
          *registry_, Labels{{"operation", call.operation}, {"queue", queue}, {"table", call.table}});
    }
    requests = known.get();
  }
  requests->add(call);
}

Metrics::~Metrics() = default;

void Metrics::collect_from(Figures figures) { figures_.push_back(std::move(figures)); }

std::string Metrics::text() const {
  auto families = registry_->Collect();
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
