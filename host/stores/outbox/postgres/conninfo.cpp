#include "host/stores/outbox/postgres/conninfo.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <memory>
#include <string_view>

#include "base/text/percent.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

// Where Debian, and others, keep the system's own authorities; libpq 15 has no word for it.
constexpr const char* kSystemAuthorities = "/etc/ssl/certs/ca-certificates.crt";
constexpr std::uint32_t kDefaultPort = 5432;

std::string decoded(std::string_view text) { return percent_decoded(text).value_or(std::string(text)); }

struct UrlParts {
  std::string url;  ///< without the user and the password
  std::string user;
  std::string password;
  std::string host;
  std::string port;
};

/// Where the user and the password end, of "user:password@host:port/database?..."; npos: there are none. They may hold
/// a '/' or an '@' that nobody has written as %2F or %40, and a '?' before any '/'.
std::size_t end_of_user(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::size_t query = text.find('?', at < text.find('/') ? at : 0);
  return text.substr(0, query).rfind('@');
}

/// postgres://user:password@host:port/database?...
UrlParts parts_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) {
    return {.url = std::string(url)};
  }
  UrlParts parts{.url = std::string(url.substr(0, scheme + 3))};
  url.remove_prefix(parts.url.size());
  if (const std::size_t at = end_of_user(url); at != std::string_view::npos) {
    const std::string_view user = url.substr(0, at);
    const std::size_t colon = user.find(':');
    parts.user = decoded(user.substr(0, colon));
    parts.password = colon == std::string_view::npos ? "" : decoded(user.substr(colon + 1));
    url.remove_prefix(at + 1);
  }
  parts.url += url;
  url = url.substr(0, url.find_first_of("/?"));
  const std::size_t bracket = url.starts_with('[') ? url.find(']') : std::string_view::npos;
  const std::size_t colon = url.find(':', bracket == std::string_view::npos ? 0 : bracket);
  parts.port = colon == std::string_view::npos ? "" : std::string(url.substr(colon + 1));
  parts.host = decoded(bracket == std::string_view::npos ? url.substr(0, colon) : url.substr(1, bracket - 1));
  return parts;
}

/// The first numeric address of a host, so that libpq connects to it and expects another name of it.
Result<std::string> address_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (code != 0) {
    return Error(ErrorCode::unavailable, "the name \"" + host + "\" cannot be resolved: " + ::gai_strerror(code));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, ::freeaddrinfo);
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return Error(ErrorCode::unavailable, "the address of \"" + host + "\" cannot be read");
  }
  return std::string(text.data());
}

Result<void> add_tls(const ConnectSettings& settings, const UrlParts& parts, ConnectionInfo& info) {
  const TlsSettings& tls = settings.tls;
  if (!tls.required) {
    return {};
  }
  info.emplace_back("sslmode", tls.verify ? "verify-full" : "require");
  if (tls.verify) {
    const bool system = tls.ca.empty() && ::access(kSystemAuthorities, R_OK) == 0;
    if (system || !tls.ca.empty()) {
      info.emplace_back("sslrootcert", system ? kSystemAuthorities : tls.ca);
    }
  }
  if (!tls.certificate.empty()) {
    info.emplace_back("sslcert", tls.certificate);
    info.emplace_back("sslkey", tls.key);
  }
  if (!tls.server_name.empty() && tls.server_name != parts.host) {
    SLUICE_TRY(address, address_of(parts.host));
    info.emplace_back("host", tls.server_name);
    info.emplace_back("hostaddr", *std::move(address));
  }
  return {};
}

Result<void> add_tunnel(const ConnectSettings& settings, Deadline deadline, ConnectionInfo& info) {
  if (!settings.tunnel) {
    return {};
  }
  SLUICE_TRY(socket, settings.tunnel->socket(deadline));
  // libpq takes the folder and the port, and makes the file's name of them.
  const std::size_t slash = socket->rfind('/');
  const std::size_t dot = socket->rfind('.');
  info.emplace_back("host", socket->substr(0, slash));
  info.emplace_back("port", socket->substr(dot + 1));
  return {};
}

}  // namespace

Result<ConnectionInfo> connection_info(const ConnectSettings& settings, Deadline deadline) {
  const UrlParts parts = parts_of(settings.url);
  ConnectionInfo info{{"dbname", parts.url}};
  if (const std::string& user = settings.username.empty() ? parts.user : settings.username; !user.empty()) {
    info.emplace_back("user", user);
  }
  const std::string& password = settings.password.empty() ? parts.password : settings.password;
  if (!password.empty()) {
    info.emplace_back("password", password);
  }
  SLUICE_PASS_ON(add_tls(settings, parts, info));
  SLUICE_PASS_ON(add_tunnel(settings, deadline, info));
  info.emplace_back("application_name", settings.application);
  info.emplace_back("client_encoding", "UTF8");
  // A peer that is gone without a word is found out within the lease.
  const auto lease = std::chrono::duration_cast<std::chrono::seconds>(settings.lease).count();
  const auto third = std::max<std::int64_t>(lease / 3, 1);
  info.emplace_back("keepalives_idle", std::to_string(third));
  info.emplace_back("keepalives_interval", std::to_string(std::max<std::int64_t>(third / 3, 1)));
  info.emplace_back("keepalives_count", "3");
  info.emplace_back("tcp_user_timeout", std::to_string(lease * 1000));
  return info;
}

ServerPlace server_of(const std::string& url) {
  const UrlParts parts = parts_of(url);
  ServerPlace place{parts.host.empty() ? "localhost" : parts.host, kDefaultPort};
  std::from_chars(parts.port.data(), parts.port.data() + parts.port.size(), place.port);
  return place;
}

}  // namespace sluice::queue::outbox::postgres
