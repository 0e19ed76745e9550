#pragma once

#include <array>
#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/effects.hpp"
#include "host/stores/sqlite/connection.hpp"

struct sqlite3;
struct sqlite3_context;
struct sqlite3_stmt;
struct sqlite3_value;

namespace sluice::queue::sqlite {

/// Which parts of the file a handler's statement may touch: every table but ours, whose names
/// begin with sluice_, and nothing that changes how the file
/// is kept. SQLite asks while it prepares a statement, triggers and views included, and again when it prepares it anew
/// because the schema has changed. Of one connection.
class UserTables {
 public:
  /// Of a statement that is about to be prepared or run; until `end`, everything it touches is judged.
  void begin() {
    judging_ = true;
    table_.clear();
    refusal_.clear();
  }
  void end() { judging_ = false; }
  bool judges() const { return judging_; }

  /// What SQLite asks; true: it may. `action` is one of SQLite's action codes, with their two names.
  bool allows(int action, const char* first, const char* second);

  /// The first table that was written, or read where none was.
  const std::string& table() const { return table_; }
  /// Why it may not, empty: it may. Starts with "it".
  const std::string& refusal() const { return refusal_; }

 private:
  bool allows_table(std::string_view table, bool writes);
  bool allows_function(std::string_view function);

  bool judging_ = false;
  bool written_ = false;
  std::string table_;
  std::string refusal_;
};

/// Functions of SQL that take as long as two of their arguments are large together, for which a few megabytes are
/// minutes, and which nothing can interrupt: SQLite's own, that refuse what would take long. A resource.
class BoundedFunctions {
 public:
  /// Once: puts them into the place of SQLite's on this connection, which they outlive. No value that they make is
  /// larger. SQLite's code for what went wrong.
  int take_place(sqlite3* connection, int most_value_bytes);

 private:
  struct Function {
    const char* name;
    const char* sql;
    int arguments;
    double most;  ///< bytes of the first argument, times those of the second
    StatementHandle original{};
  };
  static void call(sqlite3_context* context, int count, sqlite3_value** values);

  // Products that take some 50 ms.
  static constexpr double kMost = 2e9;
  static constexpr double kMostTrimmed = 2e7;
  ConnectionHandle originals_;  ///< a connection of its own, where they are not replaced
  std::array<Function, 6> functions_{{
      {"instr", "SELECT instr(?1, ?2)", 2, kMost},
      {"replace", "SELECT replace(?1, ?2, ?3)", 3, kMost},
      {"trim", "SELECT trim(?1, ?2)", 2, kMostTrimmed},
      {"ltrim", "SELECT ltrim(?1, ?2)", 2, kMostTrimmed},
      {"rtrim", "SELECT rtrim(?1, ?2)", 2, kMostTrimmed},
      {"json_patch", "SELECT json_patch(?1, ?2)", 2, kMost},
  }};
};

/// Runs statements of handlers on their own tables, inside a transaction of the connection. Statements are kept
/// prepared by their text. A connection that never ran one pays nothing for it.
///
/// Everybody waits for a statement that runs, and it takes its memory of the host's, so that both have bounds: time,
/// the length of a value, memory, and what is written.
///
/// What is wrong with a statement is the statement's affair: the connection does not fail by it, and what it had begun
/// is undone by whoever made a savepoint. What is wrong with the file fails the connection.
class UserStatements : boost::noncopyable {
 public:
  explicit UserStatements(Connection& connection) : connection_(connection) {}

  /// Why a statement was refused.
  struct Refusal {
    std::string table;  ///< empty: not known
    std::string why;    ///< starts with "it"
    ErrorCode code = ErrorCode::invalid;
  };
  /// How long the statements of one message may take together.
  static constexpr Duration kLongest = std::chrono::milliseconds(900);

  /// Nothing: it is done, or the connection has failed. When SQLite has ended the whole transaction on its account,
  /// `Connection::in_transaction` is false afterwards. It is ended at `until`, by the machine's monotonic clock.
  std::optional<Refusal> run(const SqlWrite& write, SteadyTime until);

 private:
  /// A statement that is kept.
  struct Prepared {
    StatementHandle handle{};
    std::string table{};
    bool reads = false;  ///< and writes nothing
  };

  bool get_ready();
  std::optional<Refusal> prepare(const std::string& text, Prepared*& prepared);
  std::optional<Refusal> compile(std::string_view text, Prepared& prepared);
  std::optional<Refusal> step(const SqlWrite& write, Prepared& prepared);
  static std::optional<Refusal> bind(const SqlWrite& write, const Prepared& prepared);
  std::optional<Refusal> explain_failure(const Prepared& prepared, int code);
  static int on_authorize(void* self, int action, const char* first, const char* second, const char* schema,
                          const char* trigger);
  static int on_progress(void* self);
  int spilled_pages() const;

  Connection& connection_;
  UserTables tables_;
  BoundedFunctions functions_;
  bool ready_ = false;
  // Of the statement that runs.
  SteadyTime until_{};
  std::optional<int> spilled_before_;  ///< pages that had found no room in memory when it was first looked at
  bool wrote_too_much_ = false;
  std::unordered_map<std::string, Prepared> kept_;  ///< by their text
};

}  // namespace sluice::queue::sqlite
