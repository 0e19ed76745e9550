#include "host/observe/health_probe.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/descriptor.hpp"

namespace sluice::observe {

namespace {

constexpr std::size_t kMaxAnswerBytes = 64 * 1024;
constexpr std::string_view kStatusLine = "HTTP/1.1 ";

Error silence(const std::string& listen, const std::string& why) {
  return {ErrorCode::unavailable, "no host answers on " + listen + ": " + why};
}

/// Where a process of this machine reaches "host:port".
std::string loopback_of(const std::string& host) {
  if (host.empty() || host == "0.0.0.0") {
    return "127.0.0.1";
  }
  if (host.front() != '[') {
    return host;
  }
  const std::string inside = host.substr(1, host.size() - 2);
  return inside == "::" ? "::1" : inside;
}

void set_patience(int descriptor, std::chrono::milliseconds patience) {
  timeval time{};
  time.tv_sec = patience.count() / 1000;
  time.tv_usec = (patience.count() % 1000) * 1000;
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

/// Everything until the other side closes; empty when it does not in time.
std::string exchange(int descriptor, const std::string& request) {
  if (::send(descriptor, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return {};
  }
  std::string answer;
  std::array<char, 4096> part{};
  while (answer.size() < kMaxAnswerBytes) {
    const ssize_t got = ::recv(descriptor, part.data(), part.size(), 0);
    if (got < 0) {
      return {};
    }
    if (got == 0) {
      break;
    }
    answer.append(part.data(), static_cast<std::size_t>(got));
  }
  return answer;
}

}  // namespace

Result<ProbeAnswer> probe(const std::string& listen, const std::string& path, std::chrono::milliseconds patience) {
  const auto colon = std::min(listen.rfind(':'), listen.size());
  const std::string host = loopback_of(listen.substr(0, colon));
  const std::string port = listen.substr(std::min(colon + 1, listen.size()));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); failed != 0) {
    return silence(listen, ::gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> address(found, ::freeaddrinfo);
  const Descriptor socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set_patience(socket.get(), patience);
  if (::connect(socket.get(), address->ai_addr, address->ai_addrlen) != 0) {
    return silence(listen, std::strerror(errno));
  }
  const std::string answer =
      exchange(socket.get(), "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  ProbeAnswer result;
  const auto body = answer.find("\r\n\r\n");
  if (answer.rfind(kStatusLine, 0) != 0 || body == std::string::npos) {
    return silence(listen, "it accepts connections, and does not answer as a host does");
  }
  const char* status = answer.data() + kStatusLine.size();
  std::from_chars(status, answer.data() + body, result.status);
  result.text = answer.substr(body + 4);
  return result;
}

}  // namespace sluice::observe
