// Owners on the model of DynamoDB with everything that goes wrong, from seeds: nothing is lost, and no two hosts that
// live and believe in their leases have the same message.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/guard.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;
using queue::Delivery;
using queue::SettleStatus;

class Story {
 public:
  explicit Story(std::uint64_t seed) : random_(seed), world_(plan_of(seed)) {
    for (std::uint64_t i = 0, hosts = 1 + random_.below(4); i < hosts; ++i) {
      begin_host();
    }
  }

  /// What went wrong; empty: nothing.
  std::string run() {
    for (int step = 0; step < 600 && wrong_.empty(); ++step) {
      world_.clock.advance(std::chrono::milliseconds(1 + random_.below(400)));
      if (random_.below(12) == 0 && sent_.size() < 150) {
        send();
      }
      act(*desks_[random_.below(desks_.size())]);
    }
    world_.model.clear_faults();
    model::ModelSettings calm;
    world_.model.configure(calm);
    for (int step = 0; step < 1200 && wrong_.empty() && !all_done(); ++step) {
      world_.clock.advance(std::chrono::milliseconds(200));
      for (auto& desk : desks_) {
        desk->asleep_until = {};
        work(*desk, true);
      }
    }
    if (wrong_.empty() && !all_done()) {
      wrong_ = std::to_string(world_.messages().size()) + " of " + std::to_string(sent_.size()) +
               " messages are not handed out any more" + standing();
    }
    return wrong_;
  }
  int doubles() const { return doubles_; }

 private:
  struct Desk {
    OwnerHost* host = nullptr;
    std::vector<Delivery> held;
    SteadyTime asleep_until{};
  };

  static WorldPlan plan_of(std::uint64_t seed) {
    SeededRandom random(seed * 77 + 1);
    WorldPlan plan;
    plan.seed = seed;
    plan.shards = 1 + static_cast<std::uint32_t>(random.below(6));
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

  void begin_host() {
    desks_.push_back(std::make_unique<Desk>());
    desks_.back()->host = &world_.add("h" + std::to_string(++named_) + "/1");
  }

  void send() {
    const std::string group = random_.below(2) == 0 ? "g" + std::to_string(random_.below(3)) : std::string();
    const Duration delay = random_.below(4) == 0 ? std::chrono::milliseconds(random_.below(20'000)) : Duration{};
    for (const std::string& id : world_.send(1 + random_.below(4), 100, delay, group)) {
      sent_.insert(id);
    }
  }

  void act(Desk& desk) {
    const SteadyTime now = world_.clock.steady_now();
    if (now < desk.asleep_until) {
      return;
    }
    switch (random_.below(60)) {
      case 0:  // it hangs for a while
        desk.asleep_until = now + std::chrono::seconds(random_.below(30));
        return;
      case 1: {  // its machine sleeps
        const Duration span = std::chrono::seconds(random_.below(30));
        desk.host->clock.sleeps(span);
        desk.asleep_until = now + span;
        return;
      }
      case 2:  // it is killed, and starts again
        desk.host->kill();
        desk.host = &world_.add("h" + std::to_string(++named_) + "/1");
        desk.held.clear();
        return;
      case 3:  // it is restarted as it should be
        for (const Delivery& delivery : std::exchange(desk.held, {})) {
          settle(desk, delivery, CompletionAction::release, {});
        }
        desk.host->stop();
        desk.host->kill();
        desk.held.clear();
        desk.host = &world_.add("h" + std::to_string(++named_) + "/1");
        return;
      default:
        break;
    }
    work(desk, false);
  }

  void work(Desk& desk, bool calm) {
    if (desk.held.size() < 8) {
      take(desk);
    }
    std::vector<Delivery> held;
    std::swap(held, desk.held);
    for (const Delivery& delivery : held) {
      if (!desk.host->has(delivery.receipt)) {
        continue;  // it was taken back
      }
      const std::uint64_t dice = random_.below(calm ? 4 : 10);
      if (dice < 4) {
        settle(desk, delivery, CompletionAction::remove, {});
      } else if (dice == 4) {
        settle(desk, delivery, CompletionAction::retry, std::chrono::milliseconds(random_.below(5'000)));
      } else if (dice == 5) {
        settle(desk, delivery, CompletionAction::release, {});
      } else {
        desk.held.push_back(delivery);
      }
    }
  }

  void take(Desk& desk) {
    const queue::ClaimRules rules{.order = queue::Order::none};
    for (const Delivery& delivery : desk.host->claim(1 + random_.below(8), rules)) {
      const std::string& id = delivery.message.id;
      for (const auto& other : desks_) {
        if (other->host != desk.host && other->host->out.contains(id) && other->host->believes_in_its_lease() &&
            other->host->out.contains(id)) {
          wrong_ = desk.host->name + " was handed " + id + ", which " + other->host->name + " has";
        }
      }
      if (done_.contains(id)) {
        ++doubles_;
      }
      desk.held.push_back(delivery);
    }
  }

  void settle(Desk& desk, const Delivery& delivery, CompletionAction action, Duration delay) {
    const auto result = desk.host->settle(delivery, action, delay);
    if (result.status == SettleStatus::failed) {
      desk.held.push_back(delivery);  // it is tried again
      return;
    }
    if (result.status == SettleStatus::applied && action == CompletionAction::remove) {
      done_.insert(delivery.message.id);
    }
  }

  std::string standing() {
    std::string text;
    for (const dynamo::Item& item : world_.messages()) {
      text += "\n  left: " + queue::leased::Place::of(item).partition + " " + queue::leased::Place::of(item).sort;
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
      const auto figures = desk->host->half().figures({});
      text += "\n  " + desk->host->name + ": " + std::to_string(figures.shards) + " shards, ready " +
              std::to_string(figures.ready) + ", delayed " + std::to_string(figures.delayed) + ", out " +
              std::to_string(figures.in_flight) + ", held " + std::to_string(desk->held.size());
    }
    return text;
  }

  // A removal that was taken back before its outcome was known is done all the same.
  bool all_done() {
    if (done_.size() == sent_.size()) {
      return true;
    }
    const bool nothing_left = world_.messages().empty();
    return nothing_left;
  }

  SeededRandom random_;
  OwnerWorld world_;
  std::vector<std::unique_ptr<Desk>> desks_;
  std::set<std::string> sent_;
  std::set<std::string> done_;
  std::string wrong_;
  int named_ = 0;
  int doubles_ = 0;
};

TEST(OwnerSimulation, LosesNothingAndHandsNothingOutTwice) {
  const char* const wanted = std::getenv("SLUICE_OWNER_SEEDS");
  const std::uint64_t seeds = wanted == nullptr ? 40 : std::strtoull(wanted, nullptr, 10);
  int doubles = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Story story(seed);
    ASSERT_EQ(story.run(), "") << "seed " << seed;
    doubles += story.doubles();
  }
  std::printf("%llu stories, %d messages handed out again after they were done\n",
              static_cast<unsigned long long>(seeds), doubles);
}

/// Hosts that are restarted one after the other under load.
TEST(OwnerSimulation, ARollingRestartHandlesNothingTwice) {
  OwnerWorld world({});
  std::vector<OwnerHost*> hosts;
  for (const char* name : {"a/1", "b/1", "c/1", "d/1"}) {
    hosts.push_back(&world.add(name));
  }
  world.pass(10s);
  std::map<std::string, int> handled;
  std::map<std::string, SteadyTime> sent;
  Duration longest{};
  const auto work = [&](Duration span, std::size_t messages) {
    for (Duration passed{}; passed < span; passed += 50ms) {
      for (const std::string& id : world.send(messages, 100)) {
        sent[id] = world.clock.steady_now();
      }
      for (OwnerHost* host : hosts) {
        host->ring();
        std::vector<queue::Completion> completions;
        for (const Delivery& delivery : host->claim(20)) {
          ++handled[delivery.message.id];
          longest = std::max(longest, Duration(world.clock.steady_now() - sent.at(delivery.message.id)));
          EXPECT_FALSE(delivery.suspect);
          completions.push_back({.receipt = delivery.receipt});
        }
        host->settle(completions);
      }
      world.clock.advance(50ms);
    }
  };
  work(5s, 4);
  for (OwnerHost*& host : hosts) {
    host->stop();
    host->kill();
    work(1s, 4);
    host = &world.add(host->name.substr(0, 1) + "/2");
    work(5s, 4);
  }
  work(3s, 0);
  for (const auto& [id, times] : handled) {
    EXPECT_EQ(times, 1) << id;
  }
  EXPECT_EQ(handled.size(), sent.size());
  std::printf("rolling restart: %zu messages, the longest from sending to handing out: %lld ms\n", handled.size(),
              static_cast<long long>(longest / 1ms));
  EXPECT_LE(longest, 500ms);
}

}  // namespace
}  // namespace sluice::test
