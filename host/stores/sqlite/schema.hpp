#pragma once

#include "base/error.hpp"
#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Marks a SQLite file as ours: "SLCE".
inline constexpr std::int64_t kApplicationId = 0x534C4345;
/// Of the tables; a file with a higher one is refused, for a newer Sluice has made it.
inline constexpr std::int64_t kSchemaVersion = 9;

enum class SchemaUse { write, read };

/// An error unless the file is ours and of the version we know; or, for a use that can write, new or of a version that
/// `make_schema` can bring up to ours. Writes nothing.
Result<void> check_schema(Connection& connection, SchemaUse use = SchemaUse::write);
/// Makes the tables where the file is new, and brings those of an older Sluice up to our version, in one transaction.
/// Several processes may do it to one file at once. A Sluice of version 3 that still has the file open works on as
/// before. One of version 2 can settle what it has finished, but its claims fail from then on (one of version 1, its
/// sends too): it loses nothing, and is to be restarted as the new one.
/// The same is true of one of version 6 whose jobs have idempotency keys.
Result<void> make_schema(Connection& connection);

}  // namespace sluice::queue::sqlite
