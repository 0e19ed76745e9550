#pragma once

#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox {

/// The SSH server, as [outbox.NAME.ssh] has it, and what is reached through it. A value.
struct SshSettings : config::OutboxSsh {
  std::string target_host;
  std::uint32_t target_port = 0;

  /// "ssh://user@host:port", for errors.
  std::string place() const;
};

/// A tunnel to a database's server: a Unix socket in a folder that only this user may enter, and a thread that carries
/// bytes between those who connect to it and the SSH server. Opened by whoever asks for the socket first, and again
/// after the SSH session has ended; it ends with its last copy.
///
/// What the SSH server says when it cannot reach the database is the error of the next call: who connects through the
/// socket only sees it end.
Tunnel make_ssh_tunnel(SshSettings settings, const Clock& clock);

}  // namespace sluice::queue::outbox
