// The order within a group, while producers put messages side by side, late, and by clocks that are behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "host/stores/leased/leased_schema.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

namespace leased = queue::leased;
using queue::CompletionAction;
using queue::Delivery;
using queue::Order;
using queue::Priority;
using ::testing::ElementsAre;

/// Is done by `host` with all that there is; the ids of the group, in the order in which they began.
std::vector<std::string> work_off(OwnerWorld& world, OwnerHost& host, const std::string& group, Duration most = 10s) {
  std::vector<std::string> begun;
  for (Duration passed{}; passed < most && !world.messages().empty(); passed += 100ms) {
    for (auto claimed = host.claim(50, {.order = Order::group}); !claimed.empty();
         claimed = host.claim(50, {.order = Order::group})) {
      for (const Delivery& delivery : claimed) {
        if (delivery.message.group == group) {
          begun.push_back(delivery.message.id);
        }
        host.settle(delivery, CompletionAction::remove);
      }
    }
    world.clock.advance(100ms);
  }
  return begun;
}

/// What others do just before the owner's read number `which` of the shard goes off.
void before_read(OwnerHost& host, int which, std::function<void()> what) {
  auto reads = std::make_shared<int>(0);
  host.wire().before([reads, which, what = std::move(what)](const dynamo::HttpRequest& request) {
    if (request.body.find("orders#0") != std::string::npos && ++*reads == which) {
      what();
    }
  });
}

TEST(OwnerOrder, WhatLandsBehindAPageThatWasCutGoesBeforeWhatWasSentAfterIt) {
  for (int read = 1; read < 8; ++read) {
    OwnerWorld world({.shards = 1, .seed = static_cast<std::uint64_t>(read)});
    OwnerHost& a = world.add("a/1");
    world.pass(2s);
    for (int i = 0; i < 400; ++i) {
      world.send(1, 600, std::chrono::milliseconds(-2000 + 5 * i), "other " + std::to_string(i));
    }
    std::string first;
    std::string second;
    before_read(a, read, [&] {
      first = world.send(1, 100, -1900ms, "g").front();
      second = world.send(1, 100, 0s, "g").front();
    });
    const auto begun = work_off(world, a, "g");
    a.wire().before({});
    ASSERT_FALSE(second.empty()) << "there were fewer reads than " << read;
    EXPECT_THAT(begun, ElementsAre(first, second)) << "before read " << read;
  }
}

TEST(OwnerOrder, APriorityOvertakesNobodyInItsGroup) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(700, 600, -20s, "other");
  const std::string first = world.send(1, 100, -19s, "g", {}, Priority::normal).front();
  const std::string second = world.send(1, 100, -18s, "g", {}, Priority::critical).front();
  EXPECT_THAT(work_off(world, a, "g", 200s), ElementsAre(first, second));
}

TEST(OwnerOrder, TheStricterOrderHoldsWhereTwoJobsOfAHostDisagreeAndALineSaysSo) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.pass(2s);
  for (int i = 0; i < 3; ++i) {
    world.send(1, 100, 0s, "g");
  }
  const auto first = a.claim(10, {.order = Order::group});
  ASSERT_EQ(first.size(), 1U);
  const std::uint32_t loose = a.half().enter({});
  const auto claim = [&] {
    const auto announce = [](queue::owned::InFlightBound) { return false; };
    return a.half().claim(loose, {.max = 10}, announce, Deadline::after(a.clock, 5s))->deliveries;
  };
  EXPECT_TRUE(claim().empty());
  EXPECT_TRUE(std::any_of(a.warnings.begin(), a.warnings.end(), [](const std::string& line) {
    return line.find("the strictest order that a job of this host asks for") != std::string::npos;
  }));
  a.settle(first.front(), CompletionAction::remove);
  EXPECT_EQ(claim().size(), 1U);
  a.half().exit(loose);
}

TEST(OwnerOrder, AClaimThatIsUnderWayWhenItsJobLeavesLeavesItsOrderToNobody) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.pass(2s);
  const std::uint32_t strict = a.half().enter({});
  a.half().exit(strict);
  const auto announce = [](queue::owned::InFlightBound) { return true; };
  const queue::ClaimRequest request{.max = 10, .rules = {.order = Order::group}};
  EXPECT_TRUE(a.half().claim(strict, request, announce, Deadline::after(a.clock, 5s))->deliveries.empty());
  for (int i = 0; i < 3; ++i) {
    world.send(1, 100, 0s, "g");
  }
  world.pass(2s);
  EXPECT_EQ(a.claim(10).size(), 3U) << "the other job asks for no order";
}

/// A group of four whose second message is a dead letter that holds it, and an operator who redrives that.
class OwnerHold : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    host_ = &world_.add("a/1");
    world_.pass(2s);
    world_.send(GetParam(), 600, 1h, "later");  // of a shard in which more lies not all is read at each look
    for (int i = 0; i < 4; ++i) {
      ids_.push_back(world_.send(1, 100, 0s, "g").front());
      world_.clock.advance(1ms);
    }
    EXPECT_EQ(next(), ids_[0]);
    const auto second = claim();
    ASSERT_EQ(second.message.id, ids_[1]);
    for (const dynamo::Item& item : world_.messages()) {
      record_ = leased::id_of(item) == ids_[1] ? item : record_;
    }
    host_->settle(
        {queue::Completion{.receipt = second.receipt, .action = CompletionAction::dead_letter, .hold_group = true}});
    world_.pass(12s);
    EXPECT_EQ(next(), "");
  }
  void redrive() {
    for (const dynamo::Item& item : world_.messages()) {
      if (leased::Place::of(item).partition == "orders!0") {
        world_.remove(leased::Place::of(item).key());
      }
    }
    record_.insert_or_assign("v", dynamo::AttributeValue::number(9));
    world_.put(record_);
    world_.remove(leased::hold_place(kOwnersQueue, 0, ids_[1]).key());
  }
  Delivery claim() {
    auto claimed = host_->claim(1, {.order = Order::group});
    return claimed.empty() ? Delivery() : std::move(claimed.front());
  }
  std::string next() {
    const Delivery delivery = claim();
    if (!delivery.message.id.empty()) {
      host_->settle(delivery, CompletionAction::remove);
    }
    return delivery.message.id;
  }
  std::vector<std::string> work_for(Duration span) {
    std::vector<std::string> begun;
    for (Duration passed{}; passed < span; passed += 50ms) {
      if (std::string id = next(); !id.empty()) {
        begun.push_back(std::move(id));
      }
      world_.clock.advance(50ms);
    }
    return begun;
  }

  OwnerWorld world_{{.shards = 1}};
  OwnerHost* host_ = nullptr;
  std::vector<std::string> ids_;
  dynamo::Item record_;
};

TEST_P(OwnerHold, WhatIsRedrivenGoesBeforeWhatWaitedForItOnceARingSaysSo) {
  redrive();
  host_->ring();
  EXPECT_THAT(work_for(500ms), ElementsAre(ids_[1], ids_[2], ids_[3]));
}

TEST_P(OwnerHold, WithoutARingItsGroupGoesOnSoonAllTheSame) {
  redrive();
  EXPECT_THAT(work_for(3s), ElementsAre(ids_[1], ids_[2], ids_[3]));
}

INSTANTIATE_TEST_SUITE_P(BesideOthers, OwnerHold, ::testing::Values(0U, 200U));

/// A producer that waits for each answer: its clock is behind, and a put of his may take a while.
struct Producer {
  Duration behind{};
  Duration slow{};
  std::string group;
  SteadyTime lands_at = SteadyTime::min();
  std::optional<WallTime> stamp{};
  WallTime last{};
  std::vector<std::string> sent{};
};

class Producers {
 public:
  Producers(OwnerWorld& world, std::uint64_t seed) : world_(world), random_(seed) {
    for (int i = 0; i < 8; ++i) {
      producers_.push_back({.behind = std::chrono::milliseconds(random_.below(3'000)),
                            .slow = std::chrono::milliseconds(i % 2 == 0 ? 2 : 1 + random_.below(1'900)),
                            .group = "p" + std::to_string(i)});
    }
  }
  /// Whatever has been answered by now is followed by the next one.
  void act() {
    for (Producer& one : producers_) {
      const SteadyTime now = world_.clock.steady_now();
      if (one.stamp && now >= one.lands_at) {
        one.sent.push_back(world_.send(1, 200, *one.stamp - world_.clock.wall_now(), one.group).front());
        one.stamp.reset();
      }
      if (!one.stamp && left_ > 0) {
        --left_;
        one.stamp = one.last = std::max(world_.clock.wall_now() - one.behind, one.last + 1ms);
        one.lands_at = now + std::chrono::duration_cast<Duration>(one.slow * random_.unit());
      }
    }
  }
  bool waits() const {
    return left_ > 0 ||
           std::any_of(producers_.begin(), producers_.end(), [](const Producer& one) { return one.stamp; });
  }
  const std::vector<Producer>& all() const { return producers_; }

 private:
  OwnerWorld& world_;
  SeededRandom random_;
  std::vector<Producer> producers_;
  int left_ = 1'500;
};

// What each of them has sent goes in the order of its sending: a message that was answered is there before the next
// one.
class SideBySide : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(SideBySide, SlowPutsAndLaggingClocksBreakNoOrder) {
  OwnerWorld world({.shards = 2, .seed = GetParam()});
  std::vector<OwnerHost*> hosts{&world.add("a/1"), &world.add("b/1")};
  world.pass(2s);
  SeededRandom random(GetParam());
  Producers producers(world, GetParam());
  for (int i = 0; i < 300; ++i) {  // so that pages are cut
    world.send(1, 600, std::chrono::milliseconds(-3000 + 10 * i), "backlog " + std::to_string(i));
  }
  for (OwnerHost* host : hosts) {
    host->wire().before([&](const dynamo::HttpRequest& request) {
      if (request.body.find("orders#") != std::string::npos) {
        world.clock.advance(std::chrono::milliseconds(1 + random.below(8)));
        producers.act();
      }
    });
  }
  std::map<std::string, std::vector<std::string>> begun;
  std::deque<std::pair<OwnerHost*, Delivery>> working;
  for (int step = 0; step < 40'000 && (producers.waits() || !world.messages().empty()); ++step) {
    OwnerHost& host = *hosts[random.below(hosts.size())];
    if (random.below(4) == 0) {
      host.ring();
    }
    for (const Delivery& delivery : host.claim(1 + random.below(10), {.order = Order::group})) {
      begun[delivery.message.group].push_back(delivery.message.id);
      working.emplace_back(&host, delivery);
    }
    while (working.size() > random.below(20)) {
      working.front().first->settle(working.front().second, CompletionAction::remove);
      working.pop_front();
    }
    world.clock.advance(std::chrono::milliseconds(random.below(20)));
    producers.act();
  }
  for (OwnerHost* host : hosts) {
    host->wire().before({});
  }
  for (const Producer& one : producers.all()) {
    EXPECT_EQ(begun[one.group], one.sent)
        << one.group << ", behind by " << one.behind / 1ms << " ms, slow by up to " << one.slow / 1ms << " ms";
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SideBySide, ::testing::Range<std::uint64_t>(1, 7));

}  // namespace
}  // namespace sluice::test
