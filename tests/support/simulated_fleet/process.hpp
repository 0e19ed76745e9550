#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/deadline.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/queue/queues.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/simulated_fleet/scene.hpp"
#include "tests/support/simulated_fleet/sightings.hpp"
#include "tests/support/simulated_fleet/timeline.hpp"

namespace sluice::test::sim {

/// Where processes live. The references outlive them.
struct Site {
  const Scene& scene;
  Timeline& timeline;
  model::Model& model;
  Sightings& sightings;
};

/// A process with its own way to the table: the product's client and queues, in the scene's layout.
class Process {
 public:
  Process(const Site& site, const std::string& name, std::uint64_t seed);
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const Site& site() const { return site_; }
  dynamo::Client& client() { return client_; }
  queue::Queues& queues() { return *queues_; }
  Random& random() { return random_; }
  /// As far as whoever is at work has come.
  SteadyTime time() const { return site_.timeline.clock().steady_now(); }
  Deadline soon() const { return Deadline::after(site_.timeline.clock(), std::chrono::seconds(5)); }

  /// Its end, without a word.
  void kill() { alive_ = false; }
  bool alive() const { return alive_; }
  /// It does nothing until then, and then goes on as if nothing had been.
  void freeze(SteadyTime until) { frozen_until_ = until; }
  /// Done then, unless the process has ended. What a frozen one should have done it does when it goes on.
  void when(SteadyTime time, std::function<void()> act);

 private:
  const Site site_;
  SeededRandom random_;
  model::ModelTransport transport_;
  model::FixedCredentials credentials_;
  dynamo::Client client_;
  std::unique_ptr<queue::Queues> queues_;
  bool alive_ = true;
  SteadyTime frozen_until_ = SteadyTime::min();
};

}  // namespace sluice::test::sim
