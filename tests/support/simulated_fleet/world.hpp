#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/simulated_fleet/host.hpp"
#include "tests/support/simulated_fleet/producer.hpp"

namespace sluice::test::sim {

/// Hosts, producers and a table under virtual time, on one thread: the product's own sources and senders on the model
/// of DynamoDB, with its limits and latencies.
class World {
 public:
  explicit World(const Scene& scene);
  ~World();

  void run_for(Duration span);
  /// What has been seen is forgotten, and what happens from now on is counted.
  void measure();
  Report report();
  /// Until nobody has taken or handed over a shard for three seconds.
  void settle_down();
  /// Shards that nobody has, or somebody who does not live.
  std::size_t orphans();

  // What happens.

  /// So many messages come beside the others, in batches over that time.
  void burst(std::size_t messages, Duration span);
  std::size_t add_host();
  /// Its process ends without a word.
  void kill(std::size_t host) { hosts_.at(host)->kill(); }
  /// It hands over what it owns, and ends.
  void leave(std::size_t host) { hosts_.at(host)->leave(); }
  /// It does nothing for so long, and then goes on as if nothing had been.
  void freeze(std::size_t host, Duration span) { hosts_.at(host)->freeze(timeline_.now() + span); }

 private:
  void fill();
  void ring();

  const Scene scene_;
  Timeline timeline_;
  model::Model model_;
  Sightings sightings_;
  const Site site_;
  model::ModelCounters before_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Producer>> producers_;
};

}  // namespace sluice::test::sim
