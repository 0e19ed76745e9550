#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tests/support/child_process.hpp"

namespace sluice::test {

/// An emulator of SNS and SQS, by others than us, in a process of its own on a free loopback port; ended with the
/// object. It checks no signatures.
///
///     const auto emulator = Fauxqs::start();
///     if (!emulator) GTEST_SKIP() << Fauxqs::absence();
class Fauxqs {
 public:
  /// Null when the program is not there; throws std::runtime_error when it is there but does not come up.
  static std::unique_ptr<Fauxqs> start();
  /// Its server.js: $SLUICE_FAUXQS, else the one that `./dev deps` fetches.
  static std::optional<std::string> program();
  static std::string absence();

  Fauxqs(const Fauxqs&) = delete;
  Fauxqs& operator=(const Fauxqs&) = delete;

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  Fauxqs(std::unique_ptr<ChildProcess> process, int port) : process_(std::move(process)), port_(port) {}

  std::unique_ptr<ChildProcess> process_;
  int port_;
};

}  // namespace sluice::test
