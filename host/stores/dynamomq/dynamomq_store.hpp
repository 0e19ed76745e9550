#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/queue/store.hpp"

namespace sluice::queue::dynamomq {

/// Where one queue lies.
struct TableLocation {
  std::string table;                     ///< empty: the queue's name
  std::string index{kDefaultIndexName};  ///< empty: the same
  std::string options;                   ///< as QueueTable's
};

struct DynamoMqOptions {
  std::map<std::string, TableLocation> queues;  ///< those that differ from the defaults
  std::string host;                             ///< this host's name; part of what tells its writes from others'
  std::string region;                           ///< for messages only
  std::string config;  ///< for messages: the host file where `sluice` must be told of it; else empty
};

/// Makes a Store on tables of DynamoMQ v0.11.0; its Go programs can work on the same tables at the same time.
///
/// The references must outlive the store. `client.stop()` ends what is under way. Two stores on one table should differ
/// in host name or seed, because both go into the nonce by which a store recognises its own writes.
std::unique_ptr<Store> make_dynamomq_store(DynamoMqOptions options, dynamo::Client& client, const Clock& clock,
                                           Random& random);

}  // namespace sluice::queue::dynamomq
