#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/mysql/errors.hpp"
#include "host/stores/outbox/mysql/url.hpp"
#include "host/stores/outbox/settings.hpp"

struct st_mysql;

namespace sluice::queue::outbox::mysql {

/// A value of an answer, as text; nothing: NULL.
using Cell = std::optional<std::string>;
using Cells = std::vector<Cell>;

/// Takes the rows of an answer as they arrive; false: the others are read off and dropped.
using TakeRow = std::function<bool(Cells&& row)>;

/// One connection to a server. The one boundary of libmariadb, used without its blocking calls, so that deadlines hold.
/// Not thread-safe.
class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const ConnectSettings& settings, const ServerAddress& address,
                                               const Clock& clock, Deadline deadline);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Runs one statement; how many rows it has touched. After an error that ends the session `over()` is true.
  Result<std::uint64_t> run(const std::string& statement, const TakeRow& take, Deadline deadline);
  Result<std::uint64_t> run(const std::string& statement, Deadline deadline);
  Result<std::vector<Cells>> rows(const std::string& statement, Deadline deadline);

  /// What the last call failed with.
  const Fault& fault() const { return fault_; }
  bool over() const { return over_; }
  /// Ends the connection, and with it its locks.
  void close();
  const std::string& place() const { return place_; }

 private:
  Session(st_mysql* mysql, std::string place, const Clock& clock);

  void configure(const ConnectSettings& settings, const ServerAddress& address);
  /// TLS with a server that has to be `name`, or the host that is connected to where it is empty.
  Result<void> expect_server(const ConnectSettings& settings, const ServerAddress& address, const std::string& socket,
                             Deadline deadline);
  Result<void> connect(const ServerAddress& address, const std::string& socket, Deadline deadline);
  Result<void> settle_in(const ConnectSettings& settings, Deadline deadline);
  Result<void> read_rows(const TakeRow& take, Deadline deadline);
  /// Runs an operation of libmariadb that does not block to its end; false when the deadline has passed.
  bool drive(int status, const std::function<int(int)>& go_on, Deadline deadline);
  Error failed(bool in_time);

  st_mysql* mysql_;
  const std::string place_;
  const Clock& clock_;
  Fault fault_;
  bool over_ = false;
};

}  // namespace sluice::queue::outbox::mysql
