#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/postgres/sql_text.hpp"
#include "host/stores/outbox/settings.hpp"

struct pg_conn;
struct pg_result;

namespace sluice::queue::outbox::postgres {

/// SQL with $1, $2 and so on, and what stands for them.
struct Statement {
  std::string sql;
  std::vector<Parameter> parameters{};
};

/// What a statement gave back, as text. A resource that can be moved.
class Answer {
 public:
  explicit Answer(pg_result* result) : result_(result) {}
  int rows() const;
  bool is_null(int row, int column) const;
  std::string_view text(int row, int column) const;
  std::int64_t number(int row, int column) const;  ///< 0 for NULL
  std::optional<std::int64_t> number_or_null(int row, int column) const;
  bool flag(int row, int column) const { return text(row, column) == "t"; }

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

/// One connection to a PostgreSQL server: the only place that knows libpq. Not thread-safe. Every call blocks and has
/// returned by its deadline; one that did not end by then, or found the server gone, has closed the connection.
class Connection {
 public:
  /// Connects, with what the settings say of TLS, the user and the way there.
  static Result<std::unique_ptr<Connection>> open(const ConnectSettings& settings, Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// From now on every request is a transaction that begins with this statement: for a connection that leads to a pool,
  /// where the next request may be another server process's.
  void begin_each_with(Statement preamble) { preamble_ = std::move(preamble); }

  Result<Answer> run(const Statement& statement, Deadline deadline);
  /// All of them in one round trip and one transaction; one answer each. Where it is not known whether the transaction
  /// was committed, ErrorCode::unknown_outcome.
  Result<std::vector<Answer>> run_together(std::span<const Statement> statements, Deadline deadline);
  /// Row by row, as they come; `each` returns false when it has enough, and the server is told to stop. True: `each`
  /// has seen all of them.
  Result<bool> stream(const Statement& statement, const std::function<bool(const Answer&)>& each, Deadline deadline);
  /// Waits for notifications, until `wake` is readable (unless it is -1) or the deadline; their payloads.
  Result<std::vector<std::string>> wait(int wake, Deadline deadline);

  int server_version() const;  ///< 150004 for 15.4
  int server_process() const;  ///< as whoever let us in calls it: the server, or a pool

 private:
  explicit Connection(pg_conn* connection) : connection_(connection) {}

  Result<Answer> run_alone(const Statement& statement, Deadline deadline);
  Result<std::vector<Answer>> run_pipeline(std::span<const Statement> statements, Deadline deadline);
  Result<bool> stream_alone(const Statement& statement, const std::function<bool(const Answer&)>& each,
                            Deadline deadline);

  enum class Step : std::uint8_t { done, late, broken };
  Step await(bool to_read, int wake, Deadline deadline, bool* woken);
  Step flush(Deadline deadline);
  Step await_result(Deadline deadline);
  /// The next result of what was sent; null: there are no more.
  Result<pg_result*> next_result(Deadline deadline);
  /// Closes, and says why.
  Error lost(const char* what, bool late);
  Error drop_with(Error error);

  pg_conn* connection_;
  std::optional<Statement> preamble_;
};

}  // namespace sluice::queue::outbox::postgres
