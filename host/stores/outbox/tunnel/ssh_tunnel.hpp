#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox {

/// The SSH server, as [outbox.NAME.ssh] has it, and what is reached through it. A value.
struct SshSettings {
  std::string host;
  std::uint32_t port = 22;
  std::string user;                                             ///< empty: this process's
  std::string private_key;                                      ///< a file, without a passphrase
  std::string known_hosts;                                      ///< a file; empty: the user's and the machine's
  std::vector<std::string> host_key_algorithms{"ssh-ed25519"};  ///< empty: all that libssh knows
  bool check_host_key = true;
  std::string target_host;
  std::uint32_t target_port = 0;

  /// "ssh://user@host:port", for errors.
  std::string place() const;
};

/// A tunnel to a database's server: a Unix socket in a folder that only this user may enter, and a thread that carries
/// bytes between those who connect to it and the SSH server. Opened by whoever asks for the socket first, and again
/// after the SSH session has ended. Thread-safe.
///
/// What the SSH server says when it cannot reach the database is the error of the next `socket()`: who connects through
/// the socket only sees it end.
std::shared_ptr<Tunnel> make_ssh_tunnel(SshSettings settings, const Clock& clock);

}  // namespace sluice::queue::outbox
