#pragma once

#include <array>
#include <cstddef>

struct sqlite3;
struct sqlite3_context;
struct sqlite3_stmt;
struct sqlite3_value;

namespace sluice::queue::sqlite {

/// Functions of SQL that take as long as two of their arguments are large together, for which a few megabytes are
/// minutes, and which nothing can interrupt: SQLite's own, that refuse what would take long. A resource.
class BoundedFunctions {
 public:
  BoundedFunctions() = default;
  ~BoundedFunctions();
  BoundedFunctions(const BoundedFunctions&) = delete;
  BoundedFunctions& operator=(const BoundedFunctions&) = delete;

  /// Once: puts them into the place of SQLite's on this connection, which they outlive. No value that they make is
  /// larger. SQLite's code for what went wrong.
  int take_place(sqlite3* connection, int most_value_bytes);

 private:
  struct Function {
    const char* name;
    const char* sql;
    int arguments;
    double most;  ///< bytes of the first argument, times those of the second
    sqlite3_stmt* original = nullptr;
  };
  static void call(sqlite3_context* context, int count, sqlite3_value** values);

  // Products that take some 50 ms.
  static constexpr double kMost = 2e9;
  static constexpr double kMostTrimmed = 2e7;
  sqlite3* originals_ = nullptr;  ///< a connection of its own, where they are not replaced
  std::array<Function, 6> functions_{{
      {"instr", "SELECT instr(?1, ?2)", 2, kMost},
      {"replace", "SELECT replace(?1, ?2, ?3)", 3, kMost},
      {"trim", "SELECT trim(?1, ?2)", 2, kMostTrimmed},
      {"ltrim", "SELECT ltrim(?1, ?2)", 2, kMostTrimmed},
      {"rtrim", "SELECT rtrim(?1, ?2)", 2, kMostTrimmed},
      {"json_patch", "SELECT json_patch(?1, ?2)", 2, kMost},
  }};
};

}  // namespace sluice::queue::sqlite
