#include "host/runtime/telemetry.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "host/observe/otlp.hpp"

namespace sluice::runtime {

namespace {

/// One request at a time goes to each collector.
constexpr std::size_t kConnections = 4;
constexpr std::size_t kMostAnswerBytes = std::size_t{64} << 10;

dynamo::CurlTransportOptions transport_options() {
  dynamo::CurlTransportOptions options;
  options.max_connections = kConnections;
  options.max_body_bytes = kMostAnswerBytes;
  return options;
}

}  // namespace

Telemetry::Telemetry(const Parts& parts)
    : log_(parts.log),
      // A line about a sender must not go to the senders.
      shipper_(parts.clock, parts.random,
               [&log = parts.log](const std::string& text) { log.write_here(observe::LogLevel::warn, text); }) {}

Telemetry::~Telemetry() {
  log_.tap(nullptr);
  shipper_.stop();
}

Result<std::unique_ptr<Telemetry>> Telemetry::open(const Parts& parts) {
  std::unique_ptr<Telemetry> made(new Telemetry(parts));
  SLUICE_PASS_ON(made->begin(parts));
  return made;
}

Result<void> Telemetry::begin(const Parts& parts) {
  const config::HostConfig& config = parts.config;
  const observe::LogIdentity identity{parts.host, parts.version};
  parts.log.decorate(observe::datadog_members(config.datadog, identity));
  if (config.log_senders.empty() && !config.tracing) {
    return {};
  }
  if (config.tracing && !config.tracing->ca.empty() && ::access(config.tracing->ca.c_str(), R_OK) != 0) {
    return Error(ErrorCode::invalid, "cannot read " + config.tracing->ca + ": " + std::strerror(errno) +
                                         "; mend 'ca' in [tracing] of " + config.file);
  }
  if (config.tracing) {
    add_tracer(parts, identity);
  }
  if (!config.log_senders.empty()) {
    add_senders(parts, identity);
  }
  SLUICE_PASS_ON(shipper_.start());
  if (senders_) {
    log_.tap(senders_.get());
  }
  return {};
}

void Telemetry::add_senders(const Parts& parts, const observe::LogIdentity& identity) {
  to_services_ = std::make_unique<dynamo::CurlTransport>(parts.clock, transport_options());
  to_services_->start();
  std::vector<observe::LogSenders::Member> members;
  for (const config::LogSender& sender : parts.config.log_senders) {
    auto service = observe::make_log_service(sender, identity, parts.random);
    const observe::LogService* encoder = service.get();
    members.push_back({encoder, &shipper_.add(std::move(service), *to_services_)});
  }
  senders_ = std::make_unique<observe::LogSenders>(shipper_, parts.clock, parts.random, std::move(members));
}

void Telemetry::add_tracer(const Parts& parts, const observe::LogIdentity& identity) {
  const config::TracingConfig& tracing = *parts.config.tracing;
  dynamo::CurlTransportOptions options = transport_options();
  options.ca_file = tracing.ca;
  options.http2 = tracing.protocol == config::TraceProtocol::grpc;
  to_collector_ = std::make_unique<dynamo::CurlTransport>(parts.clock, options);
  to_collector_->start();
  observe::Shipper::Destination& destination = shipper_.add(observe::make_otlp(tracing, identity), *to_collector_);
  tracer_ = std::make_unique<observe::Tracer>(tracing, shipper_, destination, parts.clock, parts.random);
}

void Telemetry::flush(SteadyTime until) {
  if (shipper_.flush(until)) {
    return;
  }
  for (const observe::SenderStatus& status : shipper_.statuses()) {
    if (status.figures.waiting > 0) {
      log_.write_here(observe::LogLevel::warn, std::to_string(status.figures.waiting) + " items for " + status.name +
                                                   " were not sent before the end" +
                                                   (status.trouble.empty() ? "" : ": " + status.trouble));
    }
  }
}

}  // namespace sluice::runtime
