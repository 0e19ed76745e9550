#pragma once

#include <cstdint>

#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Makes the tables that version 4 did not have.
void make_tables_since_5(Connection& connection);
/// Brings the tables of a file of an older version up to today's, inside a transaction of its connection. A table of
/// the user's that has a name which is needed fails the connection.
void upgrade(Connection& connection, std::int64_t version);

}  // namespace sluice::queue::sqlite
