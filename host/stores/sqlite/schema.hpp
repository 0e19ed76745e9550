#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Marks a SQLite file as ours: "SLUI".
inline constexpr std::int64_t kApplicationId = 0x534C5549;
/// The mark of files from before the first release, which are refused.
inline constexpr std::int64_t kEarlierApplicationId = 0x534C4345;
/// Of the tables; a file with another one is refused.
inline constexpr std::int64_t kSchemaVersion = 1;
/// All names in the file that are ours begin so.
inline constexpr std::string_view kOurs = "sluice_";

enum class SchemaUse { write, read };

/// An error unless the file is ours and of the version we know; or, for a use that can write, new. Writes nothing.
Result<void> check_schema(Connection& connection, SchemaUse use = SchemaUse::write);
/// Makes the tables where the file is new, in one transaction. Several processes may do it to one file at once.
Result<void> make_schema(Connection& connection);

}  // namespace sluice::queue::sqlite
