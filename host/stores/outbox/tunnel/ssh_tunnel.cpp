#include "host/stores/outbox/tunnel/ssh_tunnel.hpp"

#include <fcntl.h>
#include <libssh/libssh.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/core/noncopyable.hpp>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/bell.hpp"
#include "base/mutex.hpp"
#include "base/signal_block.hpp"
#include "base/temporary_folder.hpp"
#include "base/text/joined.hpp"
#include "host/stores/outbox/network/tcp_connect.hpp"

namespace sluice::queue::outbox {

namespace {

constexpr std::size_t kBlock = 64UL * 1024;
// An SSH server that has to open a way and says nothing at all for so long is taken for gone.
constexpr Duration kPatience = std::chrono::seconds(15);
constexpr int kLookMilliseconds = 1000;  // meanwhile

struct Deleter {
  void operator()(ssh_key_struct* key) const { ssh_key_free(key); }
  void operator()(ssh_channel_struct* channel) const { ssh_channel_free(channel); }
  void operator()(ssh_event_struct* event) const { ssh_event_free(event); }
  void operator()(ssh_session_struct* session) const {
    ssh_disconnect(session);
    ssh_free(session);
  }
};
template <typename Handle>
using Owned = std::unique_ptr<Handle, Deleter>;

std::string fingerprint(ssh_session session) {
  ssh_key raw = nullptr;
  ssh_get_server_publickey(session, &raw);
  const Owned<ssh_key_struct> key(raw);
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (key == nullptr || ssh_get_publickey_hash(key.get(), SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != 0) {
    return "of unknown fingerprint";
  }
  const std::unique_ptr<char, decltype(&ssh_string_free_char)> printed(
      ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size), ssh_string_free_char);
  ssh_clean_pubkey_hash(&hash);
  return ssh_key_type_to_char(ssh_key_type(key.get())) + std::string(" ") + (printed ? printed.get() : "");
}

}  // namespace

std::string SshSettings::place() const {
  return "ssh://" + (user.empty() ? "" : user + "@") + host + ":" + std::to_string(port);
}

namespace {

/// The one boundary of libssh.
class SshTunnel final : boost::noncopyable {
 public:
  SshTunnel(SshSettings settings, const Clock& clock) : settings_(std::move(settings)), clock_(clock) {}
  ~SshTunnel() {
    thread_.request_stop();
    wake_.ring();
  }

  Result<std::string> socket(Deadline deadline) {
    MutexLock lock(mutex_);
    const bool mine = changed_.wait_until(mutex_, deadline.time(),
                                          [this]() SLUICE_REQUIRES(mutex_) { return state_ != State::changing; });
    if (!mine) {
      return Error(ErrorCode::timeout, settings_.place() + ": no SSH session in time");
    }
    if (refusal_) {
      return *std::exchange(refusal_, std::nullopt);
    }
    if (state_ == State::open) {
      return path_;
    }
    state_ = State::changing;
    lock.unlock();
    const auto opened = open(deadline);
    lock.lock();
    state_ = opened ? State::open : State::closed;
    changed_.notify_all();
    SLUICE_PASS_ON(opened);
    const SignalBlock blocked;
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return path_;
  }

 private:
  /// One who is connected to the private socket.
  struct Client {
    Descriptor socket;
    /// From the SSH server to the target; ends before the session.
    Owned<ssh_channel_struct> channel;
    SteadyTime asked_at{};  ///< for the channel
    bool open = false;
    std::string up;             ///< read from the client and not yet taken by the server
    std::string down;           ///< the other way
    bool client_ended = false;  ///< it sends no more
    bool server_ended = false;
  };

  enum class State : std::uint8_t { closed, changing, open };

  /// Carries until the session has ended.
  void run(const std::stop_token& stop) {
    const bool silent = carry(stop);
    MutexLock lock(mutex_);
    state_ = State::changing;
    refusal_ = silent ? failed({ErrorCode::unavailable,
                                "the SSH server does not answer, or does not reach " + settings_.target_host})
                      : refusal_;
    lock.unlock();
    clients_.clear();  // their channels go before the session
    close_session();
    lock.lock();
    state_ = State::closed;
    changed_.notify_all();
  }

  Result<void> open(Deadline deadline) {
    thread_ = std::jthread();  // which waits for the one of the session before
    SLUICE_PASS_ON(prepare_folder());
    auto opened = open_session(deadline);
    if (!opened) {
      close_session();
    }
    return opened;
  }

  /// Connects, checks the server's key and logs in. Errors name the server and what is wrong: denied (its key is
  /// unknown or another than before, ours is refused), invalid (a file of ours), unavailable (nobody answers).
  Result<void> open_session(Deadline deadline) {
    auto socket = connect_tcp(settings_.host, settings_.port, clock_, deadline);
    if (!socket) {
      return failed(socket.error());
    }
    session_.reset(ssh_new());
    if (session_ == nullptr) {
      return Error(ErrorCode::internal, "libssh gives no session");
    }
    SLUICE_PASS_ON(configure(socket->get()));
    socket->release();  // the session closes it from here on
    SLUICE_TRY(connected, until_done([this] { return ssh_connect(session_.get()); }, SSH_AGAIN, deadline));
    if (*connected != SSH_OK) {
      return failed({ErrorCode::unavailable, "no SSH session: " + last_error()});
    }
    SLUICE_PASS_ON(check_host_key());
    SLUICE_PASS_ON(log_in(deadline));
    event_.reset(ssh_event_new());
    if (event_ == nullptr || ssh_event_add_session(event_.get(), session_.get()) != SSH_OK) {
      return Error(ErrorCode::internal, "libssh gives no event loop");
    }
    return {};
  }
  void close_session() {
    if (event_ != nullptr) {
      ssh_event_remove_session(event_.get(), session_.get());
    }
    event_.reset();
    session_.reset();
  }

  Error failed(const Error& error) const { return {error.code(), settings_.place() + ": " + error.message()}; }
  Error denied(const std::string& what) const { return failed({ErrorCode::denied, what}); }
  /// What libssh said last.
  std::string last_error() const {
    const std::string text = ssh_get_error(session_.get());
    return text.empty() ? "no reason given" : text;
  }

  Result<void> configure(int socket) {
    ssh_set_blocking(session_.get(), 0);
    const int no = 0;
    const unsigned int port = settings_.port;
    const std::string algorithms = joined(settings_.host_key_algorithms, ",");
    bool good = ssh_options_set(session_.get(), SSH_OPTIONS_FD, &socket) == SSH_OK &&
                ssh_options_set(session_.get(), SSH_OPTIONS_PROCESS_CONFIG, &no) == SSH_OK &&
                ssh_options_set(session_.get(), SSH_OPTIONS_HOST, settings_.host.c_str()) == SSH_OK &&
                ssh_options_set(session_.get(), SSH_OPTIONS_PORT, &port) == SSH_OK;
    if (!settings_.user.empty()) {
      good = good && ssh_options_set(session_.get(), SSH_OPTIONS_USER, settings_.user.c_str()) == SSH_OK;
    }
    if (!settings_.known_hosts.empty()) {
      good = good && ssh_options_set(session_.get(), SSH_OPTIONS_KNOWNHOSTS, settings_.known_hosts.c_str()) == SSH_OK &&
             ssh_options_set(session_.get(), SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") == SSH_OK;
    }
    if (!good) {
      return failed({ErrorCode::invalid, last_error()});
    }
    if (!algorithms.empty() && ssh_options_set(session_.get(), SSH_OPTIONS_HOSTKEYS, algorithms.c_str()) != SSH_OK) {
      return failed({ErrorCode::invalid, "'host_key_algorithms' has none that libssh knows: " + algorithms});
    }
    return {};
  }

  Result<void> check_host_key() {
    if (!settings_.check_host_key) {
      return {};
    }
    const std::string file = settings_.known_hosts.empty() ? "~/.ssh/known_hosts" : settings_.known_hosts;
    switch (ssh_session_is_known_server(session_.get())) {
      case SSH_KNOWN_HOSTS_OK:
        return {};
      case SSH_KNOWN_HOSTS_CHANGED:
        return denied("the server's key (" + fingerprint(session_.get()) + ") is not the one that " + file +
                      " has for it; either it was exchanged, or somebody stands in between");
      case SSH_KNOWN_HOSTS_OTHER:
        return denied(file + " has a key of another kind for the server than the " + fingerprint(session_.get()) +
                      " that it shows; add this one, or name its kind in 'host_key_algorithms'");
      case SSH_KNOWN_HOSTS_NOT_FOUND:
      case SSH_KNOWN_HOSTS_UNKNOWN:
        return denied("the server's key (" + fingerprint(session_.get()) + ") is unknown: " + file +
                      " does not have it; if it is right, add it with `ssh-keyscan -p " +
                      std::to_string(settings_.port) + " " + settings_.host + " >> " + file + "`");
      case SSH_KNOWN_HOSTS_ERROR:
        break;
    }
    return denied("the server's key cannot be checked: " + last_error());
  }

  Result<void> log_in(Deadline deadline) {
    ssh_key raw = nullptr;
    // A callback in the place of the passphrase keeps libssh from asking on a terminal.
    const ssh_auth_callback no_passphrase = [](const char*, char*, std::size_t, int, int, void*) { return -1; };
    const int imported =
        ssh_pki_import_privkey_file(settings_.private_key.c_str(), nullptr, no_passphrase, nullptr, &raw);
    const Owned<ssh_key_struct> key(raw);
    if (imported != SSH_OK) {
      return failed({ErrorCode::invalid, "cannot read the private key " + settings_.private_key +
                                             (imported == SSH_EOF ? ": no such file, or no right to read it"
                                                                  : ": it is none, or it has a passphrase")});
    }
    SLUICE_TRY(answer, until_done([&] { return ssh_userauth_publickey(session_.get(), nullptr, key.get()); },
                                  SSH_AUTH_AGAIN, deadline));
    if (*answer != SSH_AUTH_SUCCESS) {
      return denied(*answer == SSH_AUTH_ERROR
                        ? "login failed: " + last_error()
                        : "the server does not accept the key " + settings_.private_key + " for this user");
    }
    return {};
  }

  template <typename Step>
  Result<int> until_done(Step step, int again, Deadline deadline) {
    for (;;) {
      const int answer = step();
      if (answer != again) {
        return answer;
      }
      pollfd watched = session_events();
      if (const auto ready = poll_until(std::span(&watched, 1), clock_, deadline); !ready) {
        return failed(ready.error());
      }
    }
  }

  /// The session's socket: read, and written while bytes wait to be sent.
  pollfd session_events() const {
    const bool writes = (ssh_get_poll_flags(session_.get()) & SSH_WRITE_PENDING) != 0;
    return {ssh_get_fd(session_.get()), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0};
  }

  Result<void> prepare_folder() {
    if (listener_.open()) {
      return {};
    }
    auto folder = TemporaryFolder::make("sluice-ssh");
    if (!folder) {  // not what the database refuses, and a full disk passes
      return Error(ErrorCode::unavailable, folder.error().message());
    }
    const std::string path = (*folder)->path() + "/.s.PGSQL." + std::to_string(settings_.target_port);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) {
      return Error(ErrorCode::invalid,
                   "the path of a private socket would be too long: " + path + "; set TMPDIR to a shorter folder");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (!listener.open() || ::bind(listener.get(), generic, sizeof(address)) != 0 ||
        ::listen(listener.get(), 64) != 0) {
      return Error(ErrorCode::unavailable, "cannot listen on " + path + ": " + std::strerror(errno));
    }
    folder_ = std::move(*folder);
    path_ = path;
    listener_ = std::move(listener);
    return {};
  }

  /// True: until the server did not answer any more.
  bool carry(const std::stop_token& stop) {
    SteadyTime heard_at = clock_.steady_now();
    while (!stop.stop_requested() && ssh_is_connected(session_.get()) != 0) {
      auto list = watched();
      const bool waits = first_unanswered() != SteadyTime::max();
      const int patience = moved_ ? 0 : waits ? kLookMilliseconds : -1;
      if (::poll(list.data(), list.size(), patience) < 0 && errno != EINTR) {
        return false;
      }
      if ((list[1].revents & POLLIN) != 0) {
        take_client();
      }
      // Takes what has arrived, for all channels, and sends what waits; does not block. An error shows in whether the
      // session is connected.
      ssh_event_dopoll(event_.get(), 0);
      moved_ = false;
      for (auto client = clients_.begin(); client != clients_.end();) {
        client = serve(**client) ? client + 1 : clients_.erase(client);
      }
      if ((list[2].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
        return false;
      }
      const SteadyTime now = clock_.steady_now();
      heard_at = (list[2].revents & POLLIN) != 0 ? now : heard_at;
      const SteadyTime asked_at = first_unanswered();
      if (asked_at != SteadyTime::max() && now - std::max(asked_at, heard_at) >= kPatience) {
        return true;
      }
    }
    return false;
  }
  SteadyTime first_unanswered() const {
    SteadyTime first = SteadyTime::max();
    for (const auto& client : clients_) {
      first = client->open ? first : std::min(first, client->asked_at);
    }
    return first;
  }

  std::vector<pollfd> watched() const {
    std::vector<pollfd> list{{wake_.descriptor(), POLLIN, 0}, {listener_.get(), POLLIN, 0}, session_events()};
    for (const auto& client : clients_) {
      const bool reads = client->open && client->up.empty() && !client->client_ended;
      const int events = (reads ? POLLIN : 0) | (client->down.empty() ? 0 : POLLOUT);
      list.push_back({events == 0 ? -1 : client->socket.get(), static_cast<short>(events), 0});
    }
    return list;
  }

  void take_client() {
    Descriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted.open()) {
      return;
    }
    if (const auto channel = ssh_channel_new(session_.get())) {
      clients_.push_back(std::make_unique<Client>());
      clients_.back()->socket = std::move(accepted);
      clients_.back()->channel.reset(channel);
      clients_.back()->asked_at = clock_.steady_now();
    }
  }

  /// False when it is over with this client.
  bool serve(Client& client) {
    if (!client.open) {
      const int answer = ssh_channel_open_forward(client.channel.get(), settings_.target_host.c_str(),
                                                  static_cast<int>(settings_.target_port), "localhost", 0);
      client.open = answer == SSH_OK;
      if (!client.open && answer != SSH_AGAIN) {
        const MutexLock lock(mutex_);
        refusal_ = failed({ErrorCode::unavailable, "the SSH server cannot reach " + settings_.target_host + ":" +
                                                       std::to_string(settings_.target_port) + ": " + last_error()});
        return false;
      }
      if (!client.open) {
        return true;
      }
    }
    return to_server(client) && to_client(client) && !(client.server_ended && client.down.empty());
  }

  bool to_server(Client& client) {
    const ssh_channel channel = client.channel.get();
    if (client.up.empty() && !client.client_ended) {
      std::array<char, kBlock> block{};
      const auto count = ::recv(client.socket.get(), block.data(), block.size(), 0);
      if (count < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      }
      client.client_ended = count == 0;
      client.up.assign(block.data(), static_cast<std::size_t>(count));
      moved_ = true;
      if (client.client_ended) {
        ssh_channel_send_eof(channel);
      }
    }
    if (client.up.empty()) {
      return true;
    }
    // Where there is no room the server makes some, which its socket tells.
    const auto room = std::min<std::size_t>(client.up.size(), ssh_channel_window_size(channel));
    const int taken = room == 0 ? 0 : ssh_channel_write(channel, client.up.data(), static_cast<std::uint32_t>(room));
    client.up.erase(0, static_cast<std::size_t>(std::max(taken, 0)));
    if (taken == SSH_ERROR) {
      // Nobody takes it any more. What the server said last is still to be carried.
      client.up.clear();
      client.client_ended = true;
      ssh_channel_send_eof(channel);
    }
    return true;
  }

  bool to_client(Client& client) {
    const ssh_channel channel = client.channel.get();
    std::array<char, kBlock> block{};
    for (;;) {
      if (client.down.empty()) {
        const int count =
            client.server_ended ? 0 : ssh_channel_read_nonblocking(channel, block.data(), block.size(), 0);
        if (count <= 0) {
          client.server_ended = client.server_ended || count == SSH_EOF || count == SSH_ERROR ||
                                ssh_channel_is_eof(channel) != 0 || ssh_channel_is_closed(channel) != 0;
          return true;
        }
        client.down.assign(block.data(), static_cast<std::size_t>(count));
        moved_ = true;
      }
      const auto sent = ::send(client.socket.get(), client.down.data(), client.down.size(), MSG_NOSIGNAL);
      if (sent < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      }
      client.down.erase(0, static_cast<std::size_t>(sent));
    }
  }

  // Fixed after construction.
  const SshSettings settings_;
  const Clock& clock_;
  const Bell wake_;

  // Touched by whoever opens the session, and by the thread while it is open.
  std::unique_ptr<TemporaryFolder> folder_;
  std::string path_;
  Descriptor listener_;
  Owned<ssh_session_struct> session_;
  Owned<ssh_event_struct> event_;
  std::vector<std::unique_ptr<Client>> clients_;
  /// A client was served, by which the library may have taken in what is another one's.
  bool moved_ = false;

  Mutex mutex_;
  Condition changed_;
  State state_ SLUICE_GUARDED_BY(mutex_) = State::closed;
  std::optional<Error> refusal_ SLUICE_GUARDED_BY(mutex_);  ///< of a way to the database, since the last call

  std::jthread thread_;
};

}  // namespace

Tunnel make_ssh_tunnel(SshSettings settings, const Clock& clock) {
  const auto tunnel = std::make_shared<SshTunnel>(std::move(settings), clock);
  return [tunnel](Deadline deadline) { return tunnel->socket(deadline); };
}

}  // namespace sluice::queue::outbox
