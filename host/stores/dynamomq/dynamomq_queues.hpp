#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/table_queues.hpp"

namespace sluice::queue::dynamomq {

/// Where one queue lies.
struct TableLocation {
  std::string table;                     ///< empty: the queue's name
  std::string index{kDefaultIndexName};  ///< empty: the same
};

struct DynamoMqOptions : table::TableOptions {
  std::map<std::string, TableLocation> queues{};  ///< those that differ from the defaults
};

/// An announcement that is so much older than its host meant it to become is taken away by whoever announces next.
inline constexpr int kIntervalsToKeep = 10;

/// What sources of these tables can do.
inline constexpr SourceTraits kDynamoMqTraits{.sequence = true, .transactions = true, .checkpoints = true};

/// Queues in tables of DynamoMQ v0.11.0; its Go programs can work on the same tables at the same time.
table::TableQueues::Make in_dynamomq_tables(const DynamoMqOptions& options);

/// All of them such. The references must outlive them.
inline std::unique_ptr<table::TableQueues> make_dynamomq_queues(const DynamoMqOptions& options, dynamo::Client& client,
                                                                const Clock& clock, Random& random) {
  return std::make_unique<table::TableQueues>(options, client, clock, random, in_dynamomq_tables(options));
}

}  // namespace sluice::queue::dynamomq
