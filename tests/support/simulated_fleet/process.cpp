#include "tests/support/simulated_fleet/process.hpp"

#include <utility>

#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"

namespace sluice::test::sim {
namespace {

std::unique_ptr<queue::Queues> queues_of(const Scene& scene, const std::string& name, dynamo::Client& client,
                                         const Clock& clock, Random& random) {
  if (scene.layout != Layout::leased) {
    return queue::dynamomq::make_dynamomq_queues({{.host = name, .region = "eu-west-1"}}, client, clock, random);
  }
  queue::leased::LeasedOptions leased{{.host = name, .region = "eu-west-1"}};
  leased.lease = scene.lease;
  leased.own_threads = false;
  for (const std::string& queue : scene.queues) {
    leased.queues[queue] = {.shards = scene.shards};
  }
  return queue::leased::make_leased_queues(leased, client, clock, random);
}

}  // namespace

Process::Process(const Site& site, const std::string& name, std::uint64_t seed)
    : site_(site),
      random_(seed * 1000 + site.scene.seed),
      transport_(site.model, site.timeline.clock(),
                 [&timeline = site.timeline](Duration span) { timeline.clock().takes(span); }),
      credentials_(name),
      client_({{.region = "eu-west-1"}}, transport_, credentials_, site.timeline.clock(), random_),
      queues_(queues_of(site.scene, name, client_, site.timeline.clock(), random_)) {}

void Process::when(SteadyTime time, std::function<void()> act) {
  site_.timeline.at(time, [this, act = std::move(act)] {
    if (!alive_) {
      return;
    }
    if (site_.timeline.now() < frozen_until_) {
      when(frozen_until_, act);
    } else {
      act();
    }
  });
}

}  // namespace sluice::test::sim
