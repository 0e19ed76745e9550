#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"

namespace sluice::queue::outbox::sql {

/// A value of an answer, as text; nothing: NULL.
using Cell = std::optional<std::string>;
using Cells = std::vector<Cell>;

std::int64_t number_of(const Cell& cell);  ///< 0 for NULL
bool flag_of(const Cell& cell);            ///< false for NULL
std::string text_of(Cell&& cell);          ///< empty for NULL

/// What a statement gave back.
struct Answer {
  std::vector<Cells> rows;
  std::uint64_t touched = 0;  ///< by an INSERT, UPDATE or DELETE
};

/// Takes a row as it arrives; false: enough.
using TakeRow = std::function<bool(Cells&& row)>;

/// One session with a server. Not thread-safe. Every call blocks and has returned by its deadline. After an error whose
/// code is `unavailable`, `timeout` or `unknown_outcome` it has closed the connection, and each further call fails.
class SqlConnection {
 public:
  SqlConnection() = default;
  SqlConnection(const SqlConnection&) = delete;
  SqlConnection& operator=(const SqlConnection&) = delete;
  virtual ~SqlConnection() = default;

  virtual Result<Answer> run(const std::string& statement, Deadline deadline) = 0;
  /// Row by row. True: `take` has seen all of them.
  virtual Result<bool> stream(const std::string& statement, const TakeRow& take, Deadline deadline) = 0;
  /// All of them in one transaction; one answer each. Where it is not known whether it was committed,
  /// ErrorCode::unknown_outcome.
  virtual Result<std::vector<Answer>> run_together(std::span<const std::string> statements, Deadline deadline) = 0;
  /// Runs a SELECT and locks its rows, those apart that somebody else has locked where `skip` says so and the server
  /// knows how.
  virtual Result<Answer> lock_rows(const std::string& select, bool skip, Deadline deadline) = 0;
  /// Waits for notifications, until `wake` is readable or the deadline; what they say. Where the server sends none it
  /// waits for the other two.
  virtual Result<std::vector<std::string>> wait(int wake, Deadline deadline) = 0;
  /// Ends the session, and with it its locks.
  virtual void close() = 0;
  /// What the session was called when it was let in: by the server, or by a pool in between.
  virtual std::int64_t greeted_as() const = 0;

  virtual Result<void> begin(Deadline deadline) = 0;
  virtual Result<void> end(bool commit, Deadline deadline) = 0;
  /// How often a transaction is tried that a deadlock or a lock of somebody else's has ended.
  virtual int tries() const { return 1; }
};

/// Runs `work` between `begin` and `end`, as often as `tries` says. It is rolled back when it fails.
Result<void> in_transaction(SqlConnection& connection, const std::function<Result<void>()>& work, Deadline deadline);

}  // namespace sluice::queue::outbox::sql
