#include "host/observe/tracer.hpp"

#include <algorithm>
#include <limits>

namespace sluice::observe {

namespace {

constexpr double kHalfRange = 0x1.0p63;

}  // namespace

Tracer::Tracer(const config::TracingConfig& config, Shipper& shipper, Shipper::Destination& lane, const Clock& clock,
               Random& random)
    : sampler_(config.sampler),
      bound_(static_cast<std::uint64_t>(std::min(config.ratio, 1.0) * kHalfRange)),
      shipper_(shipper),
      lane_(lane),
      clock_(clock),
      random_(random) {}

TraceContext Tracer::begin(const std::optional<TraceContext>& parent) {
  TraceContext context;
  if (parent) {
    context.trace = parent->trace;
  } else {
    for (std::size_t i = 0; i < context.trace.size(); i += 8) {
      const std::uint64_t bits = random_.next();
      for (std::size_t byte = 0; byte < 8; ++byte) {
        context.trace[i + byte] = static_cast<std::uint8_t>(bits >> (8 * byte));
      }
    }
    context.trace.back() |= 1U;  // never zeros alone
  }
  context.span = 1 + random_.next() % (std::numeric_limits<std::uint64_t>::max() - kReserved);
  context.sampled = samples(context.trace, parent);
  return context;
}

bool Tracer::samples(const TraceId& trace, const std::optional<TraceContext>& parent) const {
  switch (sampler_) {
    case config::TraceSampler::always:
      return true;
    case config::TraceSampler::never:
      return false;
    case config::TraceSampler::parent:
      if (parent) {
        return parent->sampled;
      }
      break;
    case config::TraceSampler::ratio:
      break;
  }
  // By the id, so that all who see a trace decide alike.
  return (low_half(trace) >> 1U) < bound_;
}

void Tracer::record(const Span& span) {
  if (span.context.sampled) {
    shipper_.put(lane_, encode_span(span, clock_.wall_now(), clock_.steady_now()));
  }
}

}  // namespace sluice::observe
