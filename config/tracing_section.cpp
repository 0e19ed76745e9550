#include "config/tracing_section.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "config/files.hpp"
#include "config/plain_reads.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::array<Choice<TraceProtocol>, 2> kProtocols{
    {{"grpc", TraceProtocol::grpc}, {"http", TraceProtocol::http}}};
constexpr std::array<Choice<TraceSampler>, 4> kSamplers{{{"always", TraceSampler::always},
                                                         {"never", TraceSampler::never},
                                                         {"ratio", TraceSampler::ratio},
                                                         {"parent", TraceSampler::parent}}};

constexpr const char* kExpected =
    "where an OTLP collector listens, such as \"http://localhost:4317\" or "
    "\"https://collector.example.com:4318/v1/traces\"";

/// "host:port" is what other OTLP programs call it, and is not encrypted there either.
std::string with_scheme(const std::string& text) {
  return text.find("://") == std::string::npos ? "http://" + text : text;
}

const char* collector_complaint(const std::string& text) {
  return !text.empty() && is_http_url(with_scheme(text), true) ? nullptr : kExpected;
}

/// With the protocol's own port, and for HTTP its own path, where none are given.
std::string completed(const std::string& text, TraceProtocol protocol) {
  std::string url = with_scheme(text);
  const std::size_t host = url.find("://") + 3;
  const std::size_t path = std::min(url.find('/', host), url.size());
  const std::string_view authority = std::string_view(url).substr(host, path - host);
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  std::string tail = url.substr(path);
  if (tail.empty() || tail == "/") {
    tail = protocol == TraceProtocol::http ? "/v1/traces" : "";
  }
  std::string port;
  if (colon == std::string_view::npos) {
    port = protocol == TraceProtocol::http ? ":4318" : ":4317";
  }
  return url.substr(0, path) + port + tail;
}

bool is_header_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '_' || c == '.'; });
}

void check_headers(Section& tracing, Reader& reader, TracingConfig& read) {
  for (const auto& [name, value] : read.headers) {
    if (!is_header_name(name)) {
      reader.error(tracing.find("headers")->value.place,
                   tracing.naming("headers") + "must have names of letters, digits, '-', '_' and '.'; it has \"" +
                       abridged(name) + "\"");
    }
  }
}

}  // namespace

void read_tracing(Section tracing, Reader& reader, HostConfig& config) {
  if (!tracing.present()) {
    return;
  }
  TracingConfig read;
  const Member* endpoint =
      tracing.require("endpoint", "say where the collector is, as in endpoint = \"http://localhost:4317\"");
  read_url(tracing, reader, "endpoint", read.endpoint, collector_complaint);
  tracing.read("protocol", read.protocol, kProtocols);
  tracing.read("sampler", read.sampler, kSamplers);
  read_share(tracing, reader, "ratio", read.ratio);
  const Member* ratio = tracing.find("ratio");
  if (ratio != nullptr && (read.sampler == TraceSampler::always || read.sampler == TraceSampler::never)) {
    reader.error(ratio->place,
                 tracing.naming("ratio") + "goes with sampler = \"ratio\" or \"parent\" only; leave it out");
  }
  tracing.read("service", read.service, label_complaint);
  tracing.read("environment", read.environment, label_complaint);
  read_texts(tracing, reader, "attributes", read.attributes);
  read_texts(tracing, reader, "headers", read.headers);
  check_headers(tracing, reader, read);
  tracing.read("ca", read.ca, path_complaint);
  if (!read.ca.empty()) {
    read.ca = resolve_path(read.ca, config.file);
  }
  if (endpoint != nullptr && !read.endpoint.empty()) {
    const bool has_path =
        with_scheme(read.endpoint).find('/', with_scheme(read.endpoint).find("://") + 3) != std::string::npos;
    if (read.protocol == TraceProtocol::grpc && has_path) {
      reader.error(
          endpoint->value.place,
          tracing.naming("endpoint") + "has a path, which gRPC has none of; leave it out, or say protocol = \"http\"");
    }
    read.endpoint = completed(read.endpoint, read.protocol);
  }
  config.tracing = std::move(read);
}

}  // namespace sluice::config
