#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tests/support/child_process.hpp"

namespace sluice::test {

/// A DynamoDB emulator in a process of its own, on a free loopback port; ended with the object.
///
///     const auto emulator = Emulator::start();
///     if (!emulator) GTEST_SKIP() << Emulator::absence();
class Emulator {
 public:
  struct Options {
    std::string database;  ///< path of its SQLite file; empty: in memory
  };

  /// Starts one and waits until it answers. Null when the program is not there (then `absence()` says where it was
  /// looked for); throws std::runtime_error when it is there but does not come up.
  static std::unique_ptr<Emulator> start(const Options& options);
  static std::unique_ptr<Emulator> start() { return start(Options{}); }
  /// The program: $SLUICE_EMULATOR, else the one the build knows, else the one that `./dev deps` fetches.
  static std::optional<std::string> program();
  static std::string absence();

  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  const std::string& endpoint() const { return endpoint_; }  ///< "http://127.0.0.1:PORT"
  int port() const { return port_; }
  pid_t pid() const { return process_->pid(); }
  /// Kills it and waits for its end, as if its machine had failed. Idempotent.
  void kill() { process_->kill(); }

 private:
  Emulator(std::unique_ptr<ChildProcess> process, int port);

  std::unique_ptr<ChildProcess> process_;
  int port_;
  std::string endpoint_;
};

}  // namespace sluice::test
