#include "host/queue/wake/datagram_socket.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace sluice::queue::wake {
namespace {

Descriptor make_socket(int family) {
  return Descriptor(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Error listen_error(const Address& address, int code) {
  const std::string where = "cannot listen on " + address.text() + " (udp): ";
  switch (code) {
    case EADDRINUSE:
      return {ErrorCode::conflict,
              where +
                  "the port is in use; choose another in [wake] listen, or end the process that has it (`ss -lnup` "
                  "names it)"};
    case EACCES:
      return {ErrorCode::denied,
              where + "not permitted; ports below 1024 need a privilege, choose a higher one in [wake] listen"};
    case EADDRNOTAVAIL:
      return {ErrorCode::invalid, where +
                                      "this machine has no such address; [wake] listen names one of its own, or "
                                      "\"0.0.0.0:PORT\" for all of them"};
    default:
      return {ErrorCode::unavailable, where + std::generic_category().message(code)};
  }
}

}  // namespace

bool DatagramSender::send(const Address& to, std::string_view bytes) {
  Descriptor& socket = to.family() == AF_INET6 ? v6_ : v4_;
  if (!socket.open()) {
    socket = make_socket(to.family());
  }
  const auto sent = ::sendto(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL, to.data(), to.size());
  return sent == static_cast<ssize_t>(bytes.size());
}

Result<DatagramListener> DatagramListener::open(const Address& address) {
  Descriptor socket = make_socket(address.family());
  if (!socket.open() || ::bind(socket.get(), address.data(), address.size()) != 0) {
    return listen_error(address, errno);
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  Descriptor interrupter(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!interrupter.open() || ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return listen_error(address, errno);
  }
  return DatagramListener(Address::of(bound), std::move(socket), std::move(interrupter));
}

void DatagramListener::wait(int milliseconds) {
  std::array<pollfd, 2> watched{{{socket_.get(), POLLIN, 0}, {interrupter_.get(), POLLIN, 0}}};
  ::poll(watched.data(), watched.size(), milliseconds);
  if ((watched[1].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    static_cast<void>(::read(interrupter_.get(), &count, sizeof(count)));
  }
}

std::optional<std::string_view> DatagramListener::take() {
  const auto size = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
  return size < 0 ? std::nullopt : std::optional(std::string_view(buffer_.data(), static_cast<std::size_t>(size)));
}

void DatagramListener::interrupt() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(interrupter_.get(), &one, sizeof(one)));
}

}  // namespace sluice::queue::wake
