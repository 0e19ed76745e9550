#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_process.hpp"

namespace sluice::test {

/// A PostgreSQL server in a folder of its own, which goes with it. User sluice with password secret; database postgres.
class PostgresServer {
 public:
  /// Null where no PostgreSQL is installed. `options` are the server's, as in {"-c", "fsync=off"}. Throws
  /// std::runtime_error where it is and does not come up.
  static std::unique_ptr<PostgresServer> start(const std::vector<std::string>& options = {"-c", "fsync=off"});
  ~PostgresServer();

  /// "postgres://sluice:secret@127.0.0.1:PORT/postgres"
  std::string url() const { return url("sluice", "secret"); }
  std::string url(const std::string& user, const std::string& password) const;
  const std::string& folder() const { return folder_; }
  int port() const { return port_; }
  /// Ends it as a crash would, and starts it again on the same folder and port.
  void restart();
  void kill() { process_.reset(); }

 private:
  PostgresServer(std::string folder, int port, std::vector<std::string> options);
  bool launch();

  const std::string folder_;
  const int port_;
  const std::vector<std::string> options_;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace sluice::test
