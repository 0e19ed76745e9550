#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/wake/ringer.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/table_queues.hpp"

namespace sluice::queue::dynamomq {

/// Where one queue lies.
struct TableLocation {
  std::string table;                     ///< empty: the queue's name
  std::string index{kDefaultIndexName};  ///< empty: the same
};

struct DynamoMqOptions {
  std::map<std::string, TableLocation> queues;  ///< those that differ from the defaults
  std::string host;                             ///< this host's name; part of what tells its writes from others'
  std::string region;                           ///< for messages only
  /// Told, from any thread, in one line, what people should mend although it goes on; may be empty.
  std::function<void(const std::string&)> warn{};
  /// What is put into these queues is rung for at hosts that announce themselves; nothing: nobody is rung.
  std::optional<wake::RingerOptions> ring{};
  /// Handlers may send to these, too.
  table::TableQueues::Others others{};
};

/// An announcement that is so much older than its host meant it to become is taken away by whoever announces next.
inline constexpr int kIntervalsToKeep = 10;

/// What sources of these tables can do.
inline constexpr SourceTraits kDynamoMqTraits{.sequence = true, .transactions = true, .checkpoints = true};

/// Queues in tables of DynamoMQ v0.11.0; its Go programs can work on the same tables at the same time. The references
/// must outlive them.
std::unique_ptr<table::TableQueues> make_dynamomq_queues(const DynamoMqOptions& options, dynamo::Client& client,
                                                         const Clock& clock, Random& random);

}  // namespace sluice::queue::dynamomq
