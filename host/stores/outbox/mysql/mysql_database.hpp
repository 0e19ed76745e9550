#pragma once

#include "host/stores/outbox/sql/sql_server.hpp"

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
Result<ServerAddress> address_of(const Settings& settings);

/// Asks a server for its certificate, on a connection of its own that ends after the handshake, and checks that an
/// authority which is trusted has made it for `name`: libmariadb compares it with the host that it is connected to and
/// with no other name. The fingerprint of that certificate (SHA-1, in digits, as libmariadb takes it), so that the
/// session that follows can be held to it. `socket`: a Unix socket in place of the address.
Result<std::string> fingerprint_of_server(const ServerAddress& address, const std::string& socket,
                                          const config::OutboxTls& tls, const std::string& name, const Clock& clock,
                                          Deadline deadline);

/// A session with a server of MySQL or MariaDB.
Result<std::unique_ptr<SqlConnection>> connect(const Settings& settings, const Clock& clock, Deadline deadline);

}  // namespace sluice::queue::outbox::mysql

namespace sluice::queue::outbox {

/// An outbox in MySQL or MariaDB. Connects when a session is opened. The references outlive it. Asked of MariaDB 10.11;
/// what MySQL 8 has otherwise is written for it and untested.
std::unique_ptr<SqlServer> make_mysql_database(const Settings& settings, const Clock& clock, Random& random);

}  // namespace sluice::queue::outbox
