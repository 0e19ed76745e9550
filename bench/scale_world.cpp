#include "bench/scale_world.hpp"

#include <cmath>
#include <iterator>
#include <utility>

#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/queue/doorbell.hpp"
#include "host/stores/dynamomq/effect_layout.hpp"
#include "host/stores/leased/leased_borrower.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_sender.hpp"
#include "host/stores/leased/leased_source.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/transport.hpp"

namespace sluice::bench {

using namespace std::chrono_literals;
using queue::Completion;
using queue::Delivery;
using queue::Half;
using queue::QueueAddress;
namespace leased = queue::leased;
namespace dynamomq = queue::dynamomq;

namespace {

constexpr const char* kTable = "queues";
const QueueAddress kAddress{"orders", Half::standard};
constexpr Duration kNever = std::chrono::hours(1000);

test::model::ModelSettings settings_of(const Scene& scene) {
  test::model::ModelSettings settings;
  settings.limits.partition_write = scene.partition_write;
  settings.limits.partition_read = scene.partition_read;
  settings.faults.shortest = 2ms;
  settings.faults.longest = 6ms;
  settings.signature_life = {};
  return settings;
}

}  // namespace

Duration Report::latency(double share) const {
  if (latencies.empty()) {
    return {};
  }
  std::vector<Duration> sorted = latencies;
  std::sort(sorted.begin(), sorted.end());
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

Duration Report::longest_pause() const {
  std::size_t longest = 0;
  std::size_t pause = 0;
  for (const std::uint32_t begun : per_tick) {
    pause = begun == 0 ? pause + 1 : 0;
    longest = std::max(longest, pause);
  }
  return World::kTick * static_cast<std::int64_t>(longest);
}

/// A process with its own client.
class World::Party {
 public:
  Party(World& world, const std::string& name, std::uint64_t seed)
      : world_(world),
        random_(seed * 1000 + world.scene_.seed),
        transport_(world.model_, world.clock_, [&world](Duration span) { world.clock_.takes(span); }),
        credentials_(name),
        client_({.region = "eu-west-1"}, transport_, credentials_, world.clock_, random_),
        nonces_(name, random_),
        table_clock_(client_, world.clock_, {}),
        runner_(client_, world.clock_, random_, {}),
        locate_([](const std::string& queue) {
          return dynamomq::QueueTable{queue, kTable, "", ""};
        }),
        layouts_([this](const std::string& queue) { return leased::make_leased_layout(parts_, locate_(queue), {}); }),
        parts_{client_, table_clock_, runner_, nonces_, locate_, layouts_},
        queue_(locate_(kAddress.queue), world.scene_.shards, parts_) {}

  dynamo::Client& client() { return client_; }

 protected:
  Deadline soon() const { return Deadline::after(world_.clock_, 5s); }

  World& world_;
  SeededRandom random_;
  test::model::ModelTransport transport_;
  test::model::FixedCredentials credentials_;
  dynamo::Client client_;
  dynamomq::NonceSource nonces_;
  dynamomq::TableClock table_clock_;
  dynamomq::StatementRunner runner_;
  const dynamomq::QueueLocator locate_;
  const dynamomq::EffectLayouts layouts_;
  const dynamomq::StoreParts parts_;
  leased::LeasedQueue queue_;
  queue::Doorbell doorbell_;
};

class World::Producer : public Party {
 public:
  static constexpr std::size_t kBatch = 25;

  Producer(World& world, std::size_t number, double rate)
      : Party(world, "producer-" + std::to_string(number), 1'000 + number),
        sender_(leased::LeasedParts{parts_, random_}, queue_, doorbell_),
        pause_(rate > 0 ? Duration(static_cast<std::int64_t>(1e9 * kBatch / rate)) : kNever) {}

  void send(std::size_t count) {
    std::vector<queue::NewMessage> messages(count);
    for (queue::NewMessage& message : messages) {
      message.body.assign(world_.scene_.bytes, 'x');
    }
    for (const auto& result : sender_.send(messages, soon())) {
      if (result.status == queue::SendStatus::sent) {
        world_.sent(result.id, world_.clock_.steady_now());
      }
    }
  }
  Duration pause() const { return pause_; }
  void go_on() {
    const SteadyTime next = world_.now_ + pause_;
    send(kBatch);
    world_.ring();
    world_.at(std::max(next, world_.clock_.steady_now()), [this] { go_on(); });
  }

 private:
  leased::LeasedSender sender_;
  const Duration pause_;
};

/// A host's poller, settler and housekeeping, each an event; its workers are times at which they are free.
class World::Host : public Party {
 public:
  Host(World& world, std::size_t number)
      : Party(world, "host-" + std::to_string(number), 10'000 + number),
        table_({.keeping = {.table = kTable, .host = "host-" + std::to_string(number), .lease = world.scene_.lease},
                .own_thread = false},
               parts_, world.clock_, random_),
        half_(table_.half({.address = kAddress, .shards = world.scene_.shards}, queue_.place,
                          {.settle =
                               [this](std::span<const Completion> completions,
                                      std::span<const std::optional<leased::Held>> held, Deadline deadline) {
                                 return leased::LeasedWriter(parts_, queue_.place, Half::standard, state_)
                                     .settle(completions, held, deadline);
                               }})),
        source_(table_, half_,
                std::make_unique<leased::LeasedBorrower>(
                    parts_, queue_.place, Half::standard, state_,
                    [shards = world.scene_.shards](Deadline) { return Result<std::uint32_t>(shards); }),
                doorbell_, world.clock_) {}

  void start() {
    source_.start({.on_ready = [this] { call_poller(world_.clock_.steady_now()); }, .lost = {}});
    call_poller(world_.clock_.steady_now());
    tend();
  }
  void kill() { alive_ = false; }
  bool alive() const { return alive_; }
  void freeze(SteadyTime until) { frozen_until_ = until; }
  void leave() {
    if (alive_ && !leaving_) {
      leaving_ = true;
      go();
    }
  }
  void rung() {
    if (alive_ && !leaving_) {
      doorbell_.ring(kAddress);
    }
  }

 private:
  struct Running {
    SteadyTime ends_at;
    queue::Receipt receipt;
    bool operator>(const Running& other) const { return ends_at > other.ends_at; }
  };

  // What a frozen process should have done it does when it goes on.
  void when(SteadyTime time, void (Host::*act)()) {
    world_.at(time, [this, act] {
      if (!alive_) {
        return;
      }
      if (world_.now_ < frozen_until_) {
        when(frozen_until_, act);
      } else {
        (this->*act)();
      }
    });
  }
  void call_poller(SteadyTime time) {
    if (!poll_at_ || time < *poll_at_) {
      poll_at_ = time;
      when(time, &Host::poll);
    }
  }
  std::size_t busy(SteadyTime now) const {
    return static_cast<std::size_t>(
        std::count_if(busy_until_.begin(), busy_until_.end(), [&](SteadyTime end) { return end > now; }));
  }

  void poll() {
    const SteadyTime now = world_.now_;
    if (!poll_at_ || *poll_at_ > now || leaving_) {
      return;  // called for another time since
    }
    poll_at_.reset();
    std::erase_if(busy_until_, [&](SteadyTime end) { return end <= now; });
    if (busy_until_.size() >= world_.scene_.workers) {
      call_poller(*std::min_element(busy_until_.begin(), busy_until_.end()));
      return;
    }
    if (again_.size() + running_.size() > 3 * world_.scene_.workers) {
      call_poller(now + 10ms);  // what is done has to be written first
      return;
    }
    const std::size_t free = world_.scene_.workers - busy_until_.size();
    const auto claimed = source_.claim({.max = free, .visibility = 60s}, soon());
    const SteadyTime after = world_.clock_.steady_now();
    if (!claimed) {
      call_poller(after + 50ms);
      return;
    }
    for (const Delivery& delivery : claimed->deliveries) {
      world_.began(delivery.message.id, after);
      busy_until_.push_back(after + world_.scene_.handler);
      running_.push({after + world_.scene_.handler, delivery.receipt});
      call_settler(after + world_.scene_.handler);
    }
    if (!claimed->deliveries.empty()) {
      pause_ = 10ms;
      call_poller(after);
    } else {
      const Duration wait = std::min(pause_, claimed->next_due.value_or(pause_));
      pause_ = std::min<Duration>(1s, pause_ * 2);
      call_poller(after + std::max<Duration>(1ms, wait));
    }
  }

  void call_settler(SteadyTime time) {
    if (!settle_at_) {
      settle_at_ = time;
      when(time, &Host::settle);
    }
  }
  void settle() {
    settle_at_.reset();
    std::vector<Completion> done = std::move(again_);
    again_.clear();
    while (!running_.empty() && running_.top().ends_at <= world_.now_) {
      done.push_back({.receipt = running_.top().receipt});
      running_.pop();
    }
    if (!done.empty()) {
      const auto results = source_.settle(done, soon());
      for (std::size_t i = 0; i < done.size(); ++i) {
        if (results[i].status == queue::SettleStatus::failed) {
          again_.push_back(done[i]);
        } else if (results[i].status == queue::SettleStatus::applied) {
          ++world_.seen_.done;
        }
      }
    }
    const SteadyTime after = world_.clock_.steady_now();
    if (!again_.empty()) {
      call_settler(after + 10ms);
    } else if (!running_.empty()) {
      call_settler(std::max(after, running_.top().ends_at));
    }
  }

  void tend() {
    table_.tend(soon());
    const SteadyTime after = world_.clock_.steady_now();
    const auto due = table_.due_at();
    when(std::max(after + 1ms, due ? *due : after + 100ms), &Host::tend);
  }

  // Handlers end, all is settled, and then the source stops.
  void go() {
    if (!running_.empty() || !again_.empty()) {
      when(world_.now_ + 5ms, &Host::go);
      return;
    }
    source_.stop();
    alive_ = false;
  }

  leased::WriterState state_;
  leased::OwnedTable table_;
  leased::OwnedHalf& half_;
  leased::LeasedSource source_;

  bool alive_ = true;
  bool leaving_ = false;
  SteadyTime frozen_until_ = SteadyTime::min();
  std::optional<SteadyTime> poll_at_;
  std::optional<SteadyTime> settle_at_;
  Duration pause_ = 10ms;
  std::vector<SteadyTime> busy_until_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::vector<Completion> again_;
};

World::World(const Scene& scene) : scene_(scene), model_(clock_, scene.seed, settings_of(scene)) {
  now_ = clock_.steady_now();
  model_.observe([this](const std::string&, const std::string&, const dynamo::Item*, const dynamo::Item* after) {
    // A heartbeat has a number of that name.
    const bool owned = after != nullptr && dynamo::find<std::string>(*after, leased::attribute::kOwner) != nullptr;
    hand_overs_ += owned ? 1 : 0;
  });
  fill(scene.backlog);
  for (std::uint32_t i = 0; i < scene.hosts; ++i) {
    add_host();
  }
  SeededRandom random(scene.seed);
  for (std::size_t i = 0; i < scene.producers; ++i) {
    producers_.push_back(std::make_unique<Producer>(*this, i, scene.rate / static_cast<double>(scene.producers)));
    // They know nothing of one another.
    const auto pause = static_cast<std::uint64_t>(producers_.back()->pause().count());
    at(now_ + Duration(static_cast<std::int64_t>(random.next() % pause)),
       [producer = producers_.back().get()] { producer->go_on(); });
  }
  measure();
}

World::~World() {
  for (auto& host : hosts_) {
    host->kill();
  }
}

// The table is made, and what lies there lies there, before anything is measured or limited.
void World::fill(std::size_t messages) {
  model_.spare("filler");
  Party filler(*this, "filler", 999);
  dynamo::CreateTableRequest request;
  request.name = kTable;
  request.attribute_types = {{"p", "S"}, {"s", "S"}};
  request.hash_key = "p";
  request.range_key = "s";
  filler.client().create_table(request, Deadline::after(clock_, 60s));
  SeededRandom random(scene_.seed);
  std::vector<dynamo::Item> items;
  for (std::size_t i = 0; i < messages; ++i) {
    const queue::NewMessage message{.body = std::string(scene_.bytes, 'x')};
    const WallTime due = clock_.wall_now() - std::chrono::milliseconds(messages - i);
    const auto shard = static_cast<std::uint32_t>(random.next() % scene_.shards);
    const leased::Place place{leased::partition_of(kAddress.queue, Half::standard, shard),
                              leased::sort_key_of(queue::Priority::normal, due, random)};
    auto item = leased::encode_record(message, {.place = place, .now = due});
    items.push_back(std::move(*item));
    open_.insert(leased::made_id(place.sort, shard));
    if (items.size() == 25 || i + 1 == messages) {
      filler.client().batch_put(kTable, items, Deadline::after(clock_, 60s));
      items.clear();
    }
  }
}

void World::at(SteadyTime time, std::function<void()> act) { events_.push({time, ++events_made_, std::move(act)}); }

void World::run_for(Duration span) {
  const SteadyTime end = now_ + span;
  while (!events_.empty() && events_.top().at <= end) {
    const Event event = events_.top();
    events_.pop();
    now_ = std::max(now_, event.at);
    clock_.set(now_);
    event.act();
  }
  now_ = end;
  clock_.set(end);
}

void World::measure() {
  seen_ = {};
  measured_from_ = now_;
  before_ = model_.counters();
  hand_overs_ = 0;
}

Report World::report() {
  Report report = seen_;
  const auto counters = model_.counters();
  report.seconds = std::chrono::duration<double>(now_ - measured_from_).count();
  report.write_units = counters.write_units - before_.write_units;
  report.read_units = counters.read_units - before_.read_units;
  for (const auto& [operation, count] : counters.requests) {
    const auto old = before_.requests.find(operation);
    report.requests += count - (old == before_.requests.end() ? 0 : old->second);
  }
  for (const auto& [name, count] : counters.errors) {
    if (name.find("Throughput") != std::string::npos || name.find("Throttling") != std::string::npos) {
      const auto old = before_.errors.find(name);
      report.throttled += count - (old == before_.errors.end() ? 0 : old->second);
    }
  }
  report.hand_overs = hand_overs_;
  report.unhandled = open_.size();
  return report;
}

void World::began(const std::string& id, SteadyTime at) {
  if (!handled_.insert(id).second) {
    ++seen_.twice;
    return;
  }
  open_.erase(id);
  ++seen_.handled;
  const auto tick = static_cast<std::size_t>(std::max<Duration>(Duration::zero(), at - measured_from_) / kTick);
  seen_.per_tick.resize(std::max(seen_.per_tick.size(), tick + 1));
  ++seen_.per_tick[tick];
  if (const auto found = sent_at_.find(id); found != sent_at_.end()) {
    if (found->second >= measured_from_) {
      seen_.latencies.push_back(std::max<Duration>(Duration::zero(), at - found->second));
    }
    sent_at_.erase(found);
  }
}

void World::sent(const std::string& id, SteadyTime at) {
  ++seen_.sent;
  if (!handled_.contains(id)) {
    open_.insert(id);
    sent_at_.emplace(id, at);
  }
}

void World::ring() {
  if (!scene_.doorbell) {
    return;
  }
  at(clock_.steady_now() + 300us, [this] {
    for (auto& host : hosts_) {
      host->rung();
    }
  });
}

void World::settle_down() {
  std::uint64_t before = 0;
  do {
    before = hand_overs_;
    run_for(3s);
  } while (hand_overs_ != before);
}

std::size_t World::orphans() {
  std::set<std::string> alive;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (hosts_[i]->alive()) {
      alive.insert("host-" + std::to_string(i));
    }
  }
  std::size_t orphans = 0;
  for (const auto& item : model_.items(kTable)) {
    const auto* owner = dynamo::find<std::string>(item, leased::attribute::kOwner);
    orphans += owner != nullptr && !alive.contains(*owner) ? 1 : 0;
  }
  return orphans;
}

std::size_t World::add_host() {
  hosts_.push_back(std::make_unique<Host>(*this, hosts_.size()));
  at(now_, [host = hosts_.back().get()] { host->start(); });
  return hosts_.size() - 1;
}

void World::kill(std::size_t host) { hosts_.at(host)->kill(); }
void World::leave(std::size_t host) { hosts_.at(host)->leave(); }
void World::freeze(std::size_t host, Duration span) { hosts_.at(host)->freeze(now_ + span); }

}  // namespace sluice::bench
