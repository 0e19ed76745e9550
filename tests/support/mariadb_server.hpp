#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_process.hpp"

namespace sluice::test {

/// A MariaDB server of its own, in a folder of its own, on a free loopback port and a Unix socket; ended with the
/// object, its folder removed. The machine's own service is neither asked nor touched.
///
///     const auto server = MariaDbServer::start({});
///     if (!server) GTEST_SKIP() << MariaDbServer::absence();
class MariaDbServer {
 public:
  /// Null when the programs are not there. `options` go to the server. Throws std::runtime_error when it does not come
  /// up.
  static std::unique_ptr<MariaDbServer> start(const std::vector<std::string>& options);
  static std::string absence();
  ~MariaDbServer();
  MariaDbServer(const MariaDbServer&) = delete;
  MariaDbServer& operator=(const MariaDbServer&) = delete;

  int port() const { return port_; }
  std::string socket() const { return folder_ + "/server.sock"; }
  /// The user "root" without a password may do everything, from this machine.
  std::string url(const std::string& database) const;
  const std::string& folder() const { return folder_; }
  /// Kills it, as if its machine had failed, and starts it again on the same port.
  void restart();

 private:
  MariaDbServer(std::string folder, std::vector<std::string> options);
  bool install() const;
  bool launch();

  const std::string folder_;
  const std::vector<std::string> options_;
  int port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace sluice::test
