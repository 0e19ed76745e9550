#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "config/config.hpp"
#include "host/observe/log.hpp"
#include "host/observe/shipper.hpp"
#include "host/observe/trace_context.hpp"

/// As much of Protocol Buffers' wire format as OTLP takes. Appends to, and reads, plain strings of bytes.
namespace sluice::observe::protobuf {

/// Of kind varint: enumerations, truths and integers. Zero is written too.
void append_number(std::string& out, std::uint32_t field, std::uint64_t value);
void append_fixed32(std::string& out, std::uint32_t field, std::uint32_t value);
void append_fixed64(std::string& out, std::uint32_t field, std::uint64_t value);
/// Of kind length-delimited: texts, bytes and messages.
void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes);

/// Calls for each field of a message: with its number, and its value as a number or as bytes, whichever it is. False:
/// the bytes are no message; what was read before has been told.
bool read(std::string_view message,
          const std::function<void(std::uint32_t field, std::uint64_t number, std::string_view bytes)>& found);

}  // namespace sluice::observe::protobuf

/// The OpenTelemetry protocol, as far as it takes to export spans.
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

/// The span as OTLP's message of that name. `wall` and `now` are the same moment on two clocks.
std::string encode_span(const Span& span, WallTime wall, SteadyTime now);

/// A collector of spans, over gRPC or HTTP. Its transport speaks HTTP/2 from the first byte for gRPC.
std::unique_ptr<Collector> make_otlp(const config::TracingConfig& tracing, const LogIdentity& identity);

}  // namespace sluice::observe
