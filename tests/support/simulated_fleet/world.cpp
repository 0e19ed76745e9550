#include "tests/support/simulated_fleet/world.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

#include "host/stores/dynamodb/table.hpp"
#include "host/stores/leased/leased_schema.hpp"

namespace sluice::test::sim {

using namespace std::chrono_literals;
namespace leased = queue::leased;
namespace dynamodb = queue::dynamodb;
namespace dynamomq = queue::dynamomq;

namespace {

constexpr const char* kFiller = "filler";
constexpr std::uint64_t kFillerSeed = 999;
constexpr std::uint64_t kProducerSeeds = 1'000;
constexpr Duration kBell = 300us;  // on its way to the hosts

model::ModelSettings settings_of(const Scene& scene) {
  model::ModelSettings settings;
  settings.limits.partition_write = scene.partition_write;
  settings.limits.partition_read = scene.partition_read;
  settings.faults.shortest = 2ms;
  settings.faults.longest = 6ms;
  settings.signature_life = {};
  return settings;
}

std::vector<dynamodb::TableSpec> tables_of(const Scene& scene) {
  std::vector<dynamodb::TableSpec> tables;
  if (scene.layout == Layout::leased) {
    tables.push_back({.table = std::string(leased::kDefaultTableName), .layout = dynamodb::kLeasedLayout});
    return tables;
  }
  for (const std::string& queue : scene.queues) {
    tables.push_back({.table = queue});
  }
  return tables;
}

// Of what was counted under names that mean a throttle.
std::uint64_t throttles_in(const model::ModelCounters& counters) {
  std::uint64_t count = 0;
  for (const auto& [name, times] : counters.errors) {
    const bool throttle = name.find("Throughput") != std::string::npos || name.find("Throttling") != std::string::npos;
    count += throttle ? times : 0;
  }
  return count;
}

std::uint64_t requests_in(const model::ModelCounters& counters) {
  std::uint64_t count = 0;
  for (const auto& [operation, times] : counters.requests) {
    count += times;
  }
  return count;
}

}  // namespace

World::World(const Scene& scene)
    : scene_(scene),
      model_(timeline_.clock(), scene.seed, settings_of(scene)),
      site_{scene_, timeline_, model_, sightings_} {
  model_.observe([this](const std::string&, const std::string&, const dynamo::Item* before, const dynamo::Item* after) {
    const dynamo::Item& item = after != nullptr ? *after : *before;
    const bool indexed = item.contains(std::string(dynamomq::attribute::kQueueType));
    sightings_.changed(before, after, indexed ? 1 : 0, timeline_.now());
  });
  fill();
  for (std::uint32_t i = 0; i < scene.hosts; ++i) {
    add_host();
  }
  SeededRandom random(scene.seed);
  const Producer::Habit habit{.rate = scene.rate / static_cast<double>(std::max<std::size_t>(1, scene.producers)),
                              .batch = scene.batch};
  for (std::size_t i = 0; i < scene.producers; ++i) {
    producers_.push_back(std::make_unique<Producer>(site_, "producer-" + std::to_string(i), kProducerSeeds + i, habit));
    // They know nothing of one another.
    const auto pause = static_cast<std::uint64_t>(producers_.back()->pause().count());
    const auto first = Duration(static_cast<std::int64_t>(random.next() % std::max<std::uint64_t>(1, pause)));
    producers_.back()->start(timeline_.now() + first, [this] { ring(); });
  }
  measure();
}

World::~World() {
  for (auto& host : hosts_) {
    host->kill();
  }
}

// The tables are made, and what lies there lies there, before anything is measured or limited.
void World::fill() {
  model_.spare(kFiller);
  Producer filler(site_, kFiller, kFillerSeed, {});
  for (const dynamodb::TableSpec& table : tables_of(scene_)) {
    const auto made = dynamodb::create_queue_table(filler.client(), table, timeline_.clock(),
                                                   Deadline::after(timeline_.clock(), 60s));
    if (!made) {
      throw std::runtime_error("the model makes no table: " + made.error().message());
    }
  }
  constexpr std::size_t kAtOnce = 1'000;
  for (std::size_t left = scene_.backlog; left > 0; left -= std::min(left, kAtOnce)) {
    filler.send(std::min(left, kAtOnce));
  }
}

void World::run_for(Duration span) { timeline_.run_until(timeline_.now() + span); }

void World::measure() {
  sightings_.measure(timeline_.now());
  before_ = model_.counters();
}

Report World::report() {
  Report report = sightings_.report(timeline_.now());
  const auto counters = model_.counters();
  report.write_units = counters.write_units - before_.write_units;
  report.read_units = counters.read_units - before_.read_units;
  report.requests = requests_in(counters) - requests_in(before_);
  report.throttled = throttles_in(counters) - throttles_in(before_);
  return report;
}

void World::burst(std::size_t messages, Duration span) {
  const double rate = static_cast<double>(messages) / std::chrono::duration<double>(span).count();
  const std::size_t number = producers_.size();
  producers_.push_back(std::make_unique<Producer>(site_, "producer-" + std::to_string(number), kProducerSeeds + number,
                                                  Producer::Habit{.rate = rate, .batch = 25, .left = messages}));
  producers_.back()->start(timeline_.now(), [this] { ring(); });
}

void World::ring() {
  if (!scene_.doorbell) {
    return;
  }
  timeline_.at(timeline_.clock().steady_now() + kBell, [this] {
    for (auto& host : hosts_) {
      host->rung();
    }
  });
}

void World::settle_down() {
  std::uint64_t before = 0;
  do {
    before = sightings_.hand_overs();
    run_for(3s);
  } while (sightings_.hand_overs() != before);
}

std::size_t World::orphans() {
  std::set<std::string> alive;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i]->alive()) {
      alive.insert(Host::name_of(i));
    }
  }
  std::size_t orphans = 0;
  for (const auto& item : model_.items(std::string(leased::kDefaultTableName))) {
    // An incarnation of the host, which says a little more.
    const auto* owner = dynamo::find<std::string>(item, leased::attribute::kOwner);
    orphans += owner != nullptr && !alive.contains(owner->substr(0, owner->find('/'))) ? 1 : 0;
  }
  return orphans;
}

std::size_t World::add_host() {
  hosts_.push_back(std::make_unique<Host>(site_, hosts_.size()));
  timeline_.at(timeline_.now(), [host = hosts_.back().get()] { host->start(); });
  return hosts_.size() - 1;
}

}  // namespace sluice::test::sim
