#pragma once

#include "dynamo/transport/curl_transport.hpp"
#include "host/observe/log_senders.hpp"
#include "host/observe/metrics.hpp"
#include "host/observe/shipper.hpp"
#include "host/observe/tracer.hpp"

namespace sluice::runtime {

/// What leaves the process of what it tells of itself: log lines for services, spans for a collector. Nothing where the
/// host file asks for none. Thread-safe; whatever the collectors do, nobody waits for them but `flush`.
class Telemetry : boost::noncopyable {
 public:
  struct Parts {
    const config::HostConfig& config;
    std::string host;  ///< its name
    std::string version;
    observe::Log& log;
    const Clock& clock;
    Random& random;
  };

  /// Begins to send lines of the log. Fails without a file that it needs, or a thread. All parts outlive it.
  static Result<std::unique_ptr<Telemetry>> open(const Parts& parts);
  /// What has not been sent by then is dropped.
  ~Telemetry();

  /// Null: nothing is traced.
  observe::Tracer* tracer() { return tracer_.get(); }
  /// Has what waits sent, and waits for that until then. What was not sent is logged.
  void flush(SteadyTime until);
  /// Of each collector.
  std::vector<observe::SenderStatus> statuses() const { return shipper_.statuses(); }

 private:
  explicit Telemetry(const Parts& parts);
  Result<void> begin(const Parts& parts);
  void add_senders(const Parts& parts, const observe::LogIdentity& identity);
  void add_tracer(const Parts& parts, const observe::LogIdentity& identity);

  // Fixed once it has begun.
  observe::Log& log_;
  observe::Shipper shipper_;
  // After the shipper, so that nobody answers it any more when it goes.
  std::unique_ptr<dynamo::CurlTransport> to_services_;
  std::unique_ptr<dynamo::CurlTransport> to_collector_;
  std::unique_ptr<observe::LogSenders> senders_;
  std::unique_ptr<observe::Tracer> tracer_;
};

}  // namespace sluice::runtime
