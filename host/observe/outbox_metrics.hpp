#pragma once

#include <cstddef>
#include <string>

#include "base/clock.hpp"

namespace sluice::observe {

/// The counters of one outbox. Thread-safe. Lives as long as its Metrics. Types and reasons beyond a number of them are
/// counted as "other", so that no application can fill a collector.
class OutboxMetrics {
 public:
  OutboxMetrics() = default;
  OutboxMetrics(const OutboxMetrics&) = delete;
  OutboxMetrics& operator=(const OutboxMetrics&) = delete;
  virtual ~OutboxMetrics() = default;

  virtual void published(const std::string& type, Duration latency) = 0;
  virtual void failed(const std::string& type, const std::string& reason) = 0;
  virtual void marked(std::size_t rows) = 0;
};

}  // namespace sluice::observe
