#pragma once

#include <memory>
#include <string>

#include "tests/support/child_process.hpp"

namespace sluice::test {

/// An OpenSSH server of its own with keys of its own, on a free loopback port, for the user who runs the test; ended
/// with the object, its folder removed. The machine's own service is neither asked nor touched.
class SshServer {
 public:
  /// Null when the programs are not there. Throws std::runtime_error when it does not come up.
  static std::unique_ptr<SshServer> start();
  static std::string absence();
  ~SshServer();
  SshServer(const SshServer&) = delete;
  SshServer& operator=(const SshServer&) = delete;

  int port() const { return port_; }
  /// A key that it accepts, and one that it does not.
  std::string good_key() const { return folder_ + "/user"; }
  std::string other_key() const { return folder_ + "/stranger"; }
  /// Files with its host key, with another one in its place, and with none.
  std::string known_hosts() const { return folder_ + "/known_hosts"; }
  std::string wrong_known_hosts() const { return folder_ + "/wrong_hosts"; }
  std::string empty_known_hosts() const { return folder_ + "/no_hosts"; }
  /// Kills it with its sessions, and starts it again on the same port.
  void restart();
  void kill();
  /// Sessions that there are say nothing any more; new ones are served.
  void freeze_sessions() const;

 private:
  explicit SshServer(std::string folder) : folder_(std::move(folder)) {}
  void make_keys() const;
  void write_files() const;
  bool launch();
  void signal_sessions(const std::string& signal) const;

  const std::string folder_;
  int port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace sluice::test
