#include "host/stores/outbox/network/tcp_connect.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>

#include "base/resolver.hpp"

namespace sluice::queue::outbox {

namespace {

using Tcp = boost::asio::ip::tcp;

Error failure(int code) {
  return {code == ETIMEDOUT ? ErrorCode::timeout : ErrorCode::unavailable,
          std::string("cannot connect: ") + std::strerror(code)};
}

Result<Descriptor> connect_to(const Tcp::endpoint& place, const Clock& clock, Deadline deadline) {
  Descriptor socket(::socket(place.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) {
    return failure(errno);
  }
  const int one = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
  int code = ::connect(socket.get(), place.data(), static_cast<socklen_t>(place.size())) == 0 ? 0 : errno;
  if (code == EINPROGRESS) {
    pollfd watched{socket.get(), POLLOUT, 0};
    SLUICE_PASS_ON(poll_until(std::span(&watched, 1), clock, deadline));
    socklen_t size = sizeof(code);
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size);
  }
  return code == 0 ? Result<Descriptor>(std::move(socket)) : failure(code);
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

Result<Descriptor> connect_tcp(const std::string& host, std::uint32_t port, const Clock& clock, Deadline deadline) {
  SLUICE_TRY(addresses, addresses_of(host, clock, deadline));
  return first_reached(*addresses, clock, deadline, [&](const std::string& address, Deadline until) {
    return connect_to({boost::asio::ip::make_address(address), static_cast<std::uint16_t>(port)}, clock, until);
  });
}

}  // namespace sluice::queue::outbox
