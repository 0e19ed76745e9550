#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/effects.hpp"
#include "host/stores/sqlite/bounded_functions.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/user_tables.hpp"

struct sqlite3_stmt;

namespace sluice::queue::sqlite {

/// Runs statements of handlers on their own tables, inside a transaction of the connection. Statements are kept
/// prepared by their text. A connection that never ran one pays nothing for it.
///
/// Everybody waits for a statement that runs, and it takes its memory of the host's, so that both have bounds: time,
/// the length of a value, memory, and what is written.
///
/// What is wrong with a statement is the statement's affair: the connection does not fail by it, and what it had begun
/// is undone by whoever made a savepoint. What is wrong with the file fails the connection.
class UserStatements {
 public:
  explicit UserStatements(Connection& connection) : connection_(connection) {}
  ~UserStatements();
  UserStatements(const UserStatements&) = delete;
  UserStatements& operator=(const UserStatements&) = delete;

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
    std::string text;
    sqlite3_stmt* handle = nullptr;
    std::string table;
    bool reads = false;  ///< and writes nothing
  };
  using Kept = std::list<Prepared>;

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
  Kept kept_;  ///< latest use first
  std::unordered_map<std::string_view, Kept::iterator> by_text_;
};

}  // namespace sluice::queue::sqlite
