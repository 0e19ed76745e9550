#pragma once

#include <fcntl.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "host/runtime/service.hpp"

namespace sluice::observe {

/// An operation that is awaited tells its error as a value.
inline constexpr auto kTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

/// Takes connections of a protocol and has each served by a coroutine, all on one thread that sleeps while nobody
/// comes. The oldest of too many connections makes room for the newest. What is to run beside them is posted to `io`.
template <typename Protocol>
class ConnectionServer final : public runtime::Service {
 public:
  using Acceptor = typename Protocol::acceptor;
  using Stream = std::shared_ptr<boost::beast::basic_stream<Protocol>>;
  /// Serves one connection until it returns. Whoever closes the stream has it return soon.
  using Serve = std::function<boost::asio::awaitable<void>(Stream)>;

  ConnectionServer(std::string thread, std::size_t most, Serve serve)
      : most_(most), serve_(std::move(serve)), thread_(std::move(thread)) {}
  ~ConnectionServer() override { end(); }

  boost::asio::io_context& io() { return io_; }
  /// To be listening before the start.
  Acceptor& acceptor() { return acceptor_; }

  Result<void> start() override {
    boost::asio::co_spawn(io_, accept(), boost::asio::detached);
    return thread_.start([this](const std::stop_token&) { run(); });
  }
  /// Closes all connections, whatever their clients are at.
  void stop() override { end(); }

 private:
  /// When the process has no descriptor left for a connection, the next try.
  static constexpr std::chrono::milliseconds kAcceptRetry{100};

  void end() {
    const MutexLock lock(mutex_);
    io_.stop();
    thread_.stop();
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    for (auto& [id, connection] : connections_) {
      connection->close();
    }
    connections_.clear();
  }

  /// The thread. An exception (memory) costs one connection, not the server.
  void run() {
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::exception&) {
        continue;
      }
    }
  }

  boost::asio::awaitable<void> accept() {
    while (true) {
      try {
        auto [failed, socket] = co_await acceptor_.async_accept(kTuple);
        if (failed == boost::asio::error::operation_aborted) {
          co_return;
        }
        if (failed) {
          retry_.expires_after(kAcceptRetry);
          co_await retry_.async_wait(kTuple);
        } else {
          admit(std::move(socket));
        }
      } catch (const std::exception&) {
        continue;  // memory: it costs one connection, not the server
      }
    }
  }

  void admit(typename Protocol::socket socket) {
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    if (connections_.size() >= most_) {
      connections_.begin()->second->close();
      connections_.erase(connections_.begin());
    }
    const std::uint64_t id = next_id_++;
    const auto stream = std::make_shared<boost::beast::basic_stream<Protocol>>(std::move(socket));
    connections_.emplace(id, stream);
    boost::asio::co_spawn(io_, serve_(stream), [this, id](const std::exception_ptr&) { connections_.erase(id); });
  }

  // Fixed after construction.
  const std::size_t most_;
  const Serve serve_;
  // Touched only by the thread, and by stop() once it has ended. A pending operation owns its connection and refers to
  // the map, so io_, which destroys pending operations, is declared after it.
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, Stream> connections_;
  boost::asio::io_context io_{1};
  Acceptor acceptor_{io_};
  boost::asio::steady_timer retry_{io_};
  Mutex mutex_;  ///< of those who stop it
  // Last, so that it ends before what it uses.
  runtime::ServiceThread thread_;
};

}  // namespace sluice::observe
