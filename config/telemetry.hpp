#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

/// Where a host's log lines and traces go beside standard error. Included by config.hpp alone.
namespace sluice::config {

enum class LogLevel { trace, debug, info, warn, error };
/// What stands on standard error; `datadog` is JSON with the names that Datadog's agent looks for.
enum class LogFormat { text, json, datadog };

enum class SenderKind { rollbar, sentry, datadog };

/// A service that log lines are sent to: [log.rollbar], [log.sentry] or [log.datadog]. A value.
struct LogSender {
  SenderKind kind = SenderKind::sentry;
  LogLevel level = LogLevel::warn;
  std::string secret;    ///< the token, the DSN or the API key: never to be shown
  std::string endpoint;  ///< "https://host[:port]"; empty for sentry, whose DSN has it
  std::string environment;
  std::string service;
  std::map<std::string, std::string> tags;
  double sample_rate = 1;           ///< the share of lines that is sent
  bool send_default_pii = false;    ///< what may tell who somebody is goes out too: host names and message ids
  std::vector<std::string> ignore;  ///< lines that contain one of these are not sent

  friend bool operator==(const LogSender&, const LogSender&) = default;
};

/// What Datadog wants to find in every line of its format.
struct DatadogFormat {
  std::string service = "sluice";
  std::string environment;
  std::map<std::string, std::string> tags;

  friend bool operator==(const DatadogFormat&, const DatadogFormat&) = default;
};

enum class TraceProtocol { grpc, http };
enum class TraceSampler { always, never, ratio, parent };

/// Where spans go: [tracing]. A value.
struct TracingConfig {
  std::string endpoint;  ///< "http://host:port", and for HTTP a path
  TraceProtocol protocol = TraceProtocol::grpc;
  TraceSampler sampler = TraceSampler::parent;
  double ratio = 1;  ///< of traces that begin here; with sampler ratio of all
  std::string service = "sluice";
  std::string environment;
  std::map<std::string, std::string> attributes;  ///< of the resource
  std::map<std::string, std::string> headers;     ///< values are never to be shown
  std::string ca;                                 ///< PEM file; empty: the machine's authorities

  friend bool operator==(const TracingConfig&, const TracingConfig&) = default;
};

}  // namespace sluice::config
