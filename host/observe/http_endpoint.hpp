#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "host/runtime/service.hpp"

namespace sluice::observe {

/// A part of the host, or what it works with, and how it fares. A value.
struct Component {
  std::string name;
  bool ok = true;
  std::string text;  ///< one line
};

/// What a probe answers: HTTP 200 when ok, 503 otherwise, with the text as the body.
struct ProbeResult {
  bool ok = true;
  std::string text;                     ///< one line, such as "ready" or "draining"
  std::vector<Component> components{};  ///< told beside it
};

/// Its text, and below it a line for each component.
std::string probe_text(const ProbeResult& result);
/// `{"status":"ok","text":"ready","components":{"store":{"status":"ok","text":"ok"}}}`, or "failing".
std::string probe_json(const ProbeResult& result);

/// An answer in JSON. A value.
struct HttpReply {
  unsigned status = 200;
  std::string json;
};

/// Where the answers come from. Called on the endpoint's thread, one at a time; they must be quick and must not throw.
struct HttpHandlers {
  std::function<ProbeResult()> health;   ///< /healthz
  std::function<ProbeResult()> ready;    ///< /readyz
  std::function<std::string()> metrics;  ///< /metrics, in the Prometheus text format
  /// /scale/QUEUE, for autoscalers; may be empty.
  std::function<HttpReply(std::string_view queue)> scale{};
};

/// The host's HTTP side: GET and HEAD of /healthz, /readyz, /metrics and /scale/QUEUE, one request a
/// connection. A probe answers with its text, and below it a line for each component; as JSON where the request accepts
/// that alone, or asks for `?format=json`.
///
/// One thread that sleeps while nobody asks. Clients cannot hurt it: a request has five seconds and 8 KiB of header, an
/// answer five seconds to be taken, and the oldest of too many connections makes room for the newest.
class HttpEndpoint : public runtime::Service {
 public:
  /// Binds and listens at once, so that a port in use is known before the host starts; answers begin with `start()`.
  /// `listen` is "host:port", "[v6 address]:port" or ":port" for all interfaces; port 0 picks a free one. Errors are of
  /// code `invalid` (text), `conflict` (in use), `denied` or `unavailable`.
  static Result<std::unique_ptr<HttpEndpoint>> open(const std::string& listen, HttpHandlers handlers);

  /// What it listens on, with the real port: "127.0.0.1:9464".
  virtual std::string address() const = 0;
  // A stop closes all connections, whatever their clients are at.
};

/// What a host answered. A value.
struct ProbeAnswer {
  int status = 0;    ///< of HTTP
  std::string text;  ///< the body
};

/// Asks the host that listens on `listen`, written as in `[http] listen`, for `path`. An address that means every
/// interface is asked on the loopback. An error, `unavailable`, when nobody answers within `patience`. From any thread.
Result<ProbeAnswer> probe(const std::string& listen, const std::string& path, std::chrono::milliseconds patience);

}  // namespace sluice::observe
