#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "sluice/abi.h"
#include "sluice/message.hpp"
#include "sluice/metrics.h"

namespace sluice {

/// A label of a series, as in `{"colour", "red"}`.
using Label = Attribute;
using Labels = std::initializer_list<Label>;

namespace detail {

/// A metric, and the series of it that is meant where no labels are given. Does nothing where the host has no metrics.
class Metric {
 public:
  Metric() = default;
  Metric(const sluice_host& host, const sluice_metrics* table, const sluice_metric_spec& spec)
      : table_(table), metric_(table == nullptr ? nullptr : table->metric(&host, &spec)), series_(find({})) {}

  Metric with(Labels labels) const {
    Metric one = *this;
    one.series_ = find(labels);
    return one;
  }
  void add(double value) const {
    if (table_ != nullptr) {
      table_->add(series_, value);
    }
  }
  void set(double value) const {
    if (table_ != nullptr) {
      table_->set(series_, value);
    }
  }
  void observe(double value) const {
    if (table_ != nullptr) {
      table_->observe(series_, value);
    }
  }

 private:
  sluice_series* find(Labels labels) const {
    if (table_ == nullptr) {
      return nullptr;
    }
    // One more than the host takes, so that it can say so.
    std::array<sluice_attribute, SLUICE_METRIC_LABELS + 1> raw{};
    const std::size_t count = std::min(labels.size(), raw.size());
    std::transform(labels.begin(), labels.begin() + count, raw.begin(), [](const Label& label) {
      return sluice_attribute{borrow(label.name), borrow(label.value)};
    });
    return table_->series(metric_, raw.data(), count);
  }

  const sluice_metrics* table_ = nullptr;
  sluice_metric* metric_ = nullptr;
  sluice_series* series_ = nullptr;
};

}  // namespace detail

// The metrics of a plugin, in the host's /metrics as sluice_plugin_<name>. Small values, made by sluice::Host when the
// handler is made; copies are valid until the handler's destructor has returned. Thread-safe. `add`, `set` and
// `observe` without labels cost some nanoseconds and no memory; with labels the series is looked up first, which `with`
// does once for all. On a host without metrics they do nothing.

/// Only grows.
class Counter {
 public:
  Counter() = default;
  explicit Counter(detail::Metric metric) : metric_(metric) {}

  void add(double count = 1) const { metric_.add(count); }
  void add(double count, Labels labels) const { metric_.with(labels).add(count); }
  Counter with(Labels labels) const { return Counter(metric_.with(labels)); }

 private:
  detail::Metric metric_;
};

/// Goes up and down.
class Gauge {
 public:
  Gauge() = default;
  explicit Gauge(detail::Metric metric) : metric_(metric) {}

  void set(double value) const { metric_.set(value); }
  void set(double value, Labels labels) const { metric_.with(labels).set(value); }
  void add(double value) const { metric_.add(value); }
  void add(double value, Labels labels) const { metric_.with(labels).add(value); }
  Gauge with(Labels labels) const { return Gauge(metric_.with(labels)); }

 private:
  detail::Metric metric_;
};

/// Counts values by size.
class Histogram {
 public:
  Histogram() = default;
  explicit Histogram(detail::Metric metric) : metric_(metric) {}

  void observe(double value) const { metric_.observe(value); }
  void observe(double value, Labels labels) const { metric_.with(labels).observe(value); }
  Histogram with(Labels labels) const { return Histogram(metric_.with(labels)); }

 private:
  detail::Metric metric_;
};

}  // namespace sluice
