#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sluice::shipped {

struct HttpRequest {
  std::string head;  ///< request line and headers, each line with its end
  std::string body;
  int connection = 0;  ///< counted from 1

  bool has(const std::string& header_line) const { return head.find(header_line + "\r\n") != std::string::npos; }
};

/// Answers a request with raw bytes. `kHang`: with nothing at all until the client goes away. After an answer that
/// contains "Connection: close", and after kHangUp, the connection is closed.
using Responder = std::function<std::string(const HttpRequest&)>;
inline const std::string kHang = "(hang)";
inline const std::string kHangUp = "(hang up)";

/// "HTTP/1.1 200 OK", its length, and the body.
std::string answer(const std::string& status, const std::string& body = "", const std::string& headers = "");

/// A server on a free port of the loopback interface; a thread for each connection.
class HttpServer {
 public:
  /// With TLS when `tls` is set. Without a responder every connection is closed before a byte of it is read.
  explicit HttpServer(Responder responder, std::shared_ptr<SSL_CTX> tls = nullptr);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url() const;
  int port() const { return port_; }
  std::vector<HttpRequest> requests() const;
  int connections() const;
  /// Waits for so many requests to have come; false after ten seconds.
  bool wait_for_requests(std::size_t count);

 private:
  class Connection;
  void accept_all();
  void serve(int fd, int number);

  Responder responder_;
  std::shared_ptr<SSL_CTX> tls_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  // Guarded by mutex_.
  std::vector<HttpRequest> requests_;
  std::vector<int> open_;
  int connections_ = 0;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

}  // namespace sluice::shipped
