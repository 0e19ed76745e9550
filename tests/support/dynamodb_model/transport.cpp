#include "tests/support/dynamodb_model/transport.hpp"

#include <algorithm>
#include <utility>

namespace sluice::test::model {
namespace {

dynamo::Error unknown(dynamo::ErrorKind kind, const char* message) {
  dynamo::Error error(kind, message);
  error.outcome_unknown = true;
  return error;
}

}  // namespace

ModelTransport::ModelTransport(Model& model, const Clock& clock, Pass pass)
    : model_(model), clock_(clock), pass_(std::move(pass)) {}

void ModelTransport::send(dynamo::HttpRequest request, Deadline deadline, Callback done) {
  ModelAnswer answer = model_.handle(request);
  const Duration left = deadline.left(clock_.steady_now());
  const bool too_late = pass_ && answer.latency > left;
  if (pass_) {
    pass_(std::min(answer.latency, left));
  }
  if (answer.delivery == ModelAnswer::Delivery::refused) {
    return done(dynamo::Error(dynamo::ErrorKind::transport, "cannot connect to the model of DynamoDB: refused"));
  }
  if (too_late) {
    return done(unknown(dynamo::ErrorKind::timeout, "no answer from the model of DynamoDB in time"));
  }
  if (answer.delivery == ModelAnswer::Delivery::lost) {
    return done(
        unknown(dynamo::ErrorKind::transport, "the model of DynamoDB closed the connection before it answered"));
  }
  done(std::move(answer.response));
}

}  // namespace sluice::test::model
