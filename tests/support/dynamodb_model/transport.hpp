#pragma once

#include <functional>

#include "dynamo/transport/http_transport.hpp"
#include "tests/support/dynamodb_model/model.hpp"

namespace sluice::test::model {

/// The way to a model without a network: each request is answered before `send` returns, on the caller's thread.
/// Thread-safe.
class ModelTransport final : public dynamo::HttpTransport {
 public:
  /// Lets virtual time pass, such as FakeClock::advance; called with what a request took.
  using Pass = std::function<void(Duration)>;

  /// The references must outlive it. `clock` is the caller's, which deadlines are on. Without `pass` requests take no
  /// time, whatever the model says.
  ModelTransport(Model& model, const Clock& clock, Pass pass = {});

  /// A request whose answer would come after the deadline takes effect all the same; the caller gets a timeout.
  void send(dynamo::HttpRequest request, Deadline deadline, Callback done) override;

 private:
  Model& model_;
  const Clock& clock_;
  const Pass pass_;
};

}  // namespace sluice::test::model
