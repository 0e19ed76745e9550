#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "sluice/message.hpp"
#include "sluice/metrics.h"

/// What "sluice.metrics/1" takes, for the host and for the test kit.
namespace sluice::detail {

inline constexpr std::size_t kMetricNameLimit = 64;
inline constexpr std::size_t kMetricTextLimit = 256;  ///< of a help text, and of a label's value
/// Upper bounds in seconds, for a histogram that names none.
inline constexpr std::array<double, 14> kMetricSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                       0.25,  0.5,    1,     2.5,  5,     10,   60};

/// None for what is no histogram.
inline std::span<const double> buckets_of(const sluice_metric_spec& spec) {
  if (spec.kind != SLUICE_METRIC_HISTOGRAM) {
    return {};
  }
  return spec.buckets == nullptr ? std::span<const double>(kMetricSeconds)
                                 : std::span<const double>(spec.buckets, spec.bucket_count);
}

inline const char* kind_name(sluice_metric_kind kind) {
  return kind == SLUICE_METRIC_COUNTER ? "counter" : kind == SLUICE_METRIC_GAUGE ? "gauge" : "histogram";
}

inline bool is_metric_word(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() <= kMetricNameLimit && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [letter](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// Why such a metric is not taken; empty: it is.
inline std::string metric_refusal(const sluice_metric_spec& spec) {
  const std::string_view name = view(spec.name);
  if (spec.struct_size < sizeof(sluice_metric_spec) || spec.kind < SLUICE_METRIC_COUNTER ||
      spec.kind > SLUICE_METRIC_HISTOGRAM) {
    return "its description is of no known kind: a defect of the plugin";
  }
  if (!is_metric_word(name)) {
    return "its name must be 1 to 64 letters, digits and '_' that begin with no digit";
  }
  for (const std::string_view ending : {"_bucket", "_count", "_sum"}) {
    if (name.ends_with(ending)) {
      return "its name must not end in \"" + std::string(ending) + "\", which histograms use for their parts";
    }
  }
  if (spec.kind != SLUICE_METRIC_HISTOGRAM) {
    return {};
  }
  const std::span<const double> buckets = buckets_of(spec);
  const bool rising = std::adjacent_find(buckets.begin(), buckets.end(),
                                         [](double one, double next) { return !(one < next); }) == buckets.end();
  const bool finite = std::all_of(buckets.begin(), buckets.end(), [](double bound) { return std::isfinite(bound); });
  return !buckets.empty() && buckets.size() <= SLUICE_METRIC_BUCKETS && rising && finite
             ? std::string()
             : "its buckets must be 1 to " + std::to_string(SLUICE_METRIC_BUCKETS) + " finite numbers that rise";
}

/// Why it is not taken beside one of its name that is of this kind and has these buckets; empty: it is the same one.
inline std::string metric_clash(sluice_metric_kind kind, std::span<const double> buckets,
                                const sluice_metric_spec& spec) {
  if (kind != spec.kind) {
    return "it is a " + std::string(kind_name(kind)) + " already, and no " + kind_name(spec.kind) +
           "; give one of them another name";
  }
  const std::span<const double> wanted = buckets_of(spec);
  return std::equal(buckets.begin(), buckets.end(), wanted.begin(), wanted.end())
             ? std::string()
             : "it is there already with other buckets; give one of them another name";
}

/// Whether such a value may be added to a metric of this kind.
inline bool takes_addition(sluice_metric_kind kind, double value) {
  return kind == SLUICE_METRIC_GAUGE || (kind == SLUICE_METRIC_COUNTER && value >= 0 && std::isfinite(value));
}

/// Why a series with such labels is not taken; empty: it is.
inline std::string label_refusal(std::span<const sluice_attribute> labels) {
  if (labels.size() > SLUICE_METRIC_LABELS) {
    return "it has more than " + std::to_string(SLUICE_METRIC_LABELS) + " labels";
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::string_view name = view(labels[i].name);
    if (!is_metric_word(name) || name.starts_with("__")) {
      return "a label's name must be 1 to 64 letters, digits and '_' that begin with no digit and not with \"__\"";
    }
    for (const std::string_view taken : {"job", "sluice_job", "le", "quantile"}) {
      if (name == taken) {
        return "the label \"" + std::string(taken) + "\" is not the plugin's to give: name it otherwise";
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (view(labels[j].name) == name) {
        return "the label \"" + std::string(name) + "\" is given twice";
      }
    }
  }
  return {};
}

}  // namespace sluice::detail
