#include "host/observe/otlp.hpp"

#include <algorithm>
#include <array>
#include <boost/endian/conversion.hpp>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"

namespace sluice::observe::protobuf {

namespace {

constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kDelimited = 2;
constexpr std::uint32_t kFixed32 = 5;
constexpr unsigned kMostShift = 63;

void append_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

void append_key(std::string& out, std::uint32_t field, std::uint32_t kind) { append_varint(out, field << 3U | kind); }

template <typename Number>
void append_little_endian(std::string& out, Number value) {
  boost::endian::native_to_little_inplace(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::optional<std::uint64_t> take_varint(std::string_view& from) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift <= kMostShift; shift += 7) {
    if (from.empty()) {
      return std::nullopt;
    }
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace

void append_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_key(out, field, kVarint);
  append_varint(out, value);
}

void append_fixed32(std::string& out, std::uint32_t field, std::uint32_t value) {
  append_key(out, field, kFixed32);
  append_little_endian(out, value);
}

void append_fixed64(std::string& out, std::uint32_t field, std::uint64_t value) {
  append_key(out, field, kFixed64);
  append_little_endian(out, value);
}

void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_key(out, field, kDelimited);
  append_varint(out, bytes.size());
  out += bytes;
}

bool read(std::string_view message,
          const std::function<void(std::uint32_t field, std::uint64_t number, std::string_view bytes)>& found) {
  while (!message.empty()) {
    const auto key = take_varint(message);
    if (!key) {
      return false;
    }
    std::optional<std::uint64_t> number = 0;
    std::optional<std::uint64_t> size = 0;
    switch (*key & 7U) {
      case kVarint:
        number = take_varint(message);
        break;
      case kFixed64:
        size = 8;
        break;
      case kDelimited:
        size = take_varint(message);
        break;
      case kFixed32:
        size = 4;
        break;
      default:
        return false;
    }
    if (!number || !size || *size > message.size()) {
      return false;
    }
    found(static_cast<std::uint32_t>(*key >> 3U), *number, message.substr(0, *size));
    message.remove_prefix(*size);
  }
  return true;
}

}  // namespace sluice::observe::protobuf

namespace sluice::observe {

namespace {

using protobuf::append_bytes;
using protobuf::append_fixed32;
using protobuf::append_fixed64;
using protobuf::append_number;

constexpr std::size_t kMostText = 4096;  // of an attribute, or of a reason
constexpr std::uint64_t kStatusError = 2;

// Field numbers, by the message that they are of.
namespace request {
constexpr std::uint32_t kResourceSpans = 1;
}
namespace resource_spans {
constexpr std::uint32_t kResource = 1;
constexpr std::uint32_t kScopeSpans = 2;
}  // namespace resource_spans
namespace scope_spans {
constexpr std::uint32_t kScope = 1;
constexpr std::uint32_t kSpans = 2;
}  // namespace scope_spans
namespace span_field {
constexpr std::uint32_t kTraceId = 1;
constexpr std::uint32_t kSpanId = 2;
constexpr std::uint32_t kTraceState = 3;
constexpr std::uint32_t kParentSpanId = 4;
constexpr std::uint32_t kName = 5;
constexpr std::uint32_t kKind = 6;
constexpr std::uint32_t kStart = 7;
constexpr std::uint32_t kEnd = 8;
constexpr std::uint32_t kAttributes = 9;
constexpr std::uint32_t kStatus = 15;
constexpr std::uint32_t kFlags = 16;
}  // namespace span_field

template <typename Number>
std::string bytes_of(Number number) {
  boost::endian::native_to_big_inplace(number);
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

std::string text_value(std::string_view text) {
  std::string value;
  append_bytes(value, 1, clean_utf8(text, kMostText));
  return value;
}

std::string key_value(std::string_view key, std::string_view any_value) {
  std::string pair;
  append_bytes(pair, 1, key);
  append_bytes(pair, 2, any_value);
  return pair;
}

/// A field's value as OTLP's AnyValue.
std::string any_value(const LogField& field) {
  const std::string_view text = field.value();
  std::string value;
  if (!field.is_bare()) {
    return text_value(text);
  }
  if (text == "true" || text == "false") {
    append_number(value, 2, text == "true" ? 1 : 0);
    return value;
  }
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  append_number(value, 3, static_cast<std::uint64_t>(number));
  return value;
}

std::uint64_t unix_nanoseconds(WallTime time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

/// How many spans the collector did not want, of those that it was sent; and why.
Judgement partial_success(std::string_view response) {
  Judgement judgement;
  protobuf::read(response, [&](std::uint32_t field, std::uint64_t, std::string_view partial) {
    if (field != 1) {
      return;
    }
    protobuf::read(partial, [&](std::uint32_t inner, std::uint64_t number, std::string_view bytes) {
      if (inner == 1) {
        judgement.rejected = static_cast<std::size_t>(number);
      } else if (inner == 2) {
        append_visible(judgement.why, clean_utf8(bytes, 256));
      }
    });
  });
  if (judgement.rejected > 0 && judgement.why.empty()) {
    judgement.why = "the collector rejected them";
  }
  return judgement;
}

/// Over HTTP a batch is a request; over gRPC one unary call, a frame there and a frame and trailers back.
class Otlp final : public Collector {
 public:
  Otlp(const config::TracingConfig& tracing, const LogIdentity& identity)
      : Collector(settings_of(tracing, identity)), grpc_(tracing.protocol == config::TraceProtocol::grpc) {
    std::map<std::string, std::string> attributes = tracing.attributes;
    attributes["service.name"] = tracing.service;
    attributes.emplace("service.version", identity.version);
    attributes.emplace("service.instance.id", identity.host);
    attributes.emplace("host.name", identity.host);
    if (!tracing.environment.empty()) {
      attributes["deployment.environment"] = tracing.environment;
      attributes["deployment.environment.name"] = tracing.environment;
    }
    for (const auto& [name, value] : attributes) {
      append_bytes(resource_, 1, key_value(name, text_value(value)));
    }
    append_bytes(scope_, 1, "sluice");
    append_bytes(scope_, 2, identity.version);
  }

  Judgement judge(const dynamo::HttpResult& result) const override {
    Judgement judgement = Collector::judge(result);
    if (judgement.kind != Judgement::Kind::taken) {
      return judgement;
    }
    return grpc_ ? judge_call(*result) : partial_success(result->body);
  }

 private:
  static Settings settings_of(const config::TracingConfig& tracing, const LogIdentity& identity) {
    const bool grpc = tracing.protocol == config::TraceProtocol::grpc;
    dynamo::Headers headers(tracing.headers.begin(), tracing.headers.end());
    headers.emplace_back("User-Agent", "sluice/" + identity.version);
    headers.emplace_back("Content-Type", grpc ? "application/grpc" : "application/x-protobuf");
    if (grpc) {
      headers.emplace_back("TE", "trailers");
      headers.emplace_back("grpc-timeout", "10S");
    }
    return {.name = "otlp",
            .url = tracing.endpoint + (grpc ? "/opentelemetry.proto.collector.trace.v1.TraceService/Export" : ""),
            .headers = std::move(headers),
            .credential = "headers of [tracing]",
            .again = {429, 502, 503, 504},
            // About a megabyte a batch; collectors take four.
            .limits = {.items = 20'000, .bytes = std::size_t{8} << 20, .batch_items = 4'000}};
  }

  std::string body_of(std::span<const std::string> items, WallTime) const override {
    const std::string message = export_request(items);
    return grpc_ ? '\0' + bytes_of(static_cast<std::uint32_t>(message.size())) + message : message;
  }

  std::string export_request(std::span<const std::string> items) const {
    std::string spans;
    append_bytes(spans, scope_spans::kScope, scope_);
    for (const std::string& item : items) {
      append_bytes(spans, scope_spans::kSpans, item);
    }
    std::string of_resource;
    append_bytes(of_resource, resource_spans::kResource, resource_);
    append_bytes(of_resource, resource_spans::kScopeSpans, spans);
    std::string whole;
    append_bytes(whole, request::kResourceSpans, of_resource);
    return whole;
  }

  /// What the trailers of a call say.
  static Judgement judge_call(const dynamo::HttpResponse& response) {
    const std::string* status = response.header("grpc-status");
    if (status == nullptr) {
      return {Judgement::Kind::again, 0, std::nullopt, "it does not answer as gRPC does; is the port right?"};
    }
    if (*status == "0") {
      constexpr std::size_t kFrameHeader = 5;
      return partial_success(std::string_view(response.body).substr(std::min(kFrameHeader, response.body.size())));
    }
    // CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS; RESOURCE_EXHAUSTED where the
    // collector says that it recovers.
    constexpr std::array<std::string_view, 6> kAgainStatuses{"1", "4", "10", "11", "14", "15"};
    const bool again = std::find(kAgainStatuses.begin(), kAgainStatuses.end(), *status) != kAgainStatuses.end() ||
                       (*status == "8" && response.header("grpc-status-details-bin") != nullptr);
    std::string why = "it answered with gRPC status ";
    append_visible(why, *status);
    if (const std::string* text = response.header("grpc-message")) {
      why += " (";
      append_visible(why, clean_utf8(*text, 256));
      why += ')';
    }
    if (*status == "16" || *status == "7") {
      why += "; are the headers of [tracing] right?";
    }
    return {again ? Judgement::Kind::again : Judgement::Kind::refused, 0, retry_after(response), std::move(why)};
  }

  const bool grpc_;
  std::string resource_;
  std::string scope_;
};

}  // namespace

std::string encode_span(const Span& span, WallTime wall, SteadyTime now) {
  const auto nanoseconds = [&](SteadyTime time) { return unix_nanoseconds(wall - (now - time)); };
  std::string out;
  append_bytes(out, span_field::kTraceId,
               {reinterpret_cast<const char*>(span.context.trace.data()), span.context.trace.size()});
  append_bytes(out, span_field::kSpanId, bytes_of(span.context.span));
  if (!span.state.empty()) {
    append_bytes(out, span_field::kTraceState, span.state);
  }
  if (span.parent != 0) {
    append_bytes(out, span_field::kParentSpanId, bytes_of(span.parent));
  }
  append_bytes(out, span_field::kName, span.name);
  append_number(out, span_field::kKind, static_cast<std::uint64_t>(span.kind));
  append_fixed64(out, span_field::kStart, nanoseconds(span.began));
  append_fixed64(out, span_field::kEnd, nanoseconds(span.ended));
  for (const LogField& field : span.attributes) {
    append_bytes(out, span_field::kAttributes, key_value(field.name(), any_value(field)));
  }
  if (span.failed) {
    std::string status;
    append_bytes(status, 2, clean_utf8(span.reason, kMostText));
    append_number(status, 3, kStatusError);
    append_bytes(out, span_field::kStatus, status);
  }
  append_fixed32(out, span_field::kFlags, span.context.sampled ? 1 : 0);
  return out;
}

std::unique_ptr<Collector> make_otlp(const config::TracingConfig& tracing, const LogIdentity& identity) {
  return std::make_unique<Otlp>(tracing, identity);
}

}  // namespace sluice::observe
