#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

struct CurlTransportOptions {
  std::size_t max_connections = 32;                  ///< requests beyond it wait for one that ends
  std::size_t max_waiting = 10'000;                  ///< requests beyond it are refused
  std::size_t max_header_bytes = 64 * 1024;          ///< of an answer
  std::size_t max_body_bytes = 64ULL * 1024 * 1024;  ///< of an answer
  Duration max_idle = std::chrono::seconds(50);      ///< DynamoDB cuts idle connections from 60 s on
  std::string ca_file;                               ///< PEM file of trusted authorities; empty: the machine's
  bool http2 = false;                                ///< HTTP/2 from the first byte, as gRPC has it
};

/// HTTP/1.1, or HTTP/2, by libcurl, on one I/O thread, over kept-alive connections. TLS is always verified; redirects
/// are not followed; bodies arrive as they were sent (no gzip); a request is never repeated.
///
/// Thread-safe. Proxies come from the usual environment variables, except for the machine's own metadata addresses.
/// Callbacks run on the I/O thread, or on the caller's when a request cannot even be queued. A resource.
class CurlTransport final : public HttpTransport {
 public:
  /// The clock must outlive the transport. Throws std::runtime_error when libcurl cannot be set up.
  explicit CurlTransport(const Clock& clock, CurlTransportOptions options = {});
  ~CurlTransport() override;

  /// Starts the I/O thread. Idempotent; requests before it are refused. After a stop it stays stopped.
  void start();
  /// Ends every request with ErrorKind::cancelled, refuses new ones and waits for the thread. Idempotent, from any
  /// thread but not from a callback.
  void stop();

  void send(HttpRequest request, Deadline deadline, Callback done) override;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sluice::dynamo
