#pragma once

#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Gives the marks of keys today's hashes; version 6 had others.
void rehash_old_marks(Connection& connection);
/// Puts the records of `old_key_records`, as version 6 had them, into batches, and makes their index.
void batch_old_keys(Connection& connection);

}  // namespace sluice::queue::sqlite
