#pragma once

#include <array>
#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/stores/core/outcomes.hpp"

namespace prometheus {
class Counter;
class Histogram;
class Registry;
}  // namespace prometheus

namespace sluice::dynamo {
struct CallRecord;
}

namespace sluice::observe {

/// What a job has to count at one time. A value.
struct JobCounts {
  std::uint64_t claimed = 0;
  std::array<std::uint64_t, queue::core::kOutcomes> outcomes{};  ///< of attempts, by OutcomeStatus
  std::uint64_t exhausted = 0;                                   ///< messages, by the poison rule
  std::uint64_t duplicates = 0;                                  ///< messages whose key is done
  std::uint64_t timed_out = 0;                                   ///< attempts, stuck ones included
  std::array<std::uint64_t, queue::core::kEndings> endings{};    ///< of messages, by Ending
  std::uint64_t settle_failed = 0;
  std::uint64_t effects_refused = 0;
  std::uint64_t lost = 0;  ///< receipts no longer ours, at settle or extend
  std::uint64_t claim_failed = 0;
  std::vector<std::pair<Duration, std::uint64_t>> handler_times;  ///< attempts took so long each, so many of them
  std::optional<std::size_t> held;                                ///< how many messages it holds, where that changed
};

/// The counters of one job. Thread-safe; a call costs a few microseconds at most and is meant to be made once for a
/// batch. Lives as long as its Metrics.
class JobMetrics : boost::noncopyable {
 public:
  virtual ~JobMetrics() = default;

  virtual void add(const JobCounts& counts) = 0;
  /// How many workers the job is to have, and how many handlers do not return.
  virtual void workers(std::uint64_t configured, std::uint64_t stuck) = 0;
};

/// The counters of one outbox. Thread-safe. Lives as long as its Metrics. Types and reasons beyond a number of them are
/// counted as "other", so that no application can fill a collector.
class OutboxMetrics {
 public:
  OutboxMetrics(prometheus::Registry& registry, std::string outbox);

  void published(const std::string& type, Duration latency);
  void failed(const std::string& type, const std::string& reason);
  void marked(std::size_t rows);
  void excluded(std::uint64_t rows);

 private:
  prometheus::Counter& published_of(const std::string& type);
  /// The name itself, or "other" where there are so many already.
  std::string bounded(std::set<std::string>& known, const std::string& name, std::size_t most);

  prometheus::Registry& registry_;
  const std::string outbox_;
  prometheus::Histogram& latency_;
  prometheus::Histogram& batches_;
  Mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, prometheus::Counter*> published_;  ///< by type
  std::set<std::string> failed_types_;
  std::set<std::string> reasons_;
};

/// A number under its labels. A value.
struct Figure {
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;                                         ///< of a histogram: the sum of what was observed
  std::vector<std::pair<double, std::uint64_t>> buckets{};  ///< of a histogram: up to each bound, the last one for all
};

/// Numbers of one name, for whoever keeps them himself. A value.
struct FigureFamily {
  std::string name;
  std::string help;
  bool counter = false;  ///< it only grows; otherwise a gauge
  std::vector<Figure> figures;
  bool histogram = false;  ///< it is one, and no counter
};

/// Everything that /metrics shows. Thread-safe.
class Metrics : boost::noncopyable {
 public:
  Metrics();
  ~Metrics();

  /// The counters of a job; the same object for the same names.
  JobMetrics& job(const std::string& job, const std::string& queue);
  /// Those of an outbox; the same object for the same name.
  OutboxMetrics& outbox(const std::string& name);

  /// One HTTP attempt of the DynamoDB client, for this queue.
  void dynamodb_request(const std::string& queue, const dynamo::CallRecord& call);
  /// Datagrams that came to wake this host: "rung", or why one was worth nothing.
  void wake_datagrams(std::string_view result, std::uint64_t count);

  /// Asked for its figures whenever the text is. Before the first text.
  using Figures = std::function<std::vector<FigureFamily>()>;
  void collect_from(Figures figures);

  /// The Prometheus text format.
  std::string text() const;

 private:
  class PrometheusJob;
  class Requests;

  // Synchronises itself.
  const std::unique_ptr<prometheus::Registry> registry_;
  // Fixed before the first text.
  std::vector<Figures> figures_;
  // Entries stay for ever, so references to them may leave the lock.
  Mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<PrometheusJob>> by_job_ SLUICE_GUARDED_BY(mutex_);
  /// By operation, queue and table.
  std::map<std::tuple<std::string, std::string, std::string>, std::unique_ptr<Requests>> requests_
      SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<OutboxMetrics>> outboxes_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::observe
