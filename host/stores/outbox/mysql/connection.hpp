#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/mysql/url.hpp"
#include "host/stores/outbox/settings.hpp"
#include "host/stores/outbox/sql/sql_connection.hpp"

struct st_mysql;

namespace sluice::queue::outbox::mysql {

/// A session with a server of MySQL or MariaDB. The one boundary of libmariadb, used without its blocking calls, so
/// that deadlines hold.
class MysqlConnection final : public sql::SqlConnection {
 public:
  static Result<std::unique_ptr<MysqlConnection>> open(const ConnectSettings& settings, const ServerAddress& address,
                                                       const Clock& clock, Deadline deadline);
  ~MysqlConnection() override;

  Result<sql::Answer> run(const std::string& statement, Deadline deadline) override;
  Result<bool> stream(const std::string& statement, const sql::TakeRow& take, Deadline deadline) override;
  Result<std::vector<sql::Answer>> run_together(std::span<const std::string> statements, Deadline deadline) override;
  Result<sql::Answer> lock_rows(const std::string& select, bool skip, Deadline deadline) override;
  /// Waits for `wake` or the deadline.
  Result<std::vector<std::string>> wait(int wake, Deadline deadline) override;
  void close() override;
  Result<void> begin(Deadline deadline) override;
  Result<void> end(bool commit, Deadline deadline) override;

 private:
  MysqlConnection(st_mysql* mysql, std::string place, const Clock& clock);

  void configure(const ConnectSettings& settings, const ServerAddress& address);
  /// TLS with a server that has to be `name`, or the host that is connected to where it is empty.
  Result<void> expect_server(const ConnectSettings& settings, const ServerAddress& address, const std::string& socket,
                             Deadline deadline);
  Result<void> connect(const ServerAddress& address, const std::string& socket, Deadline deadline);
  Result<void> settle_in(const ConnectSettings& settings, Deadline deadline);
  /// Runs a statement; how many rows it has touched.
  Result<std::uint64_t> query(const std::string& statement, const sql::TakeRow& take, Deadline deadline);
  Result<void> read_rows(const sql::TakeRow& take, Deadline deadline);
  /// Runs an operation of libmariadb that does not block to its end; false when the deadline has passed.
  bool drive(int status, const std::function<int(int)>& go_on, Deadline deadline);
  Error failed(bool in_time);
  Error failed(bool in_time, unsigned int code, const std::string& text);

  st_mysql* mysql_;
  const std::string place_;
  const Clock& clock_;
  bool syntax_error_ = false;  ///< of the last statement
  bool skips_locked_ = true;   ///< until the server turns out not to know how
};

}  // namespace sluice::queue::outbox::mysql
