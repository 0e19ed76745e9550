#include <utility>

#include "client/src/core.hpp"
#include "dynamo/connection.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace sluice::client {
namespace {

// A file takes a whole lot in one transaction, and the larger that is, the less each message waits for the disk.
constexpr std::size_t kSqliteLot = 2'000;
constexpr const char* kQueueFile = "queue file";

/// A store with the machine's clock, and the client it stands on when that is DynamoDB's. Each part uses those before
/// it.
struct OwnedStore {
  SystemClock clock;
  SeededRandom random;
  std::unique_ptr<dynamo::Connection> connection;
  std::unique_ptr<queue::Queues> queues;
};

/// Connects to DynamoDB as `queue`, a `type`, says, and fills in what all layouts have.
template <typename Queue, typename Layout>
Result<std::unique_ptr<OwnedStore>> connect(const Queue& queue, const std::string& type, const ClientOptions& options,
                                            Layout& layout) {
  auto owned = std::make_unique<OwnedStore>();
  auto connection = dynamo::Connection::open(
      {.region = queue.region, .endpoint = queue.endpoint, .observer = {}},
      "no AWS region is named; set " + type + "::region, the variable AWS_REGION, or region in your AWS profile",
      owned->clock, owned->random);
  if (!connection) {
    return Error(ErrorKind::dynamodb_api, connection.error().message);
  }
  owned->connection = std::move(*connection);
  layout.warn = options.on_warning;
  layout.region = owned->connection->region();
  if (options.ring_hosts) {
    layout.ring = options.wake_secret;
  }
  return owned;
}

Result<QueueClient> client_of(std::unique_ptr<OwnedStore> owned, detail::Core::Settings settings) {
  const detail::Seams seams{*owned->queues, owned->clock, owned->random};
  return detail::Core::client(seams, std::move(settings), std::move(owned));
}

}  // namespace

Result<QueueClient> QueueClient::open(const DynamoDbQueue& queue, const ClientOptions& options) {
  queue::dynamomq::DynamoMqOptions layout;
  layout.queues[queue.table] = {.table = queue.table, .index = queue.index};
  auto owned = connect(queue, "DynamoDbQueue", options, layout);
  if (!owned) {
    return owned.error();
  }
  OwnedStore& store = **owned;
  store.queues = queue::dynamomq::make_dynamomq_queues(layout, store.connection->client(), store.clock, store.random);
  return client_of(std::move(*owned), {.queue = queue.table, .options = options});
}

Result<QueueClient> QueueClient::open(const LeasedQueue& queue, const ClientOptions& options) {
  namespace leased = queue::leased;
  if (queue.queue.empty()) {
    return Error(ErrorKind::building_expression, "LeasedQueue::queue is empty; name the queue");
  }
  if (queue.shards < leased::kLeastShards || queue.shards > leased::kMostShards) {
    return Error(ErrorKind::building_expression, "LeasedQueue::shards is " + std::to_string(queue.shards) +
                                                     ", and a queue has " + std::to_string(leased::kLeastShards) +
                                                     " to " + std::to_string(leased::kMostShards));
  }
  leased::LeasedOptions layout;
  layout.queues[queue.queue] = {.table = queue.table, .shards = queue.shards};
  auto owned = connect(queue, "LeasedQueue", options, layout);
  if (!owned) {
    return owned.error();
  }
  OwnedStore& store = **owned;
  store.queues = leased::make_leased_queues(layout, store.connection->client(), store.clock, store.random);
  return client_of(std::move(*owned), {.queue = queue.queue, .options = options, .store_makes_ids = true});
}

Result<QueueClient> QueueClient::open(const SqliteQueue& queue, const ClientOptions& options) {
  if (queue.queue.empty()) {
    return Error(ErrorKind::building_expression, "SqliteQueue::queue is empty; name the queue");
  }
  auto owned = std::make_unique<OwnedStore>();
  auto queues = queue::open_sqlite_queues({.path = queue.path, .durable = queue.durable}, owned->clock, owned->random);
  if (!queues) {
    const bool damaged = queues.error().code() == ErrorCode::corrupt;
    return Error(damaged ? ErrorKind::unmarshaling_attribute : ErrorKind::dynamodb_api, queues.error().message())
        .with(queues.error().transient(), kQueueFile);
  }
  owned->queues = std::move(*queues);
  return client_of(std::move(owned),
                   {.queue = queue.queue, .options = options, .store_name = kQueueFile, .send_lot = kSqliteLot});
}

}  // namespace sluice::client
