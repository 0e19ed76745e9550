#pragma once

#include "host/stores/outbox/sql/sql_server.hpp"

namespace sluice::queue::outbox::postgres {

/// Where a server answers.
struct ServerPlace {
  std::string host;
  std::uint32_t port = 0;
};

/// Where the URL says that it does; libpq's defaults for what it leaves out.
ServerPlace server_of(const std::string& url);

/// What a failed statement means for callers, by its SQLSTATE; `text` is the server's message.
Error statement_error(std::string_view sqlstate, std::string text);

/// A session with a PostgreSQL server, with what the settings say of TLS, the user and the way there. Errors show
/// nothing of the password. `preamble`: a statement that each request begins with, in one transaction with it; for a
/// connection that leads to a pool, where the next request may be another server process's.
Result<std::unique_ptr<SqlConnection>> connect(const Settings& settings, const std::string& preamble,
                                               Deadline deadline);

}  // namespace sluice::queue::outbox::postgres

namespace sluice::queue::outbox {

/// An outbox table of PostgreSQL, 12 or newer. Connects when a session is opened. The references must outlive it.
std::unique_ptr<Database> make_postgres_database(const Settings& settings, const Clock& clock, Random& random);

}  // namespace sluice::queue::outbox
