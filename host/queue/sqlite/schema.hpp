#pragma once

#include "base/error.hpp"
#include "host/queue/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Marks a SQLite file as ours: "SLCE".
inline constexpr std::int64_t kApplicationId = 0x534C4345;
/// Of the tables; a file with a higher one is refused, for a newer Sluice has made it.
inline constexpr std::int64_t kSchemaVersion = 1;

/// An error unless the file is new, or ours and of a version we know. Writes nothing.
Result<void> check_schema(Connection& connection);
/// Makes the tables where the file is new. Several processes may do it to one file at once.
Result<void> make_schema(Connection& connection);

}  // namespace sluice::queue::sqlite
