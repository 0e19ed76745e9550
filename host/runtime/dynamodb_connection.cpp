#include "host/runtime/dynamodb_connection.hpp"

#include <array>
#include <cstdio>
#include <utility>

namespace sluice::runtime {

std::string DynamoDbCost::text(std::uint64_t count, std::string_view noun) const {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "%llu requests, %.1f RCU, %.1f WCU",
                static_cast<unsigned long long>(requests), read_units, write_units);
  std::string out = text.data();
  if (count > 0) {
    const auto each = static_cast<double>(count);
    std::snprintf(text.data(), text.size(), " (%.3f, %.3f and %.2f a ", static_cast<double>(requests) / each,
                  read_units / each, write_units / each);
    out.append(text.data()).append(noun).append(")");
  }
  return out;
}

namespace {

std::string no_region(const std::string& setting) {
  return "no AWS region is named; set " + setting + ", the variable AWS_REGION, or region in your AWS profile";
}

Error settings_error(const dynamo::Error& error) {
  const bool denied = error.kind == dynamo::ErrorKind::no_credentials;
  return {denied ? ErrorCode::denied : ErrorCode::invalid, error.message};
}

/// How somebody says which region a store is in.
std::string region_setting(const config::HostConfig& host, const std::string& store) {
  if (host.file.empty()) {
    return "--region REGION";
  }
  return (store.empty() ? "[dynamodb]" : "[stores." + store + "]") + " region in " + host.file;
}

}  // namespace

DynamoDbConnection::Options DynamoDbConnection::options_of(const config::HostConfig& host, const std::string& store) {
  const config::StoreConfig& settings = store.empty() ? host.store : host.stores.at(store);
  Options options;
  options.region = settings.region;
  options.endpoint = settings.endpoint;
  options.region_setting = region_setting(host, store);
  for (const auto& [name, queue] : host.queues) {
    if (queue.store == store) {
      options.queues.emplace(host.queue(name).table, name);
    }
  }
  return options;
}

Result<std::unique_ptr<DynamoDbConnection>> DynamoDbConnection::open(const Options& options, const Clock& clock,
                                                                     Random& random) {
  std::unique_ptr<DynamoDbConnection> made(new DynamoDbConnection(options));
  dynamo::Connection::Options connection_options{
      .region = options.region,
      .endpoint = options.endpoint,
      .observer = [connection = made.get()](const dynamo::CallRecord& call) { connection->count(call); }};
  auto connection =
      dynamo::Connection::open(std::move(connection_options), no_region(options.region_setting), clock, random);
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
  const auto queue = queues_.find(call.table);
  if (book_ != nullptr) {
    book_->spent(queue == queues_.end() ? call.table : queue->second, {1, call.capacity.read, call.capacity.write});
  }
  if (metrics_ != nullptr) {
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
