#include "host/runtime/store_factory.hpp"

#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "base/shell_word.hpp"
#include "host/stores/dynamomq/dynamomq_store.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/runtime/dynamodb_connection.hpp"

namespace sluice::runtime {

namespace {

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "host";
}

/// Whether `sluice` finds the host file without being told of it.
bool at_default_place(const std::string& file) { return file == "host.toml" || file == "/etc/sluice/host.toml"; }

/// How a command line names the table of a queue that no host file describes.
std::string table_options(const config::HostConfig& host, const config::QueueConfig& settings) {
  std::string options = "--table-name " + shell_word(settings.table);
  if (settings.index != queue::dynamomq::kDefaultIndexName) {
    options += " --index-name " + shell_word(settings.index);
  }
  if (!host.dynamodb_endpoint.empty()) {
    options += " --endpoint-url " + shell_word(host.dynamodb_endpoint);
  }
  return options;
}

queue::dynamomq::DynamoMqOptions dynamomq_options(const config::HostConfig& host, const std::string& region) {
  queue::dynamomq::DynamoMqOptions options;
  for (const auto& [name, settings] : host.queues) {
    options.queues[name] = {.table = settings.table,
                            .index = settings.index,
                            .options = host.file.empty() ? table_options(host, settings) : std::string()};
  }
  options.host = host.name.empty() ? machine_name() : host.name;
  options.region = region;
  options.config = at_default_place(host.file) ? std::string() : host.file;
  return options;
}

}  // namespace

class OpenStore::Parts {
 public:
  std::unique_ptr<DynamoDbConnection> connection;  ///< null for SQLite
  // After what it stands on.
  std::unique_ptr<queue::Store> store;
};

OpenStore::OpenStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
OpenStore::OpenStore(OpenStore&&) noexcept = default;
OpenStore& OpenStore::operator=(OpenStore&&) noexcept = default;
OpenStore::~OpenStore() = default;

queue::Store& OpenStore::store() { return *parts_->store; }

std::optional<DynamoDbCost> OpenStore::cost() const {
  if (!parts_->connection) {
    return std::nullopt;
  }
  return parts_->connection->cost();
}

Result<OpenStore> open_store(const config::HostConfig& host, const Clock& clock, Random& random,
                             observe::Metrics* metrics) {
  auto parts = std::make_unique<OpenStore::Parts>();
  if (host.store_kind == config::StoreKind::sqlite) {
    auto store = queue::open_sqlite_store({.path = host.sqlite_path}, clock, random);
    if (store.has_error()) {
      return store.error();
    }
    parts->store = std::move(*store);
    return OpenStore(std::move(parts));
  }
  DynamoDbConnection::Options options{host.dynamodb_region, host.dynamodb_endpoint, metrics, {}};
  for (const auto& [name, settings] : host.queues) {
    options.queues.emplace(settings.table.empty() ? name : settings.table, name);
  }
  auto connection = DynamoDbConnection::open(options, clock, random);
  if (connection.has_error()) {
    return connection.error();
  }
  parts->connection = std::move(*connection);
  parts->store = queue::dynamomq::make_dynamomq_store(dynamomq_options(host, parts->connection->region()),
                                                      parts->connection->client(), clock, random);
  return OpenStore(std::move(parts));
}

}  // namespace sluice::runtime
