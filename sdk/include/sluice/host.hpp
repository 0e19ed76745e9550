#pragma once

#include <string_view>

#include "sluice/abi.h"
#include "sluice/effects.hpp"
#include "sluice/health.h"
#include "sluice/message.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

/// The host as one handler instance sees it: its log, for lines that belong to no message. A value; copies stay valid
/// until the handler's destructor has returned. Thread-safe, also for threads that the handler started itself.
class Host {
 public:
  explicit Host(const sluice_host& host) : host_(&host) {}

  /// The job this instance works for.
  std::string_view job() const { return detail::view(host_->job); }

  /// What the job's handlers can have committed with a message, so that one that needs a store can say so when it is
  /// made; `none` also for a host that is older than effects.
  Store store() const {
    const auto* found = extension<sluice_effects_host>(SLUICE_EFFECTS_1);
    return found == nullptr ? Store::none : detail::store_named(found->store);
  }

  void trace(std::string_view text) const { log(SLUICE_LOG_TRACE, text); }
  void debug(std::string_view text) const { log(SLUICE_LOG_DEBUG, text); }
  void info(std::string_view text) const { log(SLUICE_LOG_INFO, text); }
  void warn(std::string_view text) const { log(SLUICE_LOG_WARN, text); }
  void error(std::string_view text) const { log(SLUICE_LOG_ERROR, text); }
  void log(sluice_log_level level, std::string_view text) const { host_->log(host_, level, detail::borrow(text)); }

  /// Says how something that the handler works with fares, such as its "broker", in one line: the host shows it as a
  /// component of its health. Say it when it changes; what is said last of a part stands until the handler is
  /// destroyed.
  void health(std::string_view part, bool works, std::string_view text) const {
    if (const auto* found = extension<sluice_health>(SLUICE_HEALTH_1)) {
      found->report(host_, detail::borrow(part), works ? 1 : 0, detail::borrow(text));
    }
  }
  /// Whether anybody hears what `health` says: not a host that is older, or that only tries whether the handler can be
  /// made.
  bool shows_health() const { return extension<sluice_health>(SLUICE_HEALTH_1) != nullptr; }

  /// A metric of the plugin's own, in the host's /metrics as sluice_plugin_<name>, with a label that names the job.
  /// Best made once, in the handler's constructor; one of the same name is the same metric. See metrics.hpp.
  Counter counter(std::string_view name, std::string_view help) const {
    return metric<SLUICE_METRIC_COUNTER>(name, help, {});
  }
  Gauge gauge(std::string_view name, std::string_view help) const {
    return metric<SLUICE_METRIC_GAUGE>(name, help, {});
  }
  /// `buckets`: upper bounds that rise; without them those that suit seconds.
  Histogram histogram(std::string_view name, std::string_view help, std::initializer_list<double> buckets = {}) const {
    return metric<SLUICE_METRIC_HISTOGRAM>(name, help, buckets);
  }

  /// A feature beyond the core, by its id, such as "sluice.metrics/1"; null when this host does not have it. `Feature`
  /// is the C struct that the feature's header defines.
  template <typename Feature>
  const Feature* extension(const char* id) const {
    return static_cast<const Feature*>(host_->extension(host_, id));
  }

 private:
  template <sluice_metric_kind kind>
  detail::Metric<kind> metric(std::string_view name, std::string_view help,
                              std::initializer_list<double> buckets) const {
    return {*host_,
            extension<sluice_metrics>(SLUICE_METRICS_1),
            {sizeof(sluice_metric_spec), kind, detail::borrow(name), detail::borrow(help),
             buckets.size() == 0 ? nullptr : buckets.begin(), buckets.size()}};
  }

  const sluice_host* host_;
};

}  // namespace sluice
