#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::observe {

/// The counters of one sender of log lines or spans. Thread-safe. Lives as long as its Metrics.
class SenderMetrics {
 public:
  SenderMetrics() = default;
  SenderMetrics(const SenderMetrics&) = delete;
  SenderMetrics& operator=(const SenderMetrics&) = delete;
  virtual ~SenderMetrics() = default;

  virtual void sent(std::uint64_t count) = 0;
  virtual void dropped(std::uint64_t count) = 0;
  virtual void failed(std::uint64_t requests) = 0;
  virtual void waiting(std::size_t now) = 0;
};

}  // namespace sluice::observe
