#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>
#include <set>
#include <string>

#include "base/mutex.hpp"
#include "host/observe/outbox_metrics.hpp"

namespace sluice::observe {

/// An outbox's counters in a registry, which outlives it.
class PrometheusOutbox final : public OutboxMetrics {
 public:
  PrometheusOutbox(prometheus::Registry& registry, const std::string& outbox);

  void published(const std::string& type, Duration latency) override;
  void failed(const std::string& type, const std::string& reason) override;
  void marked(std::size_t rows) override { batches_.Observe(static_cast<double>(rows)); }

 private:
  // Fixed after construction; what they refer to synchronises itself.
  const std::string outbox_;
  prometheus::Family<prometheus::Counter>& published_;
  prometheus::Family<prometheus::Counter>& failed_;
  prometheus::Histogram& latency_;
  prometheus::Histogram& batches_;

  Mutex mutex_;
  std::map<std::string, prometheus::Counter*> by_type_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::string> failed_types_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::string> reasons_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::observe
