#include "tests/support/dynamodb_model/server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

namespace sluice::test::model {
namespace {

// The requests of one connection, one after the other.
class RequestReader {
 public:
  explicit RequestReader(int socket) : socket_(socket) {}

  std::optional<dynamo::HttpRequest> next() {
    std::size_t head = 0;
    while ((head = pending_.find("\r\n\r\n")) == std::string::npos) {
      if (!more()) {
        return std::nullopt;
      }
    }
    dynamo::HttpRequest request;
    std::size_t size = 0;
    for (std::size_t at = pending_.find("\r\n") + 2; at < head + 2;) {
      const std::size_t end = pending_.find("\r\n", at);
      const std::string line = pending_.substr(at, end - at);
      at = end + 2;
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos) {
        continue;
      }
      std::string name = line.substr(0, colon);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      const std::size_t start = line.find_first_not_of(' ', colon + 1);
      std::string value = start == std::string::npos ? "" : line.substr(start);
      if (name == "content-length") {
        std::from_chars(value.data(), value.data() + value.size(), size);
      }
      request.headers.emplace_back(std::move(name), std::move(value));
    }
    pending_.erase(0, head + 4);
    while (pending_.size() < size) {
      if (!more()) {
        return std::nullopt;
      }
    }
    request.body = pending_.substr(0, size);
    pending_.erase(0, size);
    return request;
  }

 private:
  bool more() {
    char buffer[16384];
    const ssize_t size = ::recv(socket_, buffer, sizeof buffer, 0);
    if (size > 0) {
      pending_.append(buffer, static_cast<std::size_t>(size));
    }
    return size > 0;
  }

  int socket_;
  std::string pending_;
};

bool send_all(int socket, const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t size = ::send(socket, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (size <= 0) {
      return false;
    }
    sent += static_cast<std::size_t>(size);
  }
  return true;
}

std::string wire_text(const dynamo::HttpResponse& response) {
  std::string out =
      "HTTP/1.1 " + std::to_string(response.status) + (response.status == 200 ? " OK" : " Error") + "\r\n";
  for (const auto& [name, value] : response.headers) {
    out += name + ": " + value + "\r\n";
  }
  return out + "content-length: " + std::to_string(response.body.size()) + "\r\n\r\n" + response.body;
}

}  // namespace

ModelServer::ModelServer(Model& model, const Clock& clock, int port)
    : model_(model), clock_(clock), listener_(listen_on_loopback(port)), port_(local_port(listener_)) {
  acceptor_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
}

ModelServer::~ModelServer() {
  acceptor_.request_stop();
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  std::list<Connection> rest;
  {
    const MutexLock lock(mutex_);
    for (Connection& connection : connections_) {
      connection.thread.request_stop();
      ::shutdown(connection.socket.get(), SHUT_RDWR);
    }
    rest.swap(connections_);
  }
  rest.clear();  // joins
}

void ModelServer::accept_all(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      return;
    }
    const MutexLock lock(mutex_);
    connections_.remove_if([](const Connection& connection) { return connection.ended; });
    Connection& connection = connections_.emplace_back();
    connection.socket.reset(socket);
    connection.thread = std::jthread([this, &connection](const std::stop_token& inner) { serve(inner, connection); });
  }
}

void ModelServer::serve(const std::stop_token& stop, Connection& connection) {
  RequestReader reader(connection.socket.get());
  while (const auto request = reader.next()) {
    if (!answer(stop, connection.socket.get(), *request)) {
      break;
    }
  }
  ::shutdown(connection.socket.get(), SHUT_RDWR);
  const MutexLock lock(mutex_);
  connection.ended = true;
}

bool ModelServer::answer(const std::stop_token& stop, int socket, const dynamo::HttpRequest& request) {
  const ModelAnswer answer = model_.handle(request);
  wait(stop, answer.latency);
  if (answer.delivery != ModelAnswer::Delivery::answered) {
    return false;
  }
  return !stop.stop_requested() && send_all(socket, wire_text(answer.response));
}

void ModelServer::wait(const std::stop_token& stop, Duration span) {
  if (span <= Duration::zero()) {
    return;
  }
  const MutexLock lock(mutex_);
  stopped_.wait_until(mutex_, stop, clock_.steady_now() + span, [] { return false; });
}

}  // namespace sluice::test::model
