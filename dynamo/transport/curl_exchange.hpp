#pragma once

// Private to this folder: the only header that includes libcurl's.

#include <curl/curl.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

struct CurlTransportOptions;

/// A request that waits for its turn.
struct PendingRequest {
  HttpRequest request;
  Deadline deadline;
  HttpTransport::Callback done;
};

/// One easy handle with the request it carries. Reused for one request after another. Touched only by the I/O thread.
class CurlExchange {
 public:
  /// `options` must outlive the exchange; `no_proxy` is a comma-separated list of hosts.
  CurlExchange(const CurlTransportOptions& options, const std::string& no_proxy);
  ~CurlExchange();
  CurlExchange(const CurlExchange&) = delete;
  CurlExchange& operator=(const CurlExchange&) = delete;

  CURL* handle() const { return handle_; }
  static CurlExchange& of(CURL* handle);

  /// Takes a request on. An Error when libcurl refuses it (nothing was sent then).
  Result<void> begin(PendingRequest pending, SteadyTime now);
  /// What the transfer came to; the exchange is free for the next request afterwards.
  HttpResult finish(CURLcode code, SteadyTime now);
  /// What a stop makes of it.
  HttpResult cancel();
  HttpTransport::Callback take_callback();

 private:
  void set_up(const std::string& no_proxy);
  Result<void> apply(SteadyTime now);
  void release();
  bool may_have_been_sent() const;
  Error describe(CURLcode code, SteadyTime now) const;
  std::string connect_failure(CURLcode code) const;

  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static int on_send(void* self, char* remote_ip, char* local_ip, int remote_port, int local_port);
  std::size_t add_header(std::string_view line);
  long bytes_sent() const;

  const CurlTransportOptions& options_;
  CURL* handle_;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  std::string last_url_;

  PendingRequest pending_{{}, Deadline::never(), {}};
  curl_slist* headers_ = nullptr;
  HttpResponse response_;
  std::size_t header_bytes_ = 0;
  Duration time_allowed_{};
  long sent_before_ = 0;  ///< bytes that went to a proxy before the request itself
  bool sending_ = false;  ///< a connection is up and the request is about to go out, or has gone
  bool too_large_ = false;
};

/// "https://host:port" of a URL: what messages name.
std::string origin_of(std::string_view url);

}  // namespace sluice::dynamo
