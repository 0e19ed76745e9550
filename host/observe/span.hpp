#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/clock.hpp"
#include "host/observe/log.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::observe {

/// OTLP's numbers.
enum class SpanKind : std::uint8_t { internal = 1, server = 2, client = 3, producer = 4, consumer = 5 };

/// Something that took time and has ended, as it is recorded. Borrows its texts for the call that it is handed to.
struct Span {
  TraceContext context;
  std::uint64_t parent = 0;  ///< 0: it begins its trace
  std::string_view state{};  ///< the trace's state, as it came
  std::string_view name;
  SpanKind kind = SpanKind::internal;
  SteadyTime began{};
  SteadyTime ended{};
  bool failed = false;
  std::string_view reason{};  ///< why, where it failed
  std::initializer_list<LogField> attributes{};
};

}  // namespace sluice::observe
