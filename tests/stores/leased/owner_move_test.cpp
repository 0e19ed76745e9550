// Movers that carry a queue away while hosts own its shards and work, on the model of DynamoDB under virtual time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "host/operate/mover.hpp"
#include "host/operate/table_tariff.hpp"
#include "host/stores/core/outcomes.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using operate::Mover;
using queue::CompletionAction;
using queue::Delivery;
using queue::Half;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using State = Mover::Step::State;

constexpr const char* kTarget = "orders2";

std::unique_ptr<queue::table::TableQueues> queues_of(OwnerHost& process, Random& random) {
  queue::leased::LeasedOptions options{{.host = process.name}};
  options.own_threads = false;
  return queue::leased::make_leased_queues(options, process.client(), process.clock, random);
}

/// One process that carries messages from one queue to the other, on the thread of whoever steps it.
class MoverProcess {
 public:
  MoverProcess(OwnerWorld& world, const std::string& name, const std::function<void(operate::MovePlan&)>& change = {})
      : world_(world), process_(world.add(name, false)) {
    operate::MovePlan plan;
    plan.pair = {kOwnersQueue, "a", kTarget, "b"};
    plan.page = 40;
    plan.batch = 5;
    if (change) {
      change(plan);
    }
    custody_ = queues_->queue(kOwnersQueue)
                   .take_ownership(plan.resumed ? std::vector<Half>{Half::standard, Half::dlq} : plan.halves);
    mover_ =
        std::make_unique<Mover>(operate::MoveEnds{custody_->oper(), *to_, *from_board_, *to_board_, custody_.get()},
                                process_.clock, nullptr, plan);
  }

  Mover::Step step() { return mover_->step(); }
  Mover& mover() { return *mover_; }
  OwnerHost& process() { return process_; }
  queue::MoveOwnership& ownership() { return *custody_; }

  /// Until it has come to its end, while `meanwhile` happens in every 100 ms. False: it does not end.
  bool finish(const std::function<void()>& meanwhile, Duration longest = 120s) {
    const SteadyTime end = world_.clock.steady_now() + longest;
    while (world_.clock.steady_now() < end) {
      const auto step = mover_->step();
      EXPECT_NE(step.state, State::failed) << step.error.message();
      if (step.state == State::finished) {
        return true;
      }
      if (step.state == State::wait) {
        world_.pass(100ms);
        meanwhile();
      }
    }
    return false;
  }

 private:
  OwnerWorld& world_;
  OwnerHost& process_;
  SeededRandom random_{std::hash<std::string>()(process_.name)};
  std::unique_ptr<queue::table::TableQueues> queues_ = queues_of(process_, random_);
  std::unique_ptr<queue::Operator> to_ = *queues_->open_operator(kTarget);
  std::unique_ptr<queue::NoticeBoard> from_board_ = *queues_->open_board(kOwnersQueue);
  std::unique_ptr<queue::NoticeBoard> to_board_ = *queues_->open_board(kTarget);
  std::unique_ptr<queue::MoveOwnership> custody_;
  std::unique_ptr<Mover> mover_;
};

/// What lies in the other queue, by id.
std::map<std::string, queue::StoredMessage> carried(OwnerWorld& world) {
  SeededRandom random(99);
  OwnerHost& looker = world.add("looker/" + std::to_string(world.hosts.size()), false);
  const auto queues = queues_of(looker, random);
  std::map<std::string, queue::StoredMessage> found;
  const auto oper = *queues->open_operator(kTarget);
  const auto page = oper->list({.limit = 100'000, .content = true, .consistent = true}, Deadline::never());
  for (const queue::StoredMessage& record : page->messages) {
    EXPECT_FALSE(is_moving(record)) << record.message.id;
    EXPECT_TRUE(found.emplace(record.message.id, record).second) << record.message.id << " is there twice";
  }
  return found;
}

/// A batch or a transaction.
bool writes_several(const dynamo::HttpRequest& request) {
  return std::any_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
    return header.second.ends_with(".BatchExecuteStatement") || header.second.ends_with(".TransactWriteItems");
  });
}

std::size_t shards_with_movers(OwnerWorld& world) {
  const auto owners = world.owners();
  return static_cast<std::size_t>(std::count_if(owners.begin(), owners.end(), [](const auto& owner) {
    return owner.second.find(":move/") != std::string::npos;
  }));
}

TEST(OwnerMoveTest, TheHostsHandAllShardsOverAndGetThemBack) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  OwnerHost& b = world.add("b/1");
  world.pass(3s);
  world.send(100);
  {
    MoverProcess mover(world, "m");
    ASSERT_TRUE(mover.finish([&] {
      for (const Delivery& delivery : a.claim(1)) {
        EXPECT_LT(shards_with_movers(world), 8U);
        EXPECT_EQ(a.settle(delivery, CompletionAction::remove).status, queue::SettleStatus::applied);
      }
    }));
    EXPECT_EQ(shards_with_movers(world), 8U);
    EXPECT_THAT(a.warnings, Contains(HasSubstr("are with a mover")));
    EXPECT_TRUE(mover.ownership().give_back());
  }
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("a/1") == 4 && world.shards_of("b/1") == 4; }, 3s));
  world.pass(2s);
  EXPECT_THAT(b.warnings, Contains(HasSubstr("has ended: hosts share its shards again")));
  const auto ids = world.send(1);
  ASSERT_TRUE(world.pass_until([&] { return !a.claim(1).empty() || !b.claim(1).empty(); }, 3s));
}

TEST(OwnerMoveTest, WhatIsAtWorkStaysUntilItIsSettledAndHoldsUpItsShardAlone) {
  OwnerWorld world({.shards = 2});
  const auto slow = world.send(1, 100, {}, {}, 0);
  OwnerHost& a = world.add("a/1");
  const auto held = a.claim(10);
  ASSERT_THAT(held, SizeIs(1));
  const auto behind = world.send(3, 100, {}, {}, 0);
  const auto others = world.send(3, 100, {}, {}, 1);
  MoverProcess mover(world, "m");
  EXPECT_FALSE(mover.finish([] {}, 20s));
  EXPECT_EQ(mover.mover().count().carried, 3U);
  EXPECT_EQ(mover.mover().count().left.elsewhere, 1U);
  EXPECT_THAT(a.claim(10), IsEmpty()) << "of what is to be handed over nothing more is begun with";
  EXPECT_EQ(a.settle(held.front(), CompletionAction::remove).status, queue::SettleStatus::applied);
  EXPECT_TRUE(mover.finish([] {}, 20s));
  EXPECT_EQ(mover.mover().count().carried, 6U);
  EXPECT_FALSE(carried(world).contains(slow.front()));
}

TEST(OwnerMoveTest, AHostThatStartsMeanwhileGetsNothingBeforeTheEnd) {
  OwnerWorld world({});
  world.send(40);
  MoverProcess mover(world, "m", [](operate::MovePlan& plan) { plan.follow = plan.until_empty = true; });
  static_cast<void>(mover.step());
  OwnerHost& late = world.add("late/1");
  bool came = false;
  ASSERT_TRUE(mover.finish([&] {
    came = came || !late.claim(10).empty();
    EXPECT_EQ(world.shards_of("late/1"), 0U);
  }));
  EXPECT_FALSE(came);
  EXPECT_THAT(carried(world), SizeIs(40));
  EXPECT_TRUE(mover.ownership().give_back());
  EXPECT_TRUE(world.pass_until([&] { return world.shards_of("late/1") == 8; }, 3s));
}

TEST(OwnerMoveTest, WhatMayHaveBeenAtWorkInADeadHostIsASuspectWhereItIsCarried) {
  OwnerWorld world({.shards = 1});
  const auto ids = world.send(2);
  OwnerHost& a = world.add("a/1");
  ASSERT_THAT(a.claim(1), SizeIs(1));
  a.kill();
  MoverProcess mover(world, "m");
  ASSERT_TRUE(mover.finish([] {}));
  const auto found = carried(world);
  ASSERT_THAT(found, SizeIs(2));
  for (const auto& [id, record] : found) {
    EXPECT_EQ(record.marks, queue::core::kSuspect) << "the host has told no more than how many it had";
  }
}

TEST(OwnerMoveTest, AMoverThatDiesLeavesNoSuspectsAndTheShardsGoBackWithinItsLease) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.pass(1s);
  world.send(30);
  MoverProcess mover(world, "m", [](operate::MovePlan& plan) { plan.rate = 5; });
  mover.finish([] {}, 4s);
  ASSERT_EQ(shards_with_movers(world), 8U);
  ASSERT_GT(mover.mover().count().carried, 0U);
  // From here on nobody steps it.
  ASSERT_TRUE(world.pass_until([&] { return world.shards_of("a/1") == 8; }, 12s));
  world.pass(1s);
  const auto claimed = a.claim(100);
  EXPECT_THAT(claimed, ::testing::Not(IsEmpty()));
  for (const Delivery& delivery : claimed) {
    EXPECT_FALSE(delivery.suspect) << delivery.message.id;
  }
}

// Between its look at the clock and the arrival of its first write a process may stand still for as long as it likes.
TEST(OwnerMoveTest, AMoverThatWasFrozenTakesNothingThatAnotherOwnerHasBegunWith) {
  OwnerWorld world({.shards = 2});
  OwnerHost& a = world.add("a/1");
  world.pass(1s);
  const auto ids = world.send(6);
  MoverProcess mover(world, "m");
  std::vector<Delivery> begun;
  bool frozen = false;
  mover.process().wire().before([&](const dynamo::HttpRequest& request) {
    const bool takes = writes_several(request);
    if (takes && !std::exchange(frozen, true)) {
      ASSERT_TRUE(world.pass_until([&] { return world.shards_of("a/1") == 2; }, 13s));
      begun = a.claim(10);
    }
  });
  for (int steps = 0; steps < 1'000 && !frozen; ++steps) {
    if (mover.step().state == State::wait) {
      world.pass(100ms);
    }
  }
  ASSERT_TRUE(frozen);
  ASSERT_THAT(begun, SizeIs(6));
  EXPECT_EQ(mover.mover().count().carried, 0U);
  for (const Delivery& delivery : begun) {
    EXPECT_FALSE(delivery.suspect);
    EXPECT_EQ(a.settle(delivery, CompletionAction::remove).status, queue::SettleStatus::applied);
  }
  ASSERT_TRUE(mover.finish([] {}));
  EXPECT_THAT(carried(world), IsEmpty()) << "they have been handled where they were";
}

TEST(OwnerMoveTest, NoTakeIsOfMoreThanATransactionHolds) {
  OwnerWorld world({.shards = 2});
  const auto ids = world.send(40, 300'000);
  MoverProcess mover(world, "m", [](operate::MovePlan& plan) { plan.page = 250, plan.batch = 25; });
  std::size_t most = 0;
  mover.process().wire().before([&](const dynamo::HttpRequest& request) {
    // Of a take, the updates; what is put into the other queue has its bytes in the request.
    if (request.body.size() < 100'000 && writes_several(request)) {
      std::size_t updates = 0;
      for (auto at = request.body.find("\"Update\""); at != std::string::npos;
           at = request.body.find("\"Update\"", at + 1)) {
        ++updates;
      }
      most = std::max(most, updates);
    }
  });
  ASSERT_TRUE(mover.finish([] {}));
  EXPECT_THAT(carried(world), SizeIs(40));
  EXPECT_GT(most, 1U);
  EXPECT_LE(most * 300'000, 4'000'000U) << "DynamoDB's limit is 4 MB";
}

TEST(OwnerMoveTest, CostsWhatItsPriceSays) {
  OwnerWorld world({});
  world.send(200);
  world.pass(2s);
  MoverProcess mover(world, "m", [](operate::MovePlan& plan) { plan.page = 250, plan.batch = 25; });
  const double before = world.write_units();
  ASSERT_TRUE(mover.finish([] {}));
  const double took = world.write_units() - before;
  const operate::TableTariff tariff(config::Layout::leased, kOwnersQueue);
  cost::Spent planned;
  for (const auto& [id, record] : carried(world)) {
    planned += tariff.carry_out(record);
    planned += tariff.hold(record);
    planned += tariff.carry_in(record);
  }
  std::printf("%.2f write units a message, %.2f as priced\n", took / 200, planned.write_units / 200);
  EXPECT_NEAR(took, planned.write_units, 0.02 * planned.write_units + 8 + 3) << "the shards, and a few heartbeats";
}

TEST(OwnerMoveTest, WhatComesFromElsewhereIsSeenWithinASecondBehindABacklog) {
  OwnerWorld world({.shards = 1});
  SeededRandom random(5);
  OwnerHost& sender = world.add("s", false);
  const auto queues = queues_of(sender, random);
  const auto from = *queues->open_sender(kTarget);
  const queue::NewMessage message{.body = "moved"};
  const auto sent = from->send(std::span(&message, 1), Deadline::never());
  world.clock.advance(1h);
  world.send(200, 600, {}, {}, 0);
  OwnerHost& a = world.add("a/1");
  while (!a.claim(100).empty()) {
  }
  world.pass(10s);
  ASSERT_THAT(a.claim(100), IsEmpty()) << "all that is there is at work, and has been read";
  const auto board = *queues->open_board(kOwnersQueue);
  const auto one = *queues->open_operator(kTarget);
  const auto other = *queues->open_operator(kOwnersQueue);
  operate::MovePlan plan;
  plan.pair = {kTarget, "b", kOwnersQueue, "a"};
  Mover mover({*one, *other, *board, *board}, sender.clock, nullptr, plan);
  Mover::Step step;
  while (mover.count().carried == 0) {
    step = mover.step();
    ASSERT_NE(step.state, State::failed) << step.error.message();
    ASSERT_NE(step.state, State::finished);
    static_cast<void>(a.claim(1));  // it may look in the middle of the move
    if (step.state == State::wait) {
      world.clock.advance(100ms);
    }
  }
  std::vector<Delivery> came;
  ASSERT_TRUE(world.pass_until([&] { return !(came = a.claim(10)).empty(); }, 1s));
  EXPECT_EQ(came.front().message.id, sent.front().id);
  EXPECT_EQ(came.front().message.body, "moved");
}

/// Hosts that come, work and die, and movers that die and are started again: who has begun with what.
class Story {
 public:
  explicit Story(std::uint64_t seed) : world_({.shards = 4, .seed = seed}), random_(seed) {}

  void run() {
    start_host();
    start_host();
    start_mover(false);
    for (int tick = 0; tick < 250; ++tick) {
      chance(3) ? send(random_.next() % 6) : void();
      work();
      for (std::uint64_t steps = random_.next() % 4; steps > 0; --steps) {
        static_cast<void>(movers_.back()->step());
      }
      if (chance(60)) {
        kill_host();
      }
      if (chance(60)) {
        start_mover(true);  // and the one before is stepped no more
      }
      world_.pass(100ms);
    }
    start_mover(true);
    ASSERT_TRUE(movers_.back()->finish([this] { work(); }, 200s));
    ASSERT_TRUE(movers_.back()->ownership().give_back());
    judge();
  }

 private:
  struct Host {
    OwnerHost* host = nullptr;
    std::vector<Delivery> out;
  };

  bool chance(std::uint64_t of) { return random_.next() % of == 0; }
  void send(std::size_t count) {
    const auto ids = count == 0 ? std::vector<std::string>() : world_.send(count, 100);
    sent_.insert(ids.begin(), ids.end());
  }
  void start_host() { hosts_.push_back({&world_.add("h" + std::to_string(++names_) + "/1"), {}}); }
  void start_mover(bool resumed) {
    movers_.push_back(
        std::make_unique<MoverProcess>(world_, "m" + std::to_string(++names_), [&](operate::MovePlan& plan) {
          plan.follow = plan.until_empty = true;
          plan.quiet = 2s;
          plan.resumed = resumed;
        }));
  }
  void work() {
    for (Host& one : hosts_) {
      for (Delivery& delivery : one.host->claim(3)) {
        ++begun_[delivery.message.id];
        one.out.push_back(std::move(delivery));
      }
      while (!one.out.empty() && chance(2)) {
        EXPECT_EQ(one.host->settle(one.out.back(), CompletionAction::remove).status, queue::SettleStatus::applied);
        one.out.pop_back();
      }
    }
  }
  void kill_host() {
    Host& dead = hosts_.front();
    dead.host->kill();
    for (const Delivery& delivery : dead.out) {
      --begun_[delivery.message.id];
      crashed_.insert(delivery.message.id);
    }
    hosts_.erase(hosts_.begin());
    start_host();
  }
  void judge() {
    const auto found = carried(world_);
    for (const std::string& id : sent_) {
      EXPECT_EQ(begun_[id] + static_cast<int>(found.count(id)), 1) << id;
    }
    for (const auto& [id, record] : found) {
      EXPECT_TRUE(sent_.contains(id)) << id;
      EXPECT_TRUE(record.marks == queue::core::kSuspect || !crashed_.contains(id))
          << id << " was at work in a host that died";
    }
  }

  OwnerWorld world_;
  SeededRandom random_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<MoverProcess>> movers_;
  std::set<std::string> sent_;
  std::map<std::string, int> begun_;
  std::set<std::string> crashed_;
  int names_ = 0;
};

TEST(OwnerMoveTest, EachMessageIsBegunWithOnceOrCarriedOnceWhoeverDies) {
  for (std::uint64_t seed = 1; seed <= 30 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story(seed).run();
  }
}

}  // namespace
}  // namespace sluice::test
