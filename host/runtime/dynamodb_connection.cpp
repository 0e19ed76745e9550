#include "host/runtime/dynamodb_connection.hpp"

#include <utility>

#include "dynamo/credentials/chain.hpp"
#include "dynamo/settings.hpp"

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
  const auto environment = dynamo::AwsEnvironment::of_process();
  const auto settings = dynamo::resolve_settings(environment);
  if (settings.has_error()) {
    return settings_error(settings.error());
  }
  dynamo::ClientOptions client_options;
  client_options.region = options.region.empty() ? settings->region : options.region;
  client_options.endpoint = options.endpoint.empty() ? settings->endpoint : options.endpoint;
  client_options.use_fips = settings->use_fips;
  client_options.use_dual_stack = settings->use_dual_stack;
  client_options.account_id_endpoint_mode = settings->account_id_endpoint_mode;
  if (client_options.region.empty()) {
    return Error(ErrorCode::invalid, kNoRegion);
  }
  std::unique_ptr<DynamoDbConnection> made(new DynamoDbConnection(clock, options.metrics));
  client_options.observer = [connection = made.get()](const dynamo::CallRecord& call) { connection->count(call); };
  made->region_ = client_options.region;
  made->transport_.start();
  made->credentials_ = dynamo::make_default_chain(environment, made->transport_, clock, random);
  made->client_ =
      std::make_unique<dynamo::Client>(std::move(client_options), made->transport_, *made->credentials_, clock, random);
  return made;
}

DynamoDbConnection::~DynamoDbConnection() {
  if (client_) {
    client_->stop();
  }
  // Its callbacks reach into client and credentials, so it ends before they do.
  transport_.stop();
}

DynamoDbCost DynamoDbConnection::cost() const {
  const MutexLock lock(mutex_);
  return cost_;
}

void DynamoDbConnection::count(const dynamo::CallRecord& call) {
  if (metrics_ != nullptr) {
    const bool throttled = call.error == dynamo::ErrorKind::throttled;
    metrics_->dynamodb_request(call.operation, call.table, call.capacity.read, call.capacity.write,
                               call.error ? dynamo::to_string(*call.error) : std::string_view(), throttled);
  }
  const MutexLock lock(mutex_);
  ++cost_.requests;
  cost_.read_units += call.capacity.read;
  cost_.write_units += call.capacity.write;
}

}  // namespace sluice::runtime
