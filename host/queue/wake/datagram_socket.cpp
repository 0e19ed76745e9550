#include "host/queue/wake/datagram_socket.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace sluice::queue::wake {

namespace {

struct Parts {
  std::string host;  ///< without brackets
  bool bracketed = false;
  std::uint16_t port = 0;
};

std::optional<Parts> split(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  Parts parts{.host = std::string(text.substr(0, colon))};
  const std::string_view port = text.substr(colon + 1);
  const auto [rest, failed] = std::from_chars(port.data(), port.data() + port.size(), parts.port);
  if (port.empty() || failed != std::errc() || rest != port.data() + port.size()) {
    return std::nullopt;
  }
  if (parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']') {
    parts.bracketed = true;
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  const bool inner_colon = parts.host.find(':') != std::string::npos;
  return parts.host.empty() || inner_colon != parts.bracketed ? std::nullopt : std::optional(parts);
}

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

std::optional<Address> Address::parse(std::string_view text) {
  const auto parts = split(text);
  if (!parts) {
    return std::nullopt;
  }
  Address address;
  if (parts->bracketed) {
    address.storage_.ss_family = AF_INET6;
    if (::inet_pton(AF_INET6, parts->host.c_str(), &address.v6().sin6_addr) != 1) {
      return std::nullopt;
    }
  } else {
    address.storage_.ss_family = AF_INET;
    if (::inet_pton(AF_INET, parts->host.c_str(), &address.v4().sin_addr) != 1) {
      return std::nullopt;
    }
  }
  address.set_port(parts->port);
  return address;
}

Result<Address> Address::resolve(const std::string& text) {
  if (const auto numeric = parse(text)) {
    return *numeric;
  }
  const auto parts = split(text);
  if (!parts) {
    return Error(ErrorCode::invalid, "\"" + text + "\" is no \"host:port\"");
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* raw = nullptr;
  const int failed = ::getaddrinfo(parts->host.c_str(), nullptr, &hints, &raw);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, &::freeaddrinfo);
  if (failed != 0 || !found) {
    return Error(ErrorCode::unavailable, "the name " + parts->host + " has no address: " + ::gai_strerror(failed));
  }
  Address address;
  std::memcpy(&address.storage_, found->ai_addr, std::min<std::size_t>(found->ai_addrlen, sizeof(address.storage_)));
  address.set_port(parts->port);
  return address;
}

Address Address::of(const sockaddr_storage& storage) {
  Address address;
  address.storage_ = storage;
  return address;
}

std::string Address::text() const {
  std::array<char, INET6_ADDRSTRLEN> host{};
  const bool six = family() == AF_INET6;
  const void* bytes = six ? static_cast<const void*>(&v6().sin6_addr) : &v4().sin_addr;
  ::inet_ntop(family(), bytes, host.data(), host.size());
  const std::string name = host.data();
  return (six ? "[" + name + "]" : name) + ":" + std::to_string(port());
}

std::uint16_t Address::port() const { return ntohs(family() == AF_INET6 ? v6().sin6_port : v4().sin_port); }

void Address::set_port(std::uint16_t port) {
  if (family() == AF_INET6) {
    v6().sin6_port = htons(port);
  } else {
    v4().sin_port = htons(port);
  }
}

bool Address::wildcard() const {
  return family() == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&v6().sin6_addr) != 0 : v4().sin_addr.s_addr == INADDR_ANY;
}

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
