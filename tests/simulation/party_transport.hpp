#pragma once

#include <cstdint>

#include "dynamo/transport/http_transport.hpp"
#include "tests/support/dynamodb_model/transport.hpp"

namespace sluice::simulation {

/// Faults that are planted on the way to the model.
struct Tampering {
  bool no_time = false;       ///< answers tell no time
  bool other_tokens = false;  ///< each try of a transaction has a client token of its own
  /// The record of an idempotency key is taken out of its transaction and written afterwards, once.
  bool keys_apart = false;
};

/// The way of one process to the model.
class PartyTransport final : public dynamo::HttpTransport {
 public:
  /// `tampering` may change later. The references outlive it.
  PartyTransport(test::model::Model& model, const Clock& clock, const Tampering& tampering)
      : inner_(model, clock), tampering_(tampering) {}

  void send(dynamo::HttpRequest request, Deadline deadline, Callback done) override;

 private:
  void send_key(dynamo::HttpRequest request, std::string put, Deadline deadline);

  test::model::ModelTransport inner_;
  const Tampering& tampering_;
  std::uint64_t tokens_ = 0;
};

}  // namespace sluice::simulation
