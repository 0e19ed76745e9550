#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/detail/metric_rules.hpp"
#include "sluice/metrics.hpp"

namespace sluice::detail {

/// "sluice.metrics/1" for a test, with the host's own rules. Thread-safe.
class TestMetrics {
 public:
  /// `refused` is told what is not taken, and why.
  explicit TestMetrics(std::function<void(const std::string& text)> refused)
      : refused_(std::move(refused)), nothing_{*this, 0, {}, {}} {}
  TestMetrics(const TestMetrics&) = delete;
  TestMetrics& operator=(const TestMetrics&) = delete;

  sluice_metric* metric(const sluice_metric_spec& spec) {
    const std::lock_guard lock(mutex_);
    std::string why = metric_refusal(spec);
    const std::string name(view(spec.name));
    if (why.empty()) {
      const auto buckets = buckets_of(spec);
      const auto [found, fresh] =
          metrics_.try_emplace(name, Metric{*this, spec.kind, {buckets.begin(), buckets.end()}, {}});
      why = metric_clash(found->second.kind, found->second.buckets, spec);
      if (why.empty()) {
        return reinterpret_cast<sluice_metric*>(&found->second);
      }
    }
    refused_("the metric \"" + name + "\" is not shown: " + why);
    return reinterpret_cast<sluice_metric*>(&nothing_);
  }

  static sluice_series* series(sluice_metric* metric, const sluice_attribute* labels, std::size_t count) {
    Metric& of = *reinterpret_cast<Metric*>(metric);
    const std::lock_guard lock(of.owner.mutex_);
    const std::string why = label_refusal({labels, count});
    if (!why.empty()) {
      of.owner.refused_("a series is not shown: " + why);
    }
    Metric& at = why.empty() ? of : of.owner.nothing_;
    std::map<std::string, std::string> known;
    for (std::size_t i = 0; i < count; ++i) {
      known.emplace(view(labels[i].name), view(labels[i].value));
    }
    drop_empty(known);
    return reinterpret_cast<sluice_series*>(&at.series.try_emplace(std::move(known), Series{at, 0, {}}).first->second);
  }
  static void add(sluice_series* series, double value) {
    record(series, [value](Series& of) {
      if (takes_addition(of.metric.kind, value)) {
        of.value += value;
      }
    });
  }
  static void set(sluice_series* series, double value) {
    record(series, [value](Series& of) {
      if (of.metric.kind == SLUICE_METRIC_GAUGE) {
        of.value = value;
      }
    });
  }
  static void observe(sluice_series* series, double value) {
    record(series, [value](Series& of) {
      if (of.metric.kind == SLUICE_METRIC_HISTOGRAM && !std::isnan(value)) {
        of.observed.push_back(value);
      }
    });
  }

  /// A counter's or a gauge's value, or how much a histogram has observed; 0 where nothing was said to these labels.
  /// Throws when there is no metric of that name.
  double value(std::string_view name, Labels labels) const {
    const std::lock_guard lock(mutex_);
    const Series* const found = find(name, labels);
    return found == nullptr                                ? 0
           : found->metric.kind == SLUICE_METRIC_HISTOGRAM ? static_cast<double>(found->observed.size())
                                                           : found->value;
  }
  std::vector<double> observed(std::string_view name, Labels labels) const {
    const std::lock_guard lock(mutex_);
    const Series* const found = find(name, labels);
    return found == nullptr ? std::vector<double>() : found->observed;
  }

 private:
  struct Metric;
  struct Series {
    Metric& metric;
    double value = 0;
    std::vector<double> observed;
  };
  struct Metric {
    TestMetrics& owner;
    sluice_metric_kind kind;  ///< 0: it was refused
    std::vector<double> buckets;
    std::map<std::map<std::string, std::string>, Series> series;
  };

  /// A label without a value is none.
  static void drop_empty(std::map<std::string, std::string>& labels) {
    std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  }
  template <typename Change>
  static void record(sluice_series* series, Change change) {
    Series& of = *reinterpret_cast<Series*>(series);
    const std::lock_guard lock(of.metric.owner.mutex_);
    change(of);
  }
  const Series* find(std::string_view name, Labels labels) const {
    const auto metric = metrics_.find(name);
    if (metric == metrics_.end()) {
      throw std::out_of_range("the handler has no metric \"" + std::string(name) + "\"");
    }
    std::map<std::string, std::string> known;
    for (const Label& label : labels) {
      known.emplace(label.name, label.value);
    }
    drop_empty(known);
    const auto series = metric->second.series.find(known);
    return series == metric->second.series.end() ? nullptr : &series->second;
  }

  const std::function<void(const std::string& text)> refused_;
  mutable std::mutex mutex_;
  // Guarded by mutex_. Entries stay.
  std::map<std::string, Metric, std::less<>> metrics_;
  Metric nothing_;
};

}  // namespace sluice::detail
