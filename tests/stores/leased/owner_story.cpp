#include "tests/stores/leased/owner_story.hpp"

#include <algorithm>
#include <utility>

namespace sluice::test {

using queue::CompletionAction;
using queue::Delivery;
using queue::SettleStatus;

namespace {

constexpr std::uint32_t kMostAttempts = 8;
constexpr Duration kLatestPut = std::chrono::seconds(5);  // of what lands later no order is promised

}  // namespace

OwnerStory::OwnerStory(std::uint64_t seed)
    : random_(seed), slow_(seed * 19 + 3), mix_(mix_of(seed)), world_(plan_of(seed)), truth_(world_) {
  for (std::uint64_t i = 0, hosts = 1 + random_.below(4); i < hosts; ++i) {
    desks_.push_back(std::make_unique<Desk>());
    begin_host(*desks_.back());
  }
}

// Hosts that end have requests to make, which the truth still sees.
OwnerStory::~OwnerStory() {
  for (const auto& host : world_.hosts) {
    host->wire().before({});
  }
  world_.hosts.clear();
}

OwnerStory::Mix OwnerStory::mix_of(std::uint64_t seed) {
  SeededRandom random(seed * 131 + 7);
  Mix mix;
  mix.crowd = seed % 32 == 8;
  mix.plain = random.below(4) == 0 && !mix.crowd;
  mix.ordered = !mix.plain && random.below(2) == 0;
  mix.holds = mix.ordered && random.below(2) == 0;
  mix.edits = !mix.plain && random.below(2) == 0;
  mix.sweeps = seed % 16 == 0;
  mix.stream = mix.ordered && seed % 4 == 1;
  mix.loops = seed % 16 == 6;
  mix.wipes = seed % 16 == 11;
  return mix;
}

WorldPlan OwnerStory::plan_of(std::uint64_t seed) {
  SeededRandom random(seed * 77 + 1);
  WorldPlan plan;
  plan.seed = seed;
  plan.shards = 1 + static_cast<std::uint32_t>(random.below(6));
  plan.shards = mix_of(seed).crowd || mix_of(seed).stream ? 1 : plan.shards;  // so that all of it lies in one
  plan.lease = std::chrono::seconds(4 + random.below(8));
  const double rate = random.below(2) == 0 ? 0 : 0.03;
  plan.model.faults = {.refuse = rate,
                       .lose = rate,
                       .error_500 = rate,
                       .commit_then_500 = rate,
                       .commit_then_lose = rate,
                       .late = rate / 3,
                       .throttle = rate,
                       .part_throttle = rate,
                       .part_error = rate,
                       .part_commit_then_error = rate};
  if (random.below(4) == 0) {
    plan.model.limits.partition_write = 20;
    plan.model.limits.partition_read = 30;
  }
  return plan;
}

std::string OwnerStory::run() {
  troubles();
  if (mix_.sweeps && !wrong()) {
    watch_slow_writers();
  }
  if (mix_.loops && !wrong()) {
    watch_a_crash_loop();
  }
  if (mix_.wipes && !wrong()) {
    watch_items_vanish();
  }
  if (!wrong()) {
    peace();
  }
  truth_.close();
  return wrong_.empty() ? truth_.wrong() : wrong_;
}

std::map<std::string, std::uint64_t> OwnerStory::happened() const {
  auto all = happened_;
  const model::ModelCounters counted = world_.model.counters();
  for (const auto& counters : {counted.requests, counted.faults, counted.errors}) {
    for (const auto& [name, times] : counters) {
      all[name] += times;
    }
  }
  for (const auto& host : world_.hosts) {
    all["requests in vain"] += host->wire().in_vain();
  }
  all["crashes checked"] = static_cast<std::uint64_t>(crashes_checked());
  return all;
}

void OwnerStory::troubles() {
  if (mix_.crowd) {
    gather_a_crowd();
  }
  if (mix_.stream) {
    begin_a_stream();
  }
  for (int step = 0; step < 400 && !wrong(); ++step) {
    world_.clock.advance(std::chrono::milliseconds(1 + random_.below(400)));
    if (random_.below(8) == 0 && sent_.size() < (mix_.crowd ? 400U : 150U)) {
      send();
    }
    if (mix_.edits && random_.below(10) == 0 && !sent_.empty()) {
      ++happened_["edits"];
      truth_.edit(sent_[random_.below(sent_.size())]);
    }
    if (mix_.holds && random_.below(100) == 0) {
      truth_.release_groups();
    }
    act(*desks_[random_.below(desks_.size())]);
  }
  world_.model.clear_faults();
  world_.model.configure(model::ModelSettings{});
  for (auto& desk : desks_) {
    if (desk->asleep_until > world_.clock.steady_now()) {
      world_.clock.advance(desk->asleep_until - world_.clock.steady_now());
    }
  }
  for (auto& desk : desks_) {
    desk->asleep_until = desk->cut_until = {};
    desk->host->believes_in_its_lease();  // a machine that wakes up looks at its clocks before somebody sets one right
    desk->host->clock.wrong_by({});
    desk->host->wire().cut(false);
  }
}

void OwnerStory::peace() {
  for (int step = 0; step < 1200 && !wrong() && (truth_.left() > 0 || step < 10); ++step) {
    world_.clock.advance(200ms);
    produce();
    if (step % 25 == 0) {
      truth_.release_groups();
    }
    for (auto& desk : desks_) {
      work(*desk, true);
    }
  }
  if (!wrong() && truth_.left() > 0) {
    wrong_ = std::to_string(truth_.left()) + " of " + std::to_string(sent_.size()) +
             " messages are not handed out any more" + standing();
  }
}

// In each shard lies more than is read from its head each second; what is put behind the cursors then only a sweep
// finds.
void OwnerStory::watch_slow_writers() {
  ++happened_["slow writers"];
  patient_ = true;
  for (std::uint32_t shard = 0; shard < world_.plan.shards; ++shard) {
    for (const std::string& id : world_.send(30, 600, {}, {}, shard)) {
      sent_.push_back(id);
      truth_.sent(id, {});
    }
  }
  const auto pass = [&](Duration span) {
    for (Duration passed{}; passed < span && !wrong(); passed += 500ms) {
      world_.clock.advance(500ms);
      for (auto& desk : desks_) {
        work(*desk, true);
      }
    }
  };
  pass(3 * world_.plan.lease + 5s);
  std::vector<std::string> late;
  for (std::uint32_t shard = 0; shard < world_.plan.shards; ++shard) {
    for (const std::string& id : world_.send(1, 100, -15s, {}, shard)) {
      late.push_back(id);
      sent_.push_back(id);
      truth_.sent(id, {});
    }
  }
  pass(40s);
  for (const std::string& id : late) {
    if (!wrong() && !truth_.started(id)) {
      wrong_ = id + " was put behind the cursor, and 40 s later nobody has begun with it" + standing();
    }
  }
  patient_ = false;
}

void OwnerStory::calm(Duration span) {
  for (Duration passed{}; passed < span && !wrong(); passed += 500ms) {
    world_.clock.advance(500ms);
    for (auto& desk : desks_) {
      work(*desk, true);
    }
  }
}

std::set<std::string> OwnerStory::send_to_each_shard() {
  std::set<std::string> ids;
  for (std::uint32_t shard = 0; shard < world_.plan.shards; ++shard) {
    for (const std::string& id : world_.send(1, 100, {}, {}, shard)) {
      ids.insert(id);
      sent_.push_back(id);
      truth_.sent(id, {});
    }
  }
  return ids;
}

void OwnerStory::demand_begun(const std::set<std::string>& ids, const std::string& after) {
  for (const std::string& id : ids) {
    if (!wrong() && !truth_.started(id)) {
      wrong_ = "nobody begins with " + id + " " + after + standing();
    }
  }
}

// A host that stays a while has its share; then it crashes, and each of those that take its place lives for a moment
// under a name that nobody has marked as ended. What was its own is others' within its lease and a little.
void OwnerStory::watch_a_crash_loop() {
  ++happened_["crash loops"];
  const Duration lease = world_.plan.lease;
  OwnerHost* loop = &world_.add("loop/0");
  for (Duration passed{}; passed < 4 * lease && !wrong(); passed += 500ms) {
    loop->tend();
    calm(500ms);
  }
  happened_["shards of a host that loops"] += world_.shards_of(loop->name);
  loop->kill();
  const auto ids = send_to_each_shard();
  // What may have been at work in it runs alone, one at a time.
  const Duration longest = lease + 4s + truth_.left() * 500ms;
  int starts = 0;
  for (Duration passed{}; passed < longest && !wrong(); passed += 500ms) {
    loop = &world_.add("loop/" + std::to_string(++starts));
    loop->kill();
    calm(500ms);
  }
  demand_begun(ids, "while a host crashes again and again");
}

// Once nothing is at work anywhere; what hosts remember of who owns what holds no more.
void OwnerStory::watch_items_vanish() {
  ++happened_["items that vanish"];
  const Duration lease = world_.plan.lease;
  calm(2 * lease);
  const bool loses_leases = random_.below(2) == 0;
  const bool all = random_.below(2) == 0;
  for (auto& desk : desks_) {
    desk->host->wire().cut(loses_leases);
  }
  if (loses_leases) {
    calm(lease + 2s);
  }
  for (const dynamo::Item& item : world_.model.items(kOwnersTable)) {
    const auto place = queue::leased::Place::of(item);
    const bool tells = place.partition == queue::leased::kHosts ||
                       place.partition == queue::leased::ownership_partition(kOwnersQueue, queue::Half::standard);
    if (tells && (all || random_.below(2) == 0)) {
      world_.remove(place.key());
    }
  }
  for (auto& desk : desks_) {
    desk->host->wire().cut(false);
  }
  const auto ids = send_to_each_shard();
  // What is there may have been at work, so that each shard's first hundred run alone.
  calm(2 * lease + 4s + truth_.left() * 500ms);
  demand_begun(ids, "although what hosts wrote of shards was removed a while ago");
}

// Of many groups, priorities and times; all of it fails at first and waits for another attempt, some of it edited.
void OwnerStory::gather_a_crowd() {
  ++happened_["crowds"];
  for (int lot = 0; lot < 60; ++lot) {
    const bool grouped = random_.below(2) == 0;
    const std::string group = grouped ? "c" + std::to_string(random_.below(40)) : std::string();
    const auto priority = static_cast<queue::Priority>(grouped || lot % 8 != 0 ? 2 : random_.below(queue::kPriorities));
    const Duration delay = grouped ? Duration{} : -Duration(std::chrono::milliseconds(random_.below(20'000)));
    for (const std::string& id : world_.send(1 + random_.below(8), 100, delay, group, {}, priority)) {
      sent_.push_back(id);
      truth_.sent(id, mix_.ordered ? group : std::string());
    }
  }
  const std::size_t all = sent_.size();
  const auto fail_them = [&](std::size_t times, Duration step) {
    const std::uint64_t enough = happened_["retries of a crowd"] + times;
    for (int left = 200; left > 0 && !wrong() && happened_["retries of a crowd"] < enough; --left) {
      world_.clock.advance(step);
      for (auto& desk : desks_) {
        take(*desk);
        fail_all(*desk);
      }
      if (mix_.edits) {
        truth_.edit(sent_[random_.below(sent_.size())]);
      }
    }
  };
  fail_them(2 * all, 100ms);
  world_.clock.advance(8s);
  fail_them(all, 10ms);
  // What is sent now is at work when everybody dies; by the time that somebody takes over, all others may be tried
  // again.
  for (const std::string& id : world_.send(8, 100, {}, {}, 0)) {
    sent_.push_back(id);
    truth_.sent(id, {});
  }
  for (int step = 0; step < 5 && !wrong(); ++step) {
    world_.clock.advance(300ms);
    for (auto& desk : desks_) {
      take(*desk);
    }
  }
  for (auto& desk : desks_) {
    crash(*desk);
  }
}

void OwnerStory::begin_a_stream() {
  ++happened_["streams"];
  for (int i = 0; i < 250; ++i) {
    const std::string group = "b" + std::to_string(i);
    const auto since = std::chrono::milliseconds(10 * i - 2'500);
    sent_.push_back(world_.send(1, 300, since, group).front());
    truth_.sent(sent_.back(), group);
  }
  for (int i = 0; i < 20; ++i) {
    producers_["s" + std::to_string(i)] = {.behind = std::chrono::milliseconds(slow_.below(3'000)), .left = 15};
  }
}

void OwnerStory::fail_all(Desk& desk) {
  for (const Delivery& delivery : std::exchange(desk.held, {})) {
    if (desk.host->has(delivery.receipt)) {
      ++happened_["retries of a crowd"];
      settle(desk, delivery, CompletionAction::retry, std::chrono::milliseconds(4'000 + random_.below(4'000)));
    }
  }
}

void OwnerStory::begin_host(Desk& desk) {
  desk.host = &world_.add("h" + std::to_string(++named_), false);
  desk.held.clear();
  desk.cut_until = {};
  OwnerHost& host = *desk.host;
  host.wire().before([this, &host](const dynamo::HttpRequest& request) {
    truth_.asks(host);
    if (request.body.find("orders#") != std::string::npos) {
      produce();
    }
    if (!inside_ && request.body.find("orders@") != std::string::npos && random_.below(4) == 0) {
      interleave(host);
    }
  });
  host.start();
}

// Somebody else reads and writes who owns what, between what this host has read and what it writes.
void OwnerStory::interleave(OwnerHost& host) {
  inside_ = true;
  for (auto& desk : desks_) {
    const bool may = desk->host != nullptr && desk->host != &host && !desk->host->dead() &&
                     world_.clock.steady_now() >= desk->asleep_until;
    if (may && random_.below(2) == 0) {
      desk->host->tend();
    }
  }
  inside_ = false;
}

void OwnerStory::send() {
  const bool grouped = random_.below(2) == 0;
  const std::string group = grouped ? "g" + std::to_string(random_.below(3)) : std::string();
  Duration delay{};
  auto priority = queue::Priority::normal;
  if (!grouped && !mix_.plain) {
    const std::uint64_t dice = random_.below(6);
    delay = dice == 0   ? std::chrono::milliseconds(random_.below(20'000))
            : dice == 1 ? -Duration(std::chrono::milliseconds(random_.below(20'000)))
                        : Duration{};
    priority = static_cast<queue::Priority>(random_.below(queue::kPriorities));
  }
  const std::size_t count = 1 + random_.below(4);
  if (grouped && mix_.ordered) {
    const auto [producer, fresh] = producers_.try_emplace(group);
    producer->second.behind = fresh ? Duration(std::chrono::milliseconds(slow_.below(3'000))) : producer->second.behind;
    producer->second.left += count;
    return;
  }
  for (const std::string& id : world_.send(count, 100, delay, group, {}, priority)) {
    sent_.push_back(id);
    truth_.sent(id, {});
  }
}

void OwnerStory::produce() {
  for (auto& [group, one] : producers_) {
    const SteadyTime now = world_.clock.steady_now();
    if (one.stamp && now >= one.lands_at && slow_.below(2) == 0) {
      if (world_.clock.wall_now() - *one.stamp > kLatestPut) {  // nobody was awake to let it land in time
        one.stamp = one.last = world_.clock.wall_now() - one.behind;
      }
      const std::string id = world_.send(1, 100, *one.stamp - world_.clock.wall_now(), group).front();
      happened_["slow puts"] += world_.clock.wall_now() > *one.stamp + one.behind ? 1U : 0U;
      sent_.push_back(id);
      truth_.sent(id, group);
      one.stamp.reset();
    }
    if (!one.stamp && one.left > 0) {
      --one.left;
      one.stamp = one.last = std::max(world_.clock.wall_now() - one.behind, one.last + 1ms);
      one.lands_at = now + std::chrono::milliseconds(slow_.below(4) == 0 ? slow_.below(1'900) : 0);
    }
  }
}

void OwnerStory::act(Desk& desk) {
  const SteadyTime now = world_.clock.steady_now();
  if (now < desk.asleep_until) {
    return;
  }
  if (desk.cut_until != SteadyTime{} && now >= desk.cut_until) {
    desk.host->wire().cut(false);
    desk.cut_until = {};
  }
  switch (random_.below(70)) {
    case 0:  // it hangs for a while
      ++happened_["hangs"];
      desk.asleep_until = now + std::chrono::seconds(random_.below(30));
      return;
    case 1: {  // its machine sleeps
      ++happened_["sleeps"];
      const Duration span = std::chrono::milliseconds(100 + random_.below(29'900));
      desk.host->believes_in_its_lease();  // what its clocks say of each other is known
      desk.host->clock.sleeps(span);
      desk.asleep_until = now + span;
      return;
    }
    case 2:
      crash(desk);
      return;
    case 3:
      restart(desk);
      return;
    case 4:  // there is no way from it to the table
      ++happened_["partitions"];
      desk.cut_until = now + std::chrono::seconds(1 + random_.below(25));
      desk.host->wire().cut(true);
      return;
    case 5:  // somebody sets its wall clock
      ++happened_["clock jumps"];
      desk.host->believes_in_its_lease();  // nobody does so before a machine that wakes up has looked at it
      desk.host->clock.wrong_by(std::chrono::seconds(random_.below(121)) - 60s);
      desk.host->believes_in_its_lease();
      return;
    default:
      break;
  }
  work(desk, false);
}

void OwnerStory::crash(Desk& desk) {
  ++happened_["deaths"];
  desk.host->tend();  // a host that has lost its shards and does not know it had nothing more to say of them
  for (const Delivery& delivery : desk.held) {
    if (desk.host->has(delivery.receipt) && desk.host->believes_in_its_lease()) {
      truth_.crashed(*desk.host, delivery);
    }
  }
  desk.host->kill();
  begin_host(desk);
}

void OwnerStory::restart(Desk& desk) {
  ++happened_["restarts"];
  for (const Delivery& delivery : std::exchange(desk.held, {})) {
    settle(desk, delivery, CompletionAction::release);
  }
  desk.host->stop();
  desk.host->kill();
  begin_host(desk);
}

void OwnerStory::work(Desk& desk, bool calm) {
  if (desk.held.size() < 8) {
    take(desk);
  }
  if (patient_) {
    for (int more = 0; more < 100 && take(desk); ++more) {
    }
    return put_back(desk);
  }
  for (const Delivery& delivery : std::exchange(desk.held, {})) {
    if (desk.host->has(delivery.receipt)) {  // otherwise it was taken back
      work_on(desk, delivery, calm);
    }
  }
}

// All of it comes again in a while.
void OwnerStory::put_back(Desk& desk) {
  std::vector<Delivery> held;
  std::vector<queue::Completion> completions;
  for (Delivery& delivery : std::exchange(desk.held, {})) {
    if (desk.host->has(delivery.receipt)) {
      completions.push_back({.receipt = delivery.receipt,
                             .action = CompletionAction::retry,
                             .delay = std::chrono::milliseconds(3'000 + random_.below(5'000))});
      held.push_back(std::move(delivery));
    }
  }
  const auto results = desk.host->settle(completions);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].status == SettleStatus::failed) {
      desk.held.push_back(std::move(held[i]));
    } else if (results[i].status == SettleStatus::applied) {
      truth_.ended(*desk.host, held[i], CompletionAction::retry);
    }
  }
}

void OwnerStory::work_on(Desk& desk, const Delivery& delivery, bool calm) {
  const std::uint64_t dice = random_.below(calm ? 4 : 12);
  if (dice < 4) {
    settle(desk, delivery, CompletionAction::remove);
  } else if (dice == 4 && !mix_.plain) {
    const bool last = delivery.message.attempt >= kMostAttempts + (mix_.crowd ? kMostAttempts : 0);
    settle(desk, delivery, last ? CompletionAction::dead_letter : CompletionAction::retry,
           last ? Duration{} : std::chrono::milliseconds(random_.below(5'000)));
  } else if (dice == 5 && !mix_.plain) {
    settle(desk, delivery, CompletionAction::release);
  } else if (dice == 6 && !mix_.plain) {
    settle(desk, delivery, CompletionAction::dead_letter);
  } else {
    desk.held.push_back(delivery);
  }
}

bool OwnerStory::take(Desk& desk) {
  const queue::ClaimRules rules{.order = mix_.ordered ? queue::Order::group : queue::Order::none};
  const auto claimed = desk.host->claim(patient_ ? 100 : 1 + random_.below(8), rules);
  for (const Delivery& delivery : claimed) {
    const std::string& id = delivery.message.id;
    for (const auto& other : desks_) {
      if (other->host != desk.host && other->host->out.contains(id) && other->host->believes_in_its_lease() &&
          other->host->out.contains(id)) {
        wrong_ = desk.host->name + " was handed " + id + ", which " + other->host->name + " has";
      }
    }
    doubles_ += done_.contains(id) ? 1 : 0;
    truth_.begins(*desk.host, delivery);
    desk.held.push_back(delivery);
  }
  return !claimed.empty();
}

void OwnerStory::settle(Desk& desk, const Delivery& delivery, CompletionAction action, Duration delay) {
  queue::Completion completion{.receipt = delivery.receipt, .action = action, .delay = delay};
  if (action == CompletionAction::retry || action == CompletionAction::dead_letter) {
    completion.failure.error = "it failed";
    completion.hold_group = mix_.holds && action == CompletionAction::dead_letter;
  }
  truth_.ending(*desk.host, delivery, action);
  const auto result = desk.host->settle(std::vector{completion}).front();
  if (result.status == SettleStatus::failed) {
    desk.held.push_back(delivery);  // it is tried again
    return;
  }
  if (result.status == SettleStatus::applied) {
    truth_.ended(*desk.host, delivery, action);
    if (action == CompletionAction::remove) {
      done_.insert(delivery.message.id);
    }
  }
}

std::string OwnerStory::standing() {
  std::string text;
  for (const dynamo::Item& item : world_.messages()) {
    const auto place = queue::leased::Place::of(item);
    text += "\n  left: " + place.partition + " " + place.sort;
    for (const auto& [name, value] : item) {
      if (const auto* number = value.get<dynamo::Number>()) {
        text += " " + name + "=" + number->text;
      }
    }
  }
  for (const auto& [shard, owner] : world_.owners()) {
    text += "\n  shard " + std::to_string(shard) + " is " + owner + "'s";
  }
  for (const auto& desk : desks_) {
    const auto figures = desk->host->half().figures();
    text += "\n  " + desk->host->name + ": " + std::to_string(figures.shards) + " shards, ready " +
            std::to_string(figures.ready) + ", delayed " + std::to_string(figures.delayed) + ", out " +
            std::to_string(figures.in_flight) + ", held " + std::to_string(desk->held.size());
  }
  return text;
}

}  // namespace sluice::test
