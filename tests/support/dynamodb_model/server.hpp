#pragma once

#include <functional>
#include <list>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "dynamo/transport/http_transport.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::test::model {

/// A model behind HTTP/1.1 on the loopback interface, a thread for each connection; ended with the object.
class ModelServer {
 public:
  /// `port` 0: a free one. The references must outlive it. Throws std::runtime_error when it cannot listen.
  ModelServer(Model& model, const Clock& clock, int port = 0);
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  int port() const { return port_; }
  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  struct Connection {
    Descriptor socket;
    bool ended = false;
    std::jthread thread;
  };
  void accept_all(const std::stop_token& stop);
  void serve(const std::stop_token& stop, Connection& connection);
  // False when the connection is to be closed.
  bool answer(const std::stop_token& stop, int socket, const dynamo::HttpRequest& request);
  void wait(const std::stop_token& stop, Duration span);

  Model& model_;
  const Clock& clock_;
  Descriptor listener_;
  int port_;
  Mutex mutex_;
  sluice::Condition stopped_;
  std::list<Connection> connections_ SLUICE_GUARDED_BY(mutex_);
  std::jthread acceptor_;
};

}  // namespace sluice::test::model
