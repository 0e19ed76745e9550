#pragma once

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::test {

/// What goes wrong with a request that comes through a gate.
enum class Fault {
  none,
  reset_on_accept,      ///< the connection is reset before anything is read
  stall,                ///< the request is read and acted on, and never answered
  reset_after_request,  ///< the same, and the connection is reset
  close_after_request,  ///< the same, and the connection is closed in good order
  cut_in_body,          ///< half of the answer's body arrives, then the end
  corrupt,              ///< one byte of the answer's body is changed
  garbage,              ///< the answer is not HTTP
  endless_header,       ///< the answer's header does not end
  drip,                 ///< the answer arrives byte by byte
};

/// A small HTTP/1.1 server on loopback, with a thread of its own, that breaks connections to order: in front of another
/// server (`forward_to`) or with answers of its own.
class TcpGate {
 public:
  /// Makes the whole answer, header and body, to a whole request. Called on the gate's thread.
  using Responder = std::function<std::string(const std::string& request)>;

  explicit TcpGate(Responder responder);
  ~TcpGate();
  TcpGate(const TcpGate&) = delete;
  TcpGate& operator=(const TcpGate&) = delete;

  /// An answer with a body and its length.
  static std::string response(int status, const std::string& body, const std::string& extra_headers = "");
  /// Hands requests on to a server on 127.0.0.1.
  static Responder forward_to(int port);

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }

  /// The next `times` requests (or connections, for reset_on_accept) meet the fault; then the gate has recovered.
  void break_next(Fault fault, int times = 1);
  /// No new connections, and the open ones are reset, until open().
  void close();
  void open();

  /// Requests read so far, and connections accepted.
  std::size_t requests() const;
  std::size_t connections() const;
  std::string last_request() const;
  void wait_for_requests(std::size_t count);

 private:
  struct Connection {
    Descriptor socket;
    std::string incoming;
    std::string outgoing;  ///< what drips
    bool stalled = false;
  };

  void run(const std::stop_token& stop);
  void accept_one();
  bool serve(Connection& connection);
  bool answer(Connection& connection, const std::string& request);
  bool drip(Connection& connection);
  Fault take_fault(bool accepting);
  void wake();

  // Fixed after construction.
  const Responder responder_;
  int port_ = 0;
  Descriptor wake_;

  mutable Mutex mutex_;
  Condition changed_;
  // Guarded by mutex_.
  Fault fault_ SLUICE_GUARDED_BY(mutex_) = Fault::none;
  int fault_times_ SLUICE_GUARDED_BY(mutex_) = 0;
  bool want_open_ SLUICE_GUARDED_BY(mutex_) = true;
  bool is_open_ SLUICE_GUARDED_BY(mutex_) = true;
  std::size_t requests_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::size_t connections_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::string last_request_ SLUICE_GUARDED_BY(mutex_);

  // Touched only by the gate's thread.
  Descriptor listener_;
  std::map<int, Connection> open_connections_;

  std::jthread thread_;
};

}  // namespace sluice::test
