#include "host/runtime/dynamodb_connection.hpp"

#include <utility>

namespace sluice::runtime {

namespace {

constexpr const char* kNoRegion =
    "no AWS region is named; set [dynamodb] region in the host file, the variable AWS_REGION, or region in your AWS "
    "profile";

Error settings_error(const dynamo::Error& error) {
  const bool denied = error.kind == dynamo::ErrorKind::no_credentials;
  return {denied ? ErrorCode::denied : ErrorCode::invalid, error.message};
}

}  // namespace

Result<std::unique_ptr<DynamoDbConnection>> DynamoDbConnection::open(const Options& options, const Clock& clock,
                                                                     Random& random) {
  std::unique_ptr<DynamoDbConnection> made(new DynamoDbConnection(options));
  dynamo::Connection::Options connection_options{
      .region = options.region,
      .endpoint = options.endpoint,
      .observer = [connection = made.get()](const dynamo::CallRecord& call) { connection->count(call); }};
  auto connection = dynamo::Connection::open(std::move(connection_options), kNoRegion, clock, random);
  if (connection.has_error()) {
    return settings_error(connection.error());
  }
  made->connection_ = std::move(*connection);
  return made;
}

DynamoDbCost DynamoDbConnection::cost() const {
  const MutexLock lock(mutex_);
  return cost_;
}

void DynamoDbConnection::count(const dynamo::CallRecord& call) {
  if (metrics_ != nullptr) {
    const auto queue = queues_.find(call.table);
    metrics_->dynamodb_request({.operation = call.operation,
                                .table = call.table,
                                .queue = queue == queues_.end() ? call.table : queue->second,
                                .read_units = call.capacity.read,
                                .write_units = call.capacity.write,
                                .error = call.error ? dynamo::to_string(*call.error) : std::string_view(),
                                .throttled = call.error == dynamo::ErrorKind::throttled});
  }
  const MutexLock lock(mutex_);
  ++cost_.requests;
  cost_.read_units += call.capacity.read;
  cost_.write_units += call.capacity.write;
}

}  // namespace sluice::runtime
