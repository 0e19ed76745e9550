#include "host/stores/outbox/tunnel/ssh_tunnel.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/signal_block.hpp"

namespace sluice::queue::outbox {

namespace {

constexpr std::size_t kBlock = 64UL * 1024;
constexpr Duration kConnectTime = std::chrono::seconds(15);

std::string why() { return std::strerror(errno); }

}  // namespace

struct SshTunnel::Client {
  Client(Descriptor accepted, std::unique_ptr<SshChannel> opening)
      : socket(std::move(accepted)), channel(std::move(opening)) {}

  Descriptor socket;
  std::unique_ptr<SshChannel> channel;
  bool open = false;
  std::string up;             ///< read from the client and not yet taken by the server
  std::string down;           ///< the other way
  bool client_ended = false;  ///< it sends no more
  bool server_ended = false;
};

SshTunnel::SshTunnel(SshSettings settings, const Clock& clock)
    : settings_(std::move(settings)), clock_(clock), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const SignalBlock blocked;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

SshTunnel::~SshTunnel() {
  thread_.request_stop();
  wake_thread();
  thread_.join();
  if (!path_.empty()) {
    ::unlink(path_.c_str());
  }
  if (!folder_.empty()) {
    ::rmdir(folder_.c_str());
  }
}

void SshTunnel::wake_thread() const {
  const std::uint64_t one = 1;
  const auto ignored = ::write(wake_.get(), &one, sizeof(one));
  static_cast<void>(ignored);
}

Result<std::string> SshTunnel::socket(Deadline deadline) {
  MutexLock lock(mutex_);
  if (refusal_) {
    return *std::exchange(refusal_, std::nullopt);
  }
  if (!open_) {
    wanted_ = true;
    changed_.notify_all();
    const std::uint64_t before = attempts_;
    if (!changed_.wait_until(mutex_, deadline.time(),
                             [&]() SLUICE_REQUIRES(mutex_) { return open_ || attempts_ != before; })) {
      return Error(ErrorCode::timeout, settings_.place() + ": no SSH session in time");
    }
  }
  if (!open_) {
    return failure_;
  }
  return path_;
}

void SshTunnel::run(const std::stop_token& stop) {
  while (wait_for_request(stop)) {
    auto ready = prepare_folder();
    auto opened = ready.has_error()
                      ? Result<std::unique_ptr<SshSession>>(ready.error())
                      : SshSession::open(settings_, wake_.get(), clock_, Deadline::after(clock_, kConnectTime));
    told(opened);
    if (opened) {
      carry(**opened, stop);
      clients_.clear();  // their channels go before the session
      const MutexLock lock(mutex_);
      open_ = false;
    }
  }
}

bool SshTunnel::wait_for_request(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  const bool asked = changed_.wait(mutex_, stop, [&]() SLUICE_REQUIRES(mutex_) { return wanted_; });
  wanted_ = false;
  return asked && !stop.stop_requested();
}

void SshTunnel::told(Result<std::unique_ptr<SshSession>>& opened) {
  const MutexLock lock(mutex_);
  ++attempts_;
  open_ = opened.has_value();
  if (opened.has_error()) {
    failure_ = opened.error();
  }
  changed_.notify_all();
}

Result<void> SshTunnel::prepare_folder() {
  if (listener_.open()) {
    return {};
  }
  const char* parent = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): nobody writes the environment
  std::string folder = std::string(parent == nullptr || *parent == '\0' ? "/tmp" : parent) + "/sluice-ssh-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return Error(ErrorCode::unavailable, "cannot make a private folder " + folder + ": " + why());
  }
  folder_ = folder;
  const std::string path = folder + "/.s.PGSQL." + std::to_string(settings_.target_port);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Error(ErrorCode::invalid,
                 "the path of a private socket would be too long: " + path + "; set TMPDIR to a shorter folder");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (!listener.open() || ::bind(listener.get(), generic, sizeof(address)) != 0 || ::listen(listener.get(), 64) != 0) {
    return Error(ErrorCode::unavailable, "cannot listen on " + path + ": " + why());
  }
  path_ = path;
  listener_ = std::move(listener);
  return {};
}

std::vector<pollfd> SshTunnel::watched(const SshSession& session) const {
  std::vector<pollfd> list;
  list.push_back({wake_.get(), POLLIN, 0});
  list.push_back({listener_.get(), POLLIN, 0});
  list.push_back({session.descriptor(), static_cast<short>(POLLIN | (session.wants_to_write() ? POLLOUT : 0)), 0});
  for (const auto& client : clients_) {
    const bool reads = client->open && client->up.empty() && !client->client_ended;
    const int events = (reads ? POLLIN : 0) | (client->down.empty() ? 0 : POLLOUT);
    list.push_back({events == 0 ? -1 : client->socket.get(), static_cast<short>(events), 0});
  }
  return list;
}

void SshTunnel::carry(SshSession& session, const std::stop_token& stop) {
  while (!stop.stop_requested() && session.alive()) {
    auto list = watched(session);
    const auto ready = ::poll(list.data(), list.size(), -1);
    if (ready < 0 && errno != EINTR) {
      return;
    }
    if ((list[1].revents & POLLIN) != 0) {
      take_client(session);
    }
    session.exchange();
    for (auto client = clients_.begin(); client != clients_.end();) {
      client = serve(**client, session) ? client + 1 : clients_.erase(client);
    }
    if ((list[2].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
      return;
    }
  }
}

void SshTunnel::take_client(SshSession& session) {
  Descriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted.open()) {
    return;
  }
  if (auto channel = session.new_channel()) {
    clients_.push_back(std::make_unique<Client>(std::move(accepted), std::move(channel)));
  }
}

bool SshTunnel::serve(Client& client, SshSession& session) {
  if (!client.open) {
    const auto state = client.channel->advance(settings_);
    client.open = state == SshChannel::State::open;
    if (state == SshChannel::State::refused) {
      const MutexLock lock(mutex_);
      refusal_ =
          Error(ErrorCode::unavailable, settings_.place() + ": the SSH server cannot reach " + settings_.target_host +
                                            ":" + std::to_string(settings_.target_port) + ": " + session.last_error());
      return false;
    }
    if (!client.open) {
      return true;
    }
  }
  return to_server(client) && to_client(client) && !(client.server_ended && client.down.empty());
}

bool SshTunnel::to_server(Client& client) {
  std::array<char, kBlock> block{};
  for (;;) {
    if (client.up.empty() && !client.client_ended) {
      const auto count = ::recv(client.socket.get(), block.data(), block.size(), 0);
      if (count < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
      }
      client.client_ended = count == 0;
      client.up.assign(block.data(), static_cast<std::size_t>(count));
      if (client.client_ended) {
        client.channel->send_end();
      }
    }
    if (client.up.empty()) {
      return true;
    }
    const int taken = client.channel->write(client.up.data(), client.up.size());
    if (taken <= 0) {
      return taken == 0;  // the server makes room, which its socket tells
    }
    client.up.erase(0, static_cast<std::size_t>(taken));
  }
}

bool SshTunnel::to_client(Client& client) {
  std::array<char, kBlock> block{};
  for (;;) {
    if (client.down.empty()) {
      const int count = client.server_ended ? 0 : client.channel->read(block.data(), block.size());
      client.server_ended = client.server_ended || count < 0;
      if (count <= 0) {
        return true;
      }
      client.down.assign(block.data(), static_cast<std::size_t>(count));
    }
    const auto sent = ::send(client.socket.get(), client.down.data(), client.down.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
    client.down.erase(0, static_cast<std::size_t>(sent));
  }
}

}  // namespace sluice::queue::outbox
