#pragma once

#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Puts down messages whose ids tell their time with today's hashes; version 8 had others. Those stay until they are
/// swept with their messages.
void rehash_ids_with_time(Connection& connection);

}  // namespace sluice::queue::sqlite
