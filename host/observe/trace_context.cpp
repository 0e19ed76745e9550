#include "host/observe/trace_context.hpp"

#include <algorithm>

namespace sluice::observe {

namespace {

constexpr std::size_t kLength = 55;           // of version 00
constexpr std::size_t kMostTraceState = 512;  // what W3C asks everybody to carry at least

int digit_of(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// Lower-case hexadecimal digits alone, as a number; nothing otherwise.
std::optional<std::uint64_t> number_of(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char c : digits) {
    const int digit = digit_of(c);
    if (digit < 0) {
      return std::nullopt;
    }
    number = number << 4U | static_cast<std::uint64_t>(digit);
  }
  return number;
}

void append_hex(std::string& out, std::uint64_t number, int digits) {
  constexpr const char* kDigits = "0123456789abcdef";
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) {
    out += kDigits[number >> static_cast<unsigned>(shift) & 0xfU];
  }
}

std::uint64_t half(const TraceId& trace, std::size_t begin) {
  std::uint64_t number = 0;
  for (std::size_t i = begin; i < begin + 8; ++i) {
    number = number << 8U | trace[i];
  }
  return number;
}

}  // namespace

thread_local const TraceContext* TraceScope::current_ = nullptr;

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') {
    return std::nullopt;
  }
  const auto version = number_of(text.substr(0, 2));
  const auto high = number_of(text.substr(3, 16));
  const auto low = number_of(text.substr(19, 16));
  const auto span = number_of(text.substr(36, 16));
  const auto flags = number_of(text.substr(53, 2));
  if (!version || !high || !low || !span || !flags || *version == 0xff || *span == 0 || (*high == 0 && *low == 0)) {
    return std::nullopt;
  }
  // What a later version appends begins with a dash.
  if (text.size() > kLength && (*version == 0 || text[kLength] != '-')) {
    return std::nullopt;
  }
  TraceContext context;
  for (std::size_t i = 0; i < 8; ++i) {
    const unsigned shift = static_cast<unsigned>(7 - i) * 8;
    context.trace[i] = static_cast<std::uint8_t>(*high >> shift);
    context.trace[i + 8] = static_cast<std::uint8_t>(*low >> shift);
  }
  context.span = *span;
  context.sampled = (*flags & 1U) != 0;
  return context;
}

std::string format_traceparent(const TraceContext& context) {
  std::string text = "00-";
  text.reserve(kLength);
  append_hex(text, half(context.trace, 0), 16);
  append_hex(text, half(context.trace, 8), 16);
  text += '-';
  append_hex(text, context.span, 16);
  text += context.sampled ? "-01" : "-00";
  return text;
}

std::string_view usable_tracestate(std::string_view text) {
  const bool clean = std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return clean && text.size() <= kMostTraceState ? text : std::string_view();
}

std::string hex_of(const TraceId& trace) {
  std::string text;
  append_hex(text, half(trace, 0), 16);
  append_hex(text, half(trace, 8), 16);
  return text;
}

std::string hex_of(std::uint64_t span) {
  std::string text;
  append_hex(text, span, 16);
  return text;
}

std::uint64_t low_half(const TraceId& trace) { return half(trace, 8); }

}  // namespace sluice::observe
