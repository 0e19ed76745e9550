#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "config/config.hpp"
#include "host/observe/collector.hpp"
#include "host/observe/log_encoder.hpp"
#include "host/observe/span.hpp"

/// The OpenTelemetry protocol, as far as it takes to export spans.
namespace sluice::observe {

/// The span as OTLP's message of that name. `wall` and `now` are the same moment on two clocks.
std::string encode_span(const Span& span, WallTime wall, SteadyTime now);

/// A collector of spans, over gRPC or HTTP. Its transport speaks HTTP/2 from the first byte for gRPC.
std::unique_ptr<Collector> make_otlp(const config::TracingConfig& tracing, const LogIdentity& identity);

}  // namespace sluice::observe
