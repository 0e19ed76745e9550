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

/// A metric of a plugin, in the host's /metrics as sluice_plugin_<name>. A small value, made by sluice::Host when the
/// handler is made; copies are valid until the handler's destructor has returned. Thread-safe. `add`, `set` and
/// `observe` without labels cost some nanoseconds and no memory; with labels the series is looked up first, which
/// `with` does once for all. On a host without metrics they do nothing.
template <sluice_metric_kind kind>
class Metric {
 public:
  Metric() = default;
  Metric(const sluice_host& host, const sluice_metrics* table, const sluice_metric_spec& spec)
      : table_(table), metric_(table == nullptr ? nullptr : table->metric(&host, &spec)), series_(find({})) {}

  void add(double value = 1) const requires(kind != SLUICE_METRIC_HISTOGRAM) {
    if (table_ != nullptr) {
      table_->add(series_, value);
    }
  }
  void add(double value, Labels labels) const requires(kind != SLUICE_METRIC_HISTOGRAM) { with(labels).add(value); }
  void set(double value) const requires(kind == SLUICE_METRIC_GAUGE) {
    if (table_ != nullptr) {
      table_->set(series_, value);
    }
  }
  void set(double value, Labels labels) const requires(kind == SLUICE_METRIC_GAUGE) { with(labels).set(value); }
  void observe(double value) const requires(kind == SLUICE_METRIC_HISTOGRAM) {
    if (table_ != nullptr) {
      table_->observe(series_, value);
    }
  }
  void observe(double value, Labels labels) const requires(kind == SLUICE_METRIC_HISTOGRAM) {
    with(labels).observe(value);
  }
  /// The series with these labels.
  Metric with(Labels labels) const {
    Metric one = *this;
    one.series_ = find(labels);
    return one;
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
  sluice_series* series_ = nullptr;  ///< the one that is meant where no labels are given
};

}  // namespace detail

using Counter = detail::Metric<SLUICE_METRIC_COUNTER>;      ///< only grows
using Gauge = detail::Metric<SLUICE_METRIC_GAUGE>;          ///< goes up and down
using Histogram = detail::Metric<SLUICE_METRIC_HISTOGRAM>;  ///< counts values by size

}  // namespace sluice
