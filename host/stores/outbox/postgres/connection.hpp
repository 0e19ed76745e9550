#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/settings.hpp"
#include "host/stores/outbox/sql/sql_connection.hpp"

struct pg_conn;
struct pg_result;

namespace sluice::queue::outbox::postgres {

/// Where a server answers.
struct ServerPlace {
  std::string host;
  std::uint32_t port = 0;
};

/// Where the URL says that it does; libpq's defaults for what it leaves out.
ServerPlace server_of(const std::string& url);

/// What a failed statement means for callers, by its SQLSTATE; `text` is the server's message.
Error statement_error(std::string_view sqlstate, std::string text);

/// A session with a PostgreSQL server: the only place that knows libpq.
class PostgresConnection final : public sql::SqlConnection {
 public:
  /// Connects, with what the settings say of TLS, the user and the way there. Errors show nothing of the password.
  static Result<std::unique_ptr<PostgresConnection>> open(const ConnectSettings& settings, Deadline deadline);
  ~PostgresConnection() override;

  /// From now on every request is a transaction that begins with this statement: for a connection that leads to a pool,
  /// where the next request may be another server process's.
  void begin_each_with(std::string preamble) { preamble_ = std::move(preamble); }

  Result<sql::Answer> run(const std::string& statement, Deadline deadline) override;
  Result<bool> stream(const std::string& statement, const sql::TakeRow& take, Deadline deadline) override;
  /// In one round trip.
  Result<std::vector<sql::Answer>> run_together(std::span<const std::string> statements, Deadline deadline) override;
  Result<sql::Answer> lock_rows(const std::string& select, bool skip, Deadline deadline) override;
  Result<std::vector<std::string>> wait(int wake, Deadline deadline) override;
  void close() override;
  Result<void> begin(Deadline deadline) override;
  Result<void> end(bool commit, Deadline deadline) override;

  int server_process() const;  ///< as whoever let us in calls it: the server, or a pool

 private:
  explicit PostgresConnection(pg_conn* connection) : connection_(connection) {}

  Result<std::vector<sql::Answer>> run_pipeline(std::span<const std::string> statements, Deadline deadline);
  Result<bool> stream_alone(const std::string& statement, const sql::TakeRow& take, Deadline deadline);

  enum class Step : std::uint8_t { done, late, broken };
  Step await(short events, int wake, Deadline deadline, bool* woken = nullptr);
  Step flush(Deadline deadline);
  /// The next result of what was sent; null: there are no more.
  Result<pg_result*> next_result(Deadline deadline);
  /// Closes, and says why.
  Error lost(const char* what, bool late);
  /// The server's error, after which the session goes on or is closed.
  Error refused(const Error& error);

  pg_conn* connection_;
  std::string preamble_;
  bool in_transaction_ = false;
};

}  // namespace sluice::queue::outbox::postgres
