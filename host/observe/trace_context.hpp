#pragma once

#include <array>
#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::observe {

/// The names of the attributes in which a message carries its trace, as W3C has them as headers.
inline constexpr std::string_view kTraceParent = "traceparent";
inline constexpr std::string_view kTraceState = "tracestate";

using TraceId = std::array<std::uint8_t, 16>;

/// Where in which trace something happens: what a `traceparent` says. A value.
struct TraceContext {
  TraceId trace{};
  std::uint64_t span = 0;
  bool sampled = false;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

/// Reads "00-<trace id>-<span id>-<flags>" as W3C Trace Context asks: lower-case hexadecimal, no id of zeros, a higher
/// version by what it has in common with this one. Nothing for anything else.
std::optional<TraceContext> parse_traceparent(std::string_view text);
std::string format_traceparent(const TraceContext& context);

/// What of a `tracestate` may be carried on: nothing of one that is too long or has other characters than it may.
std::string_view usable_tracestate(std::string_view text);

/// 32 and 16 digits.
std::string hex_of(const TraceId& trace);
std::string hex_of(std::uint64_t span);
/// The lower half of a trace's id, which is all that some systems know of it.
std::uint64_t low_half(const TraceId& trace);

/// Says for a scope what the current thread is at, so that its log lines can tell. A resource.
class TraceScope : boost::noncopyable {
 public:
  explicit TraceScope(const TraceContext& context) : context_(context), before_(current_) { current_ = &context_; }
  ~TraceScope() { current_ = before_; }

  /// Null: nothing that is traced.
  static const TraceContext* current() { return current_; }

 private:
  static thread_local const TraceContext* current_;
  const TraceContext context_;
  const TraceContext* const before_;
};

}  // namespace sluice::observe
