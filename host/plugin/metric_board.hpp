#pragma once

#include <set>
#include <span>

#include "host/plugin/handler_instance.hpp"
#include "sluice/metrics.h"

namespace sluice::plugin {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

/// What a series has come to. A value.
struct SeriesFigures {
  MetricLabels labels;                ///< in the order of their names
  double value = 0;                   ///< of a histogram the sum of what was observed
  std::vector<std::uint64_t> counts;  ///< of a histogram: by bucket, the last one for what is beyond all bounds
};

/// What a metric has come to. A value.
struct MetricFigures {
  std::string name;
  std::string help;
  sluice_metric_kind kind = SLUICE_METRIC_COUNTER;
  std::vector<double> bounds;  ///< of a histogram's buckets
  std::vector<SeriesFigures> series;
};

/// What was said to a series since it was asked last, for the board of another process. A value.
struct MetricChange {
  std::uint32_t number = 0;  ///< of the series: the first one is 0, and each new one is the next
  bool fresh = false;        ///< it is told for the first time, with the next five members
  sluice_metric_kind kind = SLUICE_METRIC_COUNTER;
  std::string name;
  std::string help;
  std::vector<double> bounds;
  MetricLabels labels;
  bool set = false;                   ///< a gauge was set, and `value` is what it shows
  double value = 0;                   ///< otherwise: how much more it is
  std::vector<std::uint64_t> counts;  ///< of a histogram: how many more
};

/// A series that another board has told of. A value.
struct ToldSeries {
  sluice_series* series = nullptr;
  double added = 0;  ///< by the other board to a gauge, beside what it was set to
};

/// "sluice.metrics/1" of one job: all of its instances share one board. Thread-safe. What a plugin holds of it is good
/// for as long as the board lives. What is not taken is said once in the job's log, and counted.
class MetricBoard : boost::noncopyable {
 public:
  MetricBoard(std::string job, HandlerLog log);
  ~MetricBoard();

  // As the functions of sluice_metrics.
  sluice_metric* metric(const sluice_metric_spec& spec) noexcept;
  static sluice_series* series(sluice_metric* metric, const sluice_attribute* labels, std::size_t count) noexcept;
  static void add(sluice_series* series, double value) noexcept;
  static void set(sluice_series* series, double value) noexcept;
  static void observe(sluice_series* series, double value) noexcept;

  /// By name. The series without labels of a metric that is used with labels alone is left out.
  std::vector<MetricFigures> figures() const;
  /// How many values went to nothing, because their metric or series was refused, or they were no good themselves.
  std::uint64_t dropped() const { return dropped_.load(); }
  enum class Complain { of_each, once };
  /// Says in the job's log why what is said to the metric is not shown: once for each metric, or once for all.
  void refuse(std::string_view metric, const std::string& why, Complain often = Complain::of_each)
      SLUICE_EXCLUDES(mutex_);

  /// What has changed since the last call; series that nobody has asked about yet among it.
  std::vector<MetricChange> take_changes();
  /// Takes over what another board has told, in its order; `known`: the series of that board, by number. False for what
  /// makes no sense.
  bool apply(const MetricChange& change, std::vector<ToldSeries>& known);
  /// That board is gone, and what it has added to gauges with it.
  static void forget(const std::vector<ToldSeries>& known) noexcept;

 private:
  struct Series;
  struct Metric;

  sluice_metric* find_or_make(const sluice_metric_spec& spec) SLUICE_EXCLUDES(mutex_);
  sluice_series* find_or_make(Metric& metric, std::span<const sluice_attribute> labels) SLUICE_EXCLUDES(mutex_);

  // Fixed after construction; what they point to synchronises itself.
  const std::string job_;
  const HandlerLog log_;
  const std::unique_ptr<Metric> refused_;  ///< stands for every metric that was not taken
  std::atomic<std::uint64_t> dropped_{0};
  // Guarded by mutex_. Entries stay as long as the board.
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Metric>, std::less<>> metrics_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t series_told_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::set<std::string> complaints_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::plugin
