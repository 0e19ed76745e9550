#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::simulation {

/// A guard that is taken away for one run, to see that the checker notices.
enum class Mutation {
  none,
  no_version_condition,  ///< the store settles for whoever asks
  leases_seem_longer,    ///< hosts believe in leases of twice the length
  attempts_without_end,  ///< hosts never give up on a message
  drain_forgets,         ///< hosts end without waiting for what they hold
  blames_all_held,       ///< whoever finds a dead host's ledger counts an attempt of all that it held
  tells_no_time,         ///< answers of a table carry no time, so that each host goes by its own clock
  // Of promises about effects, keys, order and deduplication.
  token_dropped,         ///< each try of a transaction has a client token of its own
  record_apart,          ///< a key's record is written beside the transaction of its message
  head_skipped,          ///< the next of a group goes although its head waits for a retry
  marks_without_expiry,  ///< a key's mark holds whatever has become of who made it
  dedup_mark_dropped,    ///< some messages are sent without their deduplication id
};

/// What hosts work on.
enum class Store {
  memory,    ///< queues in memory, with faults on the way to them
  dynamomq,  ///< the DynamoMQ store on a model of DynamoDB, which lags, throttles and loses answers by itself
  sqlite,    ///< the embedded store on a file, each host with its own connections, with faults on the way to them
};

/// What is done with the messages.
enum class Work {
  plain,  ///< handlers that only come to an end
  trade,  ///< groups, idempotency keys, staged effects, duplicates; on the real stores
};

struct Report {
  std::vector<std::string> violations;
  std::string story;  ///< what this seed chose, in one line
  std::uint64_t messages = 0;
  std::uint64_t handled = 0;
  std::uint64_t settlements = 0;
  std::uint64_t events = 0;
  std::uint64_t disturbances = 0;  ///< crashes, freezes, jumps, drains, messages taken away
  std::uint64_t effects = 0;       ///< transactions with effects that took effect
  std::uint64_t duplicates = 0;    ///< sends that were answered with a message sent before
};

/// Two hosts work off one queue on one thread, from one seed: first with everything going wrong that the seed chose,
/// then in peace, until every message has ended and both hosts have drained.
Report simulate(std::uint64_t seed, Mutation mutation = Mutation::none, Store store = Store::memory,
                Work work = Work::plain);

}  // namespace sluice::simulation
