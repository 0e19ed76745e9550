#include "host/stores/outbox/tunnel/ssh_session.hpp"

#include <libssh/libssh.h>
#include <poll.h>

#include <algorithm>
#include <array>

#include "host/stores/outbox/network/tcp_connect.hpp"

namespace sluice::queue::outbox {

namespace {

Error denied(const SshSettings& settings, const std::string& what) {
  return {ErrorCode::denied, settings.place() + ": " + what};
}

std::string fingerprint(ssh_session session) {
  ssh_key key = nullptr;
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  std::string text = "of unknown fingerprint";
  if (ssh_get_server_publickey(session, &key) != SSH_OK) {
    return text;
  }
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) == 0) {
    if (char* printed = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size)) {
      text = std::string(ssh_key_type_to_char(ssh_key_type(key))) + " " + printed;
      ssh_string_free_char(printed);
    }
    ssh_clean_pubkey_hash(&hash);
  }
  ssh_key_free(key);
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ",") + word;
  }
  return text;
}

struct KeyDeleter {
  void operator()(ssh_key_struct* key) const { ssh_key_free(key); }
};

}  // namespace

std::string SshSettings::place() const {
  return "ssh://" + (user.empty() ? "" : user + "@") + host + ":" + std::to_string(port);
}

SshChannel::~SshChannel() { ssh_channel_free(channel_); }

SshChannel::State SshChannel::advance(const SshSettings& settings) {
  if (open_) {
    return State::open;
  }
  const int answer = ssh_channel_open_forward(channel_, settings.target_host.c_str(),
                                              static_cast<int>(settings.target_port), "localhost", 0);
  open_ = answer == SSH_OK;
  return answer == SSH_AGAIN ? State::opening : open_ ? State::open : State::refused;
}

int SshChannel::read(char* bytes, std::size_t size) {
  const int count = ssh_channel_read_nonblocking(channel_, bytes, static_cast<std::uint32_t>(size), 0);
  if (count > 0) {
    return count;
  }
  const bool over = count == SSH_EOF || count == SSH_ERROR || ssh_channel_is_eof(channel_) != 0 ||
                    ssh_channel_is_closed(channel_) != 0;
  return over ? -1 : 0;
}

int SshChannel::write(const char* bytes, std::size_t size) {
  if (ssh_channel_is_closed(channel_) != 0) {
    return -1;
  }
  const std::size_t room = ssh_channel_window_size(channel_);
  if (room == 0) {
    return 0;
  }
  const int count = ssh_channel_write(channel_, bytes, static_cast<std::uint32_t>(std::min(size, room)));
  return count == SSH_ERROR ? -1 : std::max(count, 0);
}

void SshChannel::send_end() { ssh_channel_send_eof(channel_); }

Result<std::unique_ptr<SshSession>> SshSession::open(const SshSettings& settings, int wake, const Clock& clock,
                                                     Deadline deadline) {
  auto socket = connect_tcp(settings.host, settings.port, wake, clock, deadline);
  if (socket.has_error()) {
    return Error(socket.error().code(), settings.place() + ": " + socket.error().message());
  }
  std::unique_ptr<SshSession> session(new SshSession(ssh_new()));
  if (session->session_ == nullptr) {
    return Error(ErrorCode::internal, "libssh gives no session");
  }
  SLUICE_PASS_ON(session->configure(settings, socket->release()));
  const auto connected =
      session->until_done([&session] { return ssh_connect(session->session_); }, SSH_AGAIN, wake, clock, deadline);
  if (connected.has_error()) {
    return Error(connected.error().code(), settings.place() + ": " + connected.error().message());
  }
  if (*connected != SSH_OK) {
    return Error(ErrorCode::unavailable, settings.place() + ": no SSH session: " + session->last_error());
  }
  SLUICE_PASS_ON(session->check_host_key(settings));
  SLUICE_PASS_ON(session->log_in(settings, wake, clock, deadline));
  session->event_ = ssh_event_new();
  if (session->event_ == nullptr || ssh_event_add_session(session->event_, session->session_) != SSH_OK) {
    return Error(ErrorCode::internal, "libssh gives no event loop");
  }
  return session;
}

SshSession::~SshSession() {
  if (event_ != nullptr) {
    ssh_event_remove_session(event_, session_);
    ssh_event_free(event_);
  }
  if (session_ != nullptr) {
    ssh_disconnect(session_);
    ssh_free(session_);
  }
}

Result<void> SshSession::configure(const SshSettings& settings, int socket) {
  ssh_set_blocking(session_, 0);
  const int no = 0;
  const unsigned int port = settings.port;
  const std::string algorithms = joined(settings.host_key_algorithms);
  bool good = ssh_options_set(session_, SSH_OPTIONS_FD, &socket) == SSH_OK &&
              ssh_options_set(session_, SSH_OPTIONS_PROCESS_CONFIG, &no) == SSH_OK &&
              ssh_options_set(session_, SSH_OPTIONS_HOST, settings.host.c_str()) == SSH_OK &&
              ssh_options_set(session_, SSH_OPTIONS_PORT, &port) == SSH_OK;
  if (!settings.user.empty()) {
    good = good && ssh_options_set(session_, SSH_OPTIONS_USER, settings.user.c_str()) == SSH_OK;
  }
  if (!settings.known_hosts.empty()) {
    good = good && ssh_options_set(session_, SSH_OPTIONS_KNOWNHOSTS, settings.known_hosts.c_str()) == SSH_OK &&
           ssh_options_set(session_, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") == SSH_OK;
  }
  if (!good) {
    return Error(ErrorCode::invalid, settings.place() + ": " + last_error());
  }
  if (!algorithms.empty() && ssh_options_set(session_, SSH_OPTIONS_HOSTKEYS, algorithms.c_str()) != SSH_OK) {
    return Error(ErrorCode::invalid,
                 settings.place() + ": 'host_key_algorithms' has none that libssh knows: " + algorithms);
  }
  return {};
}

Result<void> SshSession::check_host_key(const SshSettings& settings) {
  if (!settings.check_host_key) {
    return {};
  }
  const std::string file = settings.known_hosts.empty() ? "~/.ssh/known_hosts" : settings.known_hosts;
  switch (ssh_session_is_known_server(session_)) {
    case SSH_KNOWN_HOSTS_OK:
      return {};
    case SSH_KNOWN_HOSTS_CHANGED:
      return denied(settings, "the server's key (" + fingerprint(session_) + ") is not the one that " + file +
                                  " has for it; either it was exchanged, or somebody stands in between");
    case SSH_KNOWN_HOSTS_OTHER:
      return denied(settings, file + " has a key of another kind for the server than the " + fingerprint(session_) +
                                  " that it shows; add this one, or name its kind in 'host_key_algorithms'");
    case SSH_KNOWN_HOSTS_NOT_FOUND:
    case SSH_KNOWN_HOSTS_UNKNOWN:
      return denied(settings, "the server's key (" + fingerprint(session_) + ") is unknown: " + file +
                                  " does not have it; if it is right, add it with `ssh-keyscan -p " +
                                  std::to_string(settings.port) + " " + settings.host + " >> " + file + "`");
    case SSH_KNOWN_HOSTS_ERROR:
      break;
  }
  return denied(settings, "the server's key cannot be checked: " + last_error());
}

Result<void> SshSession::log_in(const SshSettings& settings, int wake, const Clock& clock, Deadline deadline) {
  ssh_key raw = nullptr;
  // A callback in the place of the passphrase keeps libssh from asking on a terminal.
  const ssh_auth_callback no_passphrase = [](const char*, char*, std::size_t, int, int, void*) { return -1; };
  const int imported = ssh_pki_import_privkey_file(settings.private_key.c_str(), nullptr, no_passphrase, nullptr, &raw);
  const std::unique_ptr<ssh_key_struct, KeyDeleter> key(raw);
  if (imported != SSH_OK) {
    return Error(ErrorCode::invalid, settings.place() + ": cannot read the private key " + settings.private_key +
                                         (imported == SSH_EOF ? ": no such file, or no right to read it"
                                                              : ": it is none, or it has a passphrase"));
  }
  const auto answer = until_done([&] { return ssh_userauth_publickey(session_, nullptr, key.get()); }, SSH_AUTH_AGAIN,
                                 wake, clock, deadline);
  if (answer.has_error()) {
    return Error(answer.error().code(), settings.place() + ": " + answer.error().message());
  }
  if (*answer != SSH_AUTH_SUCCESS) {
    return denied(settings, *answer == SSH_AUTH_ERROR
                                ? "login failed: " + last_error()
                                : "the server does not accept the key " + settings.private_key + " for this user");
  }
  return {};
}

template <typename Step>
Result<int> SshSession::until_done(Step step, int again, int wake, const Clock& clock, Deadline deadline) {
  for (;;) {
    const int answer = step();
    if (answer != again) {
      return answer;
    }
    const short events = static_cast<short>(POLLIN | (wants_to_write() ? POLLOUT : 0));
    std::array<pollfd, 2> watched{pollfd{descriptor(), events, 0}, pollfd{wake, POLLIN, 0}};
    SLUICE_PASS_ON(poll_until(watched, clock, deadline));
    if ((watched[1].revents & POLLIN) != 0) {
      return Error(ErrorCode::cancelled, "the tunnel is being closed");
    }
  }
}

int SshSession::descriptor() const { return ssh_get_fd(session_); }

bool SshSession::wants_to_write() const { return (ssh_get_poll_flags(session_) & SSH_WRITE_PENDING) != 0; }

bool SshSession::alive() const { return ssh_is_connected(session_) != 0; }

void SshSession::exchange() {
  // One call takes what one read(2) brings; an error shows in `alive`.
  for (int rounds = 0; rounds < 64 && ssh_event_dopoll(event_, 0) == SSH_OK; ++rounds) {
    pollfd more{descriptor(), POLLIN, 0};
    if (::poll(&more, 1, 0) <= 0) {
      return;
    }
  }
}

std::unique_ptr<SshChannel> SshSession::new_channel() {
  ssh_channel channel = ssh_channel_new(session_);
  return channel == nullptr ? nullptr : std::make_unique<SshChannel>(channel);
}

std::string SshSession::last_error() const {
  const std::string text = ssh_get_error(session_);
  return text.empty() ? "no reason given" : text;
}

}  // namespace sluice::queue::outbox
