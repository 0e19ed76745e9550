#include "tests/plugins/http_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace sluice::shipped {

std::string answer(const std::string& status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body;
}

/// One connection's bytes, with or without TLS.
class HttpServer::Connection {
 public:
  Connection(int fd, SSL_CTX* tls) : fd_(fd) {
    if (tls != nullptr) {
      ssl_.reset(SSL_new(tls));
      SSL_set_fd(ssl_.get(), fd);
      good_ = SSL_accept(ssl_.get()) == 1;
    }
  }
  bool good() const { return good_; }

  /// Bytes read; 0 or less at the end.
  long read(char* buffer, std::size_t size) {
    return ssl_ ? SSL_read(ssl_.get(), buffer, static_cast<int>(size)) : ::recv(fd_, buffer, size, 0);
  }
  bool write(const std::string& bytes) {
    if (ssl_) {
      return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
    }
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t size = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (size <= 0) {
        return false;
      }
      sent += static_cast<std::size_t>(size);
    }
    return true;
  }

  bool read_request(HttpRequest& request) {
    while (pending_.find("\r\n\r\n") == std::string::npos) {
      if (!more()) {
        return false;
      }
    }
    const std::size_t end = pending_.find("\r\n\r\n") + 4;
    request.head = pending_.substr(0, end);
    pending_.erase(0, end);
    std::string lower = request.head;
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    const std::size_t length = lower.find("\r\ncontent-length: ");
    const std::size_t size = length == std::string::npos ? 0 : std::stoul(lower.substr(length + 18));
    while (pending_.size() < size) {
      if (!more()) {
        return false;
      }
    }
    request.body = pending_.substr(0, size);
    pending_.erase(0, size);
    return true;
  }
  void wait_for_end() {
    while (more()) {
    }
  }

 private:
  bool more() {
    char buffer[16384];
    const long size = read(buffer, sizeof buffer);
    if (size > 0) {
      pending_.append(buffer, static_cast<std::size_t>(size));
    }
    return size > 0;
  }

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  int fd_;
  std::unique_ptr<SSL, Free> ssl_;
  bool good_ = true;
  std::string pending_;
};

HttpServer::HttpServer(Responder responder, std::shared_ptr<SSL_CTX> tls)
    : responder_(std::move(responder)), tls_(std::move(tls)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 128) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port to listen on");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const int fd : open_) {
      ::shutdown(fd, SHUT_RDWR);
    }
  }
  threads_.clear();
  ::close(listener_);
}

std::string HttpServer::url() const {
  return std::string(tls_ ? "https" : "http") + "://127.0.0.1:" + std::to_string(port_) + "/hook";
}

std::vector<HttpRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int HttpServer::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

bool HttpServer::wait_for_requests(std::size_t count) {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, std::chrono::seconds(10), [&] { return requests_.size() >= count; });
}

void HttpServer::accept_all() {
  while (true) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      return;
    }
    const std::lock_guard lock(mutex_);
    open_.push_back(fd);
    const int number = ++connections_;
    threads_.emplace_back([this, fd, number] { serve(fd, number); });
  }
}

void HttpServer::serve(int fd, int number) {
  // TLS writes without regard to it; the client's own SIGPIPE stays deadly, and tested.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  {
    Connection connection(fd, tls_.get());
    HttpRequest request{"", "", number};
    while (responder_ && connection.good() && connection.read_request(request)) {
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      arrived_.notify_all();
      const std::string bytes = responder_(request);
      if (bytes == kHang) {
        connection.wait_for_end();
      }
      if (bytes == kHang || bytes == kHangUp || !connection.write(bytes) ||
          bytes.find("Connection: close") != std::string::npos) {
        break;
      }
    }
  }
  const std::lock_guard lock(mutex_);
  open_.erase(std::remove(open_.begin(), open_.end(), fd), open_.end());
  ::close(fd);
}

}  // namespace sluice::shipped
