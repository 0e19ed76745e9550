#include "host/stores/outbox/network/tcp_connect.hpp"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <future>
#include <map>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "base/signal_block.hpp"

namespace sluice::queue::outbox {

namespace {

using Addresses = std::vector<std::string>;
using Tcp = boost::asio::ip::tcp;

/// Of the system's resolver, which heeds no deadline.
Result<Addresses> look_up(const std::string& host) {
  boost::asio::io_context nothing_to_run;
  boost::system::error_code failed;
  const auto found = Tcp::resolver(nothing_to_run).resolve(host, "", failed);
  if (failed) {
    return Error(ErrorCode::unavailable, "the name \"" + host + "\" cannot be resolved: " + failed.message());
  }
  return mapped(found, [](const auto& one) { return one.endpoint().address().to_string(); });
}

/// Looks each name up on a thread of its own, which is left behind where it hangs; however many wait for a name, there
/// is one thread for it. Thread-safe.
class Resolver {
 public:
  Result<Addresses> find(const std::string& host, const Clock& clock, Deadline deadline) {
    forget_ended();
    const Found found = lookup_of(host);
    const bool in_time = found.wait_until(clock.machine_time(deadline.time())) == std::future_status::ready;
    forget_ended();
    return in_time ? found.get() : Error(ErrorCode::timeout, "the name \"" + host + "\" was not resolved in time");
  }

 private:
  using Found = std::shared_future<Result<Addresses>>;
  struct Lookup {
    Found found;
    std::jthread thread;
  };

  /// The one that is under way, or a new one.
  Found lookup_of(const std::string& host) {
    const MutexLock lock(mutex_);
    Lookup& lookup = lookups_[host];
    if (!lookup.found.valid()) {
      std::packaged_task<Result<Addresses>()> task([host] { return look_up(host); });
      lookup.found = task.get_future().share();
      const SignalBlock quiet;
      lookup.thread = std::jthread(std::move(task));
    }
    return lookup.found;
  }

  void forget_ended() {
    const MutexLock lock(mutex_);
    std::erase_if(lookups_, [](const auto& one) {
      return one.second.found.wait_for(Duration::zero()) == std::future_status::ready;
    });
  }

  Mutex mutex_;
  std::map<std::string, Lookup> lookups_ SLUICE_GUARDED_BY(mutex_);
};

Error failure(int code) {
  return {code == ETIMEDOUT ? ErrorCode::timeout : ErrorCode::unavailable,
          std::string("cannot connect: ") + std::strerror(code)};
}

Result<Descriptor> connect_to(const Tcp::endpoint& place, const Clock& clock, Deadline deadline) {
  Descriptor socket(::socket(place.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.open()) {
    return failure(errno);
  }
  const int one = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
  int code = ::connect(socket.get(), place.data(), static_cast<socklen_t>(place.size())) == 0 ? 0 : errno;
  if (code == EINPROGRESS) {
    pollfd watched{socket.get(), POLLOUT, 0};
    SLUICE_PASS_ON(poll_until(std::span(&watched, 1), clock, deadline));
    socklen_t size = sizeof(code);
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size);
  }
  return code == 0 ? Result<Descriptor>(std::move(socket)) : failure(code);
}

}  // namespace

Result<void> poll_until(std::span<pollfd> watched, const Clock& clock, Deadline deadline) {
  for (;;) {
    const Duration left = deadline.left(clock.steady_now());
    if (left == Duration::zero()) {
      return Error(ErrorCode::timeout, "no answer in time");
    }
    const auto milliseconds =
        std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, std::chrono::hours(1)));
    const int ready = ::poll(watched.data(), watched.size(), static_cast<int>(milliseconds.count()));
    if (ready > 0) {
      return {};
    }
    if (ready < 0 && errno != EINTR) {
      return Error(ErrorCode::internal, std::string("poll: ") + std::strerror(errno));
    }
  }
}

Result<std::vector<std::string>> addresses_of(const std::string& host, const Clock& clock, Deadline deadline) {
  static auto* const resolver = new Resolver();  // whose threads may outlive everything else
  boost::system::error_code is_name;
  boost::asio::ip::make_address(host, is_name);
  return is_name ? resolver->find(host, clock, deadline) : Addresses{host};
}

Result<Descriptor> connect_tcp(const std::string& host, std::uint32_t port, const Clock& clock, Deadline deadline) {
  SLUICE_TRY(addresses, addresses_of(host, clock, deadline));
  return first_reached(*addresses, clock, deadline, [&](const std::string& address, Deadline until) {
    return connect_to({boost::asio::ip::make_address(address), static_cast<std::uint16_t>(port)}, clock, until);
  });
}

}  // namespace sluice::queue::outbox
