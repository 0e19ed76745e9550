#include "tests/support/tcp_gate.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>

namespace sluice::test {
namespace {

constexpr int kDripIntervalMs = 1;

/// The length of the first whole HTTP message in `text`; 0 while it is not whole.
std::size_t message_length(const std::string& text) {
  const auto end = text.find("\r\n\r\n");
  if (end == std::string::npos) {
    return 0;
  }
  std::size_t body = 0;
  for (const char* name : {"\r\nContent-Length:", "\r\ncontent-length:"}) {
    const auto found = text.find(name);
    if (found < end) {
      body = std::strtoul(text.c_str() + found + std::string(name).size(), nullptr, 10);
    }
  }
  const std::size_t whole = end + 4 + body;
  return text.size() >= whole ? whole : 0;
}

bool send_all(const Descriptor& socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool receive_some(const Descriptor& socket, std::string& into) {
  std::array<char, 65536> buffer{};
  const auto count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
  if (count > 0) {
    into.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return count > 0;
}

/// Makes the close that follows a reset.
void reset(Descriptor& socket) {
  const linger now{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  socket.reset();
}

}  // namespace

TcpGate::TcpGate(Responder responder)
    : responder_(std::move(responder)), wake_(::eventfd(0, EFD_CLOEXEC)), listener_(listen_on_loopback()) {
  port_ = local_port(listener_);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

TcpGate::~TcpGate() {
  thread_.request_stop();
  wake();
  thread_.join();
}

std::string TcpGate::response(int status, const std::string& body, const std::string& extra_headers) {
  return "HTTP/1.1 " + std::to_string(status) + " Said\r\n" + extra_headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TcpGate::Responder TcpGate::forward_to(int port) {
  return [port](const std::string& request) {
    const Descriptor upstream = connect_to_loopback(port);
    std::string answer;
    if (!upstream || !send_all(upstream, request)) {
      return response(502, "the server behind the gate is away");
    }
    while (message_length(answer) == 0 && receive_some(upstream, answer)) {
    }
    return answer;
  };
}

void TcpGate::break_next(Fault fault, int times) {
  const MutexLock lock(mutex_);
  fault_ = fault;
  fault_times_ = times;
}

void TcpGate::close() {
  MutexLock lock(mutex_);
  want_open_ = false;
  wake();
  changed_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_NO_TSA { return !is_open_; });
}

void TcpGate::open() {
  MutexLock lock(mutex_);
  want_open_ = true;
  wake();
  changed_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_NO_TSA { return is_open_; });
}

std::size_t TcpGate::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

std::size_t TcpGate::connections() const {
  const MutexLock lock(mutex_);
  return connections_;
}

std::string TcpGate::last_request() const {
  const MutexLock lock(mutex_);
  return last_request_;
}

void TcpGate::wait_for_requests(std::size_t count) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_NO_TSA { return requests_ >= count; });
}

void TcpGate::wake() { ::eventfd_write(wake_.get(), 1); }

Fault TcpGate::take_fault(bool accepting) {
  const MutexLock lock(mutex_);
  if (fault_times_ == 0 || accepting != (fault_ == Fault::reset_on_accept)) {
    return Fault::none;
  }
  --fault_times_;
  return fault_;
}

void TcpGate::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> watched = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    bool dripping = false;
    for (const auto& [fd, connection] : open_connections_) {
      watched.push_back({fd, POLLIN, 0});
      dripping = dripping || !connection.outgoing.empty();
    }
    ::poll(watched.data(), watched.size(), dripping ? kDripIntervalMs : -1);
    if ((watched[0].revents & POLLIN) != 0) {
      eventfd_t count = 0;
      ::eventfd_read(wake_.get(), &count);
      const MutexLock lock(mutex_);
      if (want_open_ && !is_open_) {
        listener_ = listen_on_loopback(port_);
      } else if (!want_open_ && is_open_) {
        listener_.reset();
        for (auto& [fd, connection] : open_connections_) {
          reset(connection.socket);
        }
        open_connections_.clear();
      }
      is_open_ = want_open_;
      changed_.notify_all();
      continue;
    }
    if ((watched[1].revents & POLLIN) != 0) {
      accept_one();
    }
    for (std::size_t i = 2; i < watched.size(); ++i) {
      Connection& connection = open_connections_.at(watched[i].fd);
      const bool readable = (watched[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
      if ((readable && !serve(connection)) || !drip(connection)) {
        open_connections_.erase(watched[i].fd);
      }
    }
  }
}

void TcpGate::accept_one() {
  Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    ++connections_;
  }
  if (take_fault(true) == Fault::reset_on_accept) {
    reset(socket);
    return;
  }
  const int fd = socket.get();
  open_connections_.emplace(fd, Connection{std::move(socket), {}, {}, false});
}

/// False when the connection is over.
bool TcpGate::serve(Connection& connection) {
  if (!receive_some(connection.socket, connection.incoming)) {
    return false;
  }
  for (std::size_t size = 0; (size = message_length(connection.incoming)) != 0 && !connection.stalled;) {
    const std::string request = connection.incoming.substr(0, size);
    connection.incoming.erase(0, size);
    if (!answer(connection, request)) {
      return false;
    }
  }
  return true;
}

bool TcpGate::answer(Connection& connection, const std::string& request) {
  {
    const MutexLock lock(mutex_);
    ++requests_;
    last_request_ = request;
    changed_.notify_all();
  }
  const Fault fault = take_fault(false);
  std::string text = responder_(request);
  const auto body = text.find("\r\n\r\n") + 4;
  switch (fault) {
    case Fault::none:
    case Fault::reset_on_accept:
      return send_all(connection.socket, text);
    case Fault::stall:
      connection.stalled = true;
      return true;
    case Fault::reset_after_request:
      reset(connection.socket);
      return false;
    case Fault::close_after_request:
      return false;
    case Fault::cut_in_body:
      send_all(connection.socket, std::string_view(text).substr(0, body + (text.size() - body) / 2));
      connection.socket.reset();
      return false;
    case Fault::corrupt:
      text[body + (text.size() - body) / 2] ^= 1;
      return send_all(connection.socket, text);
    case Fault::garbage:
      return send_all(connection.socket, "220 mail.example.org ESMTP\r\n\r\n");
    case Fault::endless_header:
      return send_all(connection.socket, "HTTP/1.1 200 OK\r\nX-Long: " + std::string(std::size_t{4} << 20U, 'x'));
    case Fault::drip:
      connection.outgoing = std::move(text);
      return true;
  }
  return false;
}

/// Sends one byte of what drips; false when the connection is over.
bool TcpGate::drip(Connection& connection) {
  if (connection.outgoing.empty()) {
    return true;
  }
  const bool sent = send_all(connection.socket, connection.outgoing.substr(0, 1));
  connection.outgoing.erase(0, 1);
  return sent;
}

}  // namespace sluice::test
