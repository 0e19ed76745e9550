#include "host/stores/outbox/network/tcp_connect.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace sluice::queue::outbox {

namespace {

Error failure(int code) {
  return {code == ETIMEDOUT ? ErrorCode::timeout : ErrorCode::unavailable,
          std::string("cannot connect: ") + std::strerror(code)};
}

/// How the connection ended up: 0, or an errno.
Result<int> settled(int socket, const Clock& clock, Deadline deadline) {
  pollfd watched{socket, POLLOUT, 0};
  SLUICE_PASS_ON(poll_until(std::span(&watched, 1), clock, deadline));
  int code = 0;
  socklen_t size = sizeof(code);
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size);
  return code;
}

}  // namespace

Result<void> poll_until(std::span<pollfd> watched, const Clock& clock, Deadline deadline) {
  for (;;) {
    const Duration left = deadline.left(clock.steady_now());
    if (left == Duration::zero()) {
      return Error(ErrorCode::timeout, "no answer in time");
    }
    const auto milliseconds =
        std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, std::chrono::hours(1)));
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(milliseconds.count()));
    if (ready > 0) {
      return {};
    }
    if (ready < 0 && errno != EINTR) {
      return Error(ErrorCode::internal, std::string("poll: ") + std::strerror(errno));
    }
  }
}

Result<void> wait_until(std::span<pollfd> watched, const Clock& clock, Deadline deadline) {
  auto ready = poll_until(watched, clock, deadline);
  return ready || ready.error().code() != ErrorCode::timeout ? ready : Result<void>();
}

Result<Descriptor> connect_tcp(const std::string& host, std::uint32_t port, const Clock& clock, Deadline deadline) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int answer = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  if (answer != 0) {
    return Error(ErrorCode::unavailable, std::string("the name is not known: ") + ::gai_strerror(answer));
  }
  Error last(ErrorCode::unavailable, "no address");
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Descriptor socket(::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.open()) {
      last = failure(errno);
      continue;
    }
    const int one = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    int code = ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (code == EINPROGRESS) {
      SLUICE_TRY(end, settled(socket.get(), clock, deadline));
      code = *end;
    }
    if (code == 0) {
      return socket;
    }
    last = failure(code);
  }
  return last;
}

}  // namespace sluice::queue::outbox
