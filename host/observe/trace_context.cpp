#include "host/observe/trace_context.hpp"

#include <algorithm>
#include <boost/endian/conversion.hpp>

#include "base/text/hex.hpp"

namespace sluice::observe {

namespace {

constexpr std::size_t kLength = 55;           // of version 00
constexpr std::size_t kMostTraceState = 512;  // what W3C asks everybody to carry at least

/// The eight bytes there, highest first, as a number.
std::uint64_t number_of(const void* bytes) {
  return boost::endian::load_big_u64(static_cast<const unsigned char*>(bytes));
}

}  // namespace

thread_local const TraceContext* TraceScope::current_ = nullptr;

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  const auto version = from_hex(text.substr(0, 2));
  const auto trace = from_hex(text.substr(3, 32));
  const auto span = from_hex(text.substr(36, 16));
  const auto flags = from_hex(text.substr(53, 2));
  if (!version || !trace || !span || !flags || *version == "\xff" || number_of(span->data()) == 0 ||
      std::all_of(trace->begin(), trace->end(), [](char byte) { return byte == 0; })) {
    return std::nullopt;
  }
  // What a later version appends begins with a dash.
  if (text.size() > kLength && (version->front() == 0 || text[kLength] != '-')) {
    return std::nullopt;
  }
  TraceContext context;
  std::copy(trace->begin(), trace->end(), context.trace.begin());
  context.span = number_of(span->data());
  context.sampled = (static_cast<unsigned char>(flags->front()) & 1U) != 0;
  return context;
}

std::string format_traceparent(const TraceContext& context) {
  return "00-" + hex_of(context.trace) + "-" + hex_of(context.span) + (context.sampled ? "-01" : "-00");
}

std::string_view usable_tracestate(std::string_view text) {
  const bool clean = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return clean && text.size() <= kMostTraceState ? text : std::string_view();
}

std::string hex_of(const TraceId& trace) { return to_hex(trace); }

std::string hex_of(std::uint64_t span) { return hex_digits(span, 16); }

std::uint64_t low_half(const TraceId& trace) { return number_of(trace.data() + 8); }

}  // namespace sluice::observe
