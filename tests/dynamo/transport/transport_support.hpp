#pragma once

#include <future>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "dynamo/transport/curl_transport.hpp"
#include "tests/support/tcp_gate.hpp"

namespace sluice::dynamo {

/// A running transport with the machine's clock.
struct RunningTransport {
  explicit RunningTransport(CurlTransportOptions options = {}) : transport(clock, std::move(options)) {
    transport.start();
  }

  std::future<HttpResult> send(HttpRequest request, Duration allowed = std::chrono::seconds(20)) {
    auto promise = std::make_shared<std::promise<HttpResult>>();
    auto future = promise->get_future();
    transport.send(std::move(request), Deadline::after(clock, allowed),
                   [promise](HttpResult result) { promise->set_value(std::move(result)); });
    return future;
  }
  HttpResult post(const std::string& url, std::string body = "{}", Duration allowed = std::chrono::seconds(20)) {
    HttpRequest request;
    request.url = url;
    request.body = std::move(body);
    return send(std::move(request), allowed).get();
  }

  SystemClock clock;
  CurlTransport transport;
};

/// A gate that answers every request with 200 and its body.
inline std::unique_ptr<test::TcpGate> echo_gate() {
  return std::make_unique<test::TcpGate>([](const std::string& request) {
    return test::TcpGate::response(200, request.substr(request.find("\r\n\r\n") + 4));
  });
}

}  // namespace sluice::dynamo
