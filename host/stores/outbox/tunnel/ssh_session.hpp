#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"

struct ssh_session_struct;
struct ssh_channel_struct;
struct ssh_event_struct;

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

/// One connection from the SSH server to the target. Belongs to its session's thread and ends before the session.
class SshChannel {
 public:
  enum class State { opening, open, refused };

  explicit SshChannel(ssh_channel_struct* channel) : channel_(channel) {}
  ~SshChannel();
  SshChannel(const SshChannel&) = delete;
  SshChannel& operator=(const SshChannel&) = delete;

  /// Goes on with opening it; does not block.
  State advance(const SshSettings& settings);
  /// Bytes that arrived, at most `size`: 0 when there are none now, -1 when there will be none.
  int read(char* bytes, std::size_t size);
  /// How many of them were taken: 0 when there is no room now, -1 when the channel is over.
  int write(const char* bytes, std::size_t size);
  void send_end();

 private:
  ssh_channel_struct* channel_;
  bool open_ = false;
};

/// A session with an SSH server whose key is known and which has accepted ours. The one boundary of libssh. Not
/// thread-safe.
class SshSession {
 public:
  /// Connects, checks the server's key and logs in; gives up when `wake` becomes readable. Errors name the server and
  /// what is wrong: denied (its key is unknown or another than before, ours is refused), invalid (a file of ours),
  /// unavailable (nobody answers).
  static Result<std::unique_ptr<SshSession>> open(const SshSettings& settings, int wake, const Clock& clock,
                                                  Deadline deadline);
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  int descriptor() const;
  /// True while bytes wait to be sent.
  bool wants_to_write() const;
  bool alive() const;
  /// Takes what has arrived, for all channels, and sends what waits; does not block.
  void exchange();
  /// Null where there is no memory for it.
  std::unique_ptr<SshChannel> new_channel();
  /// What libssh said last.
  std::string last_error() const;

 private:
  explicit SshSession(ssh_session_struct* session) : session_(session) {}

  Result<void> configure(const SshSettings& settings, int socket);
  Result<void> check_host_key(const SshSettings& settings);
  Result<void> log_in(const SshSettings& settings, int wake, const Clock& clock, Deadline deadline);
  template <typename Step>
  Result<int> until_done(Step step, int again, int wake, const Clock& clock, Deadline deadline);

  ssh_session_struct* session_;
  ssh_event_struct* event_ = nullptr;
};

}  // namespace sluice::queue::outbox
