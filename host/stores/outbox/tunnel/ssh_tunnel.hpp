#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "host/stores/outbox/settings.hpp"

namespace sluice::queue::outbox {

class SshSession;

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
class SshTunnel final : public Tunnel {
 public:
  SshTunnel(SshSettings settings, const Clock& clock);
  ~SshTunnel() override;

  Result<std::string> socket(Deadline deadline) override;

 private:
  /// One who is connected to the private socket.
  struct Client;

  void run(const std::stop_token& stop);
  Result<void> prepare_folder();
  bool wait_for_request(const std::stop_token& stop);
  void told(Result<std::unique_ptr<SshSession>>& opened);
  void carry(SshSession& session, const std::stop_token& stop);
  std::vector<pollfd> watched(const SshSession& session) const;
  void take_client(SshSession& session);
  /// False when it is over with this client.
  bool serve(Client& client, SshSession& session);
  bool to_server(Client& client);
  bool to_client(Client& client);
  void wake_thread() const;

  // Fixed after construction.
  const SshSettings settings_;
  const Clock& clock_;
  const Descriptor wake_;

  // Touched by the thread alone, but for the constructor.
  std::string folder_;
  std::string path_;
  Descriptor listener_;
  std::vector<std::unique_ptr<Client>> clients_;

  Mutex mutex_;
  Condition changed_;
  bool wanted_ SLUICE_GUARDED_BY(mutex_) = false;
  bool open_ SLUICE_GUARDED_BY(mutex_) = false;
  std::uint64_t attempts_ SLUICE_GUARDED_BY(mutex_) = 0;
  Error failure_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Error> refusal_ SLUICE_GUARDED_BY(mutex_);  ///< of the database, since the last call

  std::jthread thread_;
};

}  // namespace sluice::queue::outbox
