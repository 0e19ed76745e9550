#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/sql/sql_server.hpp"

namespace sluice::queue::outbox {

/// An outbox in MySQL or MariaDB. Connects when a session is opened. The references outlive it. Asked of MariaDB 10.11;
/// what MySQL 8 has otherwise is written for it and untested.
std::unique_ptr<sql::SqlServer> make_mysql_server(const Settings& settings, const Clock& clock);
std::unique_ptr<Database> make_mysql_database(const Settings& settings, const Clock& clock, Random& random);

}  // namespace sluice::queue::outbox
