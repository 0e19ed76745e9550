#pragma once

#include <optional>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/observe/otlp.hpp"
#include "host/observe/shipper.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::observe {

/// Decides what is traced, and sends its spans off. Thread-safe; never blocks.
class Tracer {
 public:
  /// So many ids after a context's own belong to whoever began it.
  static constexpr std::uint64_t kReserved = 1'000;

  /// All of it outlives the tracer.
  Tracer(const config::TracingConfig& config, Shipper& shipper, Shipper::Destination& lane, const Clock& clock,
         Random& random);

  /// A place of its own in the parent's trace, or in a new one. The span's id is new, and so are kReserved after it.
  TraceContext begin(const std::optional<TraceContext>& parent);
  /// Where its context is sampled.
  void record(const Span& span);

  SteadyTime now() const { return clock_.steady_now(); }

 private:
  bool samples(const TraceId& trace, const std::optional<TraceContext>& parent) const;

  // Fixed after construction.
  const config::TraceSampler sampler_;
  const std::uint64_t bound_;  ///< of the lower half of a trace's id, halved: those below it are sampled
  Shipper& shipper_;
  Shipper::Destination& lane_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace sluice::observe
