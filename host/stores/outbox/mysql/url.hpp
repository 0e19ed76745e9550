#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "host/stores/outbox/settings.hpp"

namespace sluice::queue::outbox::mysql {

enum class TlsUse {
  none,       ///< as it comes
  preferred,  ///< where the server can; whoever it is
  unchecked,  ///< always, whoever the server is
  checked,    ///< always, and the server is the one that its certificate names
};

/// Where a server answers, and as whom it is asked. A value.
struct ServerAddress {
  std::string host = "127.0.0.1";
  std::uint32_t port = 3306;
  std::string socket;  ///< a Unix socket in place of host and port
  std::string user;
  std::string password;
  std::string database;
  TlsUse tls = TlsUse::none;

  /// "mysql://host:port/database" or the socket's path, for errors: without user and password.
  std::string place() const;
};

/// Reads the two forms, "mysql://user:password@host:port/database?tls=..." (with %XX where a part needs them) and Go's
/// "user:password@tcp(host:port)/database?...", also with "mysql://" before it. Of the parameters `tls` alone matters;
/// the others of Go's driver are about that driver. Errors do not repeat the text.
Result<ServerAddress> parse_url(const std::string& url);

/// The address with what the settings say besides: user, password, TLS.
Result<ServerAddress> address_of(const ConnectSettings& settings);

}  // namespace sluice::queue::outbox::mysql
