#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/child_process.hpp"

namespace sluice::test {

/// The distribution's nats-server with JetStream, file-backed, in a folder and on a loopback port of its own; ended
/// with the object, the folder too.
///
///     const auto server = NatsServer::start();
///     if (!server) GTEST_SKIP() << NatsServer::absence();
class NatsServer {
 public:
  /// `configuration`: further lines of its configuration file. Null when the program is not there; throws
  /// std::runtime_error when it is there but does not come up.
  static std::unique_ptr<NatsServer> start(const std::string& configuration = "");
  /// The program: $SLUICE_NATS_SERVER, else the distribution's.
  static std::optional<std::string> program();
  static std::string absence();

  ~NatsServer();
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  int port() const { return port_; }
  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  pid_t pid() const { return process_->pid(); }
  /// Kills it and waits for its end, as if its machine had failed.
  void kill() { process_->kill(); }
  /// Stops it in the middle of whatever it does, until it is thawed. Returns when it stands still.
  void freeze();
  void thaw();
  /// Starts it again on the same folder and port.
  void restart();

 private:
  NatsServer() = default;
  bool launch(const std::string& program, const std::string& configuration);

  std::filesystem::path folder_;
  std::string program_;
  int port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace sluice::test
