#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "base/random.hpp"
#include "host/stores/owned/ownership.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::queue::owned {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Duration kLease = 10s;
const std::string kHalf = "orders";

/// What the table would hold.
struct Table {
  std::map<std::string, Heartbeat> beats;
  std::vector<Ownership> items;

  explicit Table(std::uint32_t shards) {
    for (std::uint32_t shard = 0; shard < shards; ++shard) {
      items.push_back({.part = shard});
    }
  }
  bool write(const PartKeeper::Move& move) {
    if (items[move.before.part] != move.before) {
      return false;
    }
    items[move.before.part] = move.after;
    return true;
  }
  std::vector<Heartbeat> read_beats() const {
    std::vector<Heartbeat> found;
    for (const auto& [host, beat] : beats) {
      found.push_back(beat);
    }
    return found;
  }
};

/// A host that beats, looks and moves when it is told to.
struct Host {
  Host(Table& table_of_all, std::string host) : table(table_of_all), name(std::move(host)) {}

  void beat(SteadyTime began) { beat(began, began); }
  void beat(SteadyTime began, SteadyTime now) {
    table.beats[name] = {name, ++counter, kLease, leaving, {kHalf}};
    clock.set_steady(now);
    if (!lease.renewed(began)) {
      lose_parts();
    }
  }
  void look(SteadyTime now) {
    clock.set_steady(now);
    if (!lease.holds()) {
      return lose();
    }
    members.saw(table.read_beats(), now);
    const auto had = keeper.parts();
    const auto moves = keeper.look(table.items, members, now);
    note_lost(had);
    for (const auto& move : moves) {
      if (table.write(move)) {
        keeper.moved(move);
      }
    }
    for (const auto shard : keeper.parts()) {
      if (keeper.keeping(shard) == PartKeeper::Keeping::closing && !busy) {
        const auto move = keeper.hand_over(shard);
        if (table.write(move)) {
          keeper.moved(move);
        }
      }
    }
  }
  void lose() {
    lease.gone();
    lose_parts();
  }
  void lose_parts() {
    const auto had = keeper.parts();
    keeper.lease_lost();
    note_lost(had);
  }
  void note_lost(const std::vector<std::uint32_t>& had) {
    const auto has = keeper.parts();
    std::set_difference(had.begin(), had.end(), has.begin(), has.end(), std::back_inserter(lost));
  }
  /// It may start a handler of that shard.
  bool works_on(std::uint32_t shard, SteadyTime now) {
    clock.set_steady(now);
    return lease.may_start() && keeper.keeping(shard) == PartKeeper::Keeping::owned;
  }

  Table& table;
  std::string name;
  std::int64_t counter = 0;
  bool leaving = false;
  std::vector<std::uint32_t> lost;  ///< what it has lost so far
  bool busy = false;                ///< something is out of each of its shards
  Membership members{kLease};
  test::FakeClock clock;
  OwnLease lease{kLease, clock};
  PartKeeper keeper{name, kHalf};
};

class PartKeeperTest : public ::testing::Test {
 protected:
  SteadyTime at(Duration since) const { return SteadyTime() + 1000s + since; }
  Table table_{4};
};

TEST_F(PartKeeperTest, TheFirstHostTakesEverything) {
  Host host(table_, "a");
  host.beat(at(0s));
  host.look(at(0s));
  EXPECT_THAT(host.keeper.parts(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(host.keeper.epoch(0), 1);
  EXPECT_TRUE(table_.items[0].clean);
}

TEST_F(PartKeeperTest, AJoinerGetsItsShareOnceItIsHandedOver) {
  Host a(table_, "a");
  Host b(table_, "b");
  a.beat(at(0s));
  a.look(at(0s));
  b.beat(at(1s));
  b.look(at(1s));
  EXPECT_THAT(b.keeper.parts(), IsEmpty()) << "nothing is taken from a host that lives";
  EXPECT_TRUE(b.keeper.expects());
  a.busy = true;
  a.look(at(2s));
  EXPECT_EQ(a.keeper.keeping(3), PartKeeper::Keeping::closing);
  b.look(at(2s));
  EXPECT_THAT(b.keeper.parts(), IsEmpty()) << "not before all of it is settled";
  a.busy = false;
  a.look(at(3s));
  b.look(at(3s));
  EXPECT_THAT(a.keeper.parts(), ElementsAre(0, 1));
  EXPECT_THAT(b.keeper.parts(), ElementsAre(2, 3));
  EXPECT_EQ(table_.items[3].epoch, 2) << "one write for a change of hands";
  EXPECT_TRUE(table_.items[3].clean);
  EXPECT_FALSE(b.keeper.expects());
}

TEST_F(PartKeeperTest, AHostThatLeavesHandsEverythingOver) {
  Host a(table_, "a");
  Host b(table_, "b");
  a.beat(at(0s));
  a.look(at(0s));
  a.leaving = true;
  a.beat(at(1s));
  b.beat(at(1s));
  a.look(at(1s));
  b.look(at(1s));
  EXPECT_THAT(a.keeper.parts(), IsEmpty());
  EXPECT_THAT(b.keeper.parts(), ElementsAre(0, 1, 2, 3));
}

TEST_F(PartKeeperTest, TheLastHostThatLeavesLeavesThemToNobody) {
  Host a(table_, "a");
  a.beat(at(0s));
  a.look(at(0s));
  a.leaving = true;
  a.beat(at(1s));
  a.look(at(1s));
  EXPECT_EQ(table_.items[0].owner, "");
  Host b(table_, "b");
  b.beat(at(2s));
  b.look(at(2s));
  EXPECT_EQ(b.keeper.parts().size(), 4U);
  EXPECT_TRUE(table_.items[0].clean);
}

TEST_F(PartKeeperTest, ADeadHostsShardsAreTakenAfterItsLeaseAndAreNotClean) {
  Host a(table_, "a");
  a.beat(at(0s));
  a.look(at(0s));
  Host b(table_, "b");
  b.beat(at(5s));
  b.look(at(5s));
  b.beat(at(14s));
  b.look(at(14s));
  EXPECT_THAT(b.keeper.parts(), IsEmpty()) << "b has seen a's counter as it is for 9 s";
  b.look(at(15s));
  EXPECT_EQ(b.keeper.parts().size(), 4U);
  EXPECT_FALSE(table_.items[0].clean);
}

TEST_F(PartKeeperTest, AnOwnerThatTellsNothingOfItselfIsWaitedForAsLong) {
  for (auto& item : table_.items) {
    item.owner = "half-made";
    item.epoch = 3;
  }
  Host b(table_, "b");
  b.beat(at(0s));
  b.look(at(0s));
  EXPECT_THAT(b.keeper.parts(), IsEmpty());
  b.beat(at(9s));
  b.look(at(10s));
  EXPECT_EQ(b.keeper.parts().size(), 4U);
}

TEST_F(PartKeeperTest, AHostWhoseLeaseRanOutTakesItsShardsAnew) {
  Host a(table_, "a");
  a.beat(at(0s));
  a.look(at(0s));
  a.look(at(11s));
  EXPECT_EQ(a.lost.size(), 4U);
  EXPECT_FALSE(a.works_on(0, at(11s)));
  a.beat(at(12s));
  EXPECT_FALSE(a.works_on(0, at(12s))) << "somebody may be about to take it";
  a.look(at(12s));
  EXPECT_TRUE(a.works_on(0, at(12s)));
  EXPECT_EQ(table_.items[0].epoch, 2);
  EXPECT_FALSE(table_.items[0].clean) << "its own handlers may still be at work";
}

TEST_F(PartKeeperTest, AHeartbeatThatCameTooLateDoesNotBringTheShardsBack) {
  Host a(table_, "a");
  a.beat(at(0s));
  a.look(at(0s));
  Host b(table_, "b");
  b.beat(at(1s));
  b.look(at(1s));
  b.beat(at(8s));
  b.look(at(11s));
  a.beat(at(9s), at(12s));
  EXPECT_FALSE(a.works_on(0, at(12s))) << "b has taken it";
  EXPECT_EQ(a.lost.size(), 4U);
}

TEST_F(PartKeeperTest, NothingIsStartedInTheLastThirdOfALease) {
  Host a(table_, "a");
  a.beat(at(0s));
  a.look(at(0s));
  EXPECT_TRUE(a.works_on(0, at(6s)));
  EXPECT_FALSE(a.works_on(0, at(7s)));
  EXPECT_EQ(a.keeper.keeping(0), PartKeeper::Keeping::owned);
}

TEST_F(PartKeeperTest, AnItemThatIsGoneIsWrittenAnewAndItsShardIsNotClean) {
  Host a(table_, "a");
  a.beat(at(0s));
  a.look(at(0s));
  table_.items[1] = {.part = 1};
  a.beat(at(1s));
  a.look(at(1s));
  EXPECT_THAT(a.lost, ElementsAre(1)) << "somebody else may have taken it meanwhile";
  EXPECT_TRUE(a.works_on(1, at(1s)));
  EXPECT_EQ(table_.items[1], (Ownership{.part = 1, .owner = "a", .epoch = 1, .clean = false}));
}

TEST_F(PartKeeperTest, AHostThatLostItsLeaseTakesShardsWhoseItemsAreGone) {
  Host a(table_, "a");
  a.beat(at(0s));
  a.look(at(0s));
  a.look(at(11s));
  table_ = Table(4);  // the table is made again
  a.beat(at(12s));
  a.look(at(12s));
  EXPECT_EQ(a.keeper.parts().size(), 4U);
  EXPECT_EQ(table_.items[3].owner, "a");
}

TEST_F(PartKeeperTest, WhatIsAnothersInATableThatWasMadeAgainIsLost) {
  Host a(table_, "a");
  Host b(table_, "b");
  a.beat(at(0s));
  a.look(at(0s));
  b.beat(at(1s));
  b.look(at(1s));
  a.beat(at(1s));
  a.look(at(1s));
  b.look(at(1s));
  table_.items = Table(4).items;
  b.look(at(2s));
  EXPECT_EQ(b.keeper.parts().size(), 2U);
  a.look(at(2s));
  EXPECT_EQ(a.keeper.parts().size(), 2U);
  for (std::uint32_t shard = 0; shard < 4; ++shard) {
    EXPECT_NE(a.works_on(shard, at(2s)), b.works_on(shard, at(2s))) << shard;
  }
}

// Each time it lives for a moment, under another name as it has no state folder, and is within its lease when the next
// one comes.
TEST_F(PartKeeperTest, AHostThatDiesAgainAndAgainIsGivenNothing) {
  Host a(table_, "a/1");
  a.beat(at(0s));
  a.look(at(0s));
  auto loop = std::make_unique<Host>(table_, "loop/0");
  for (Duration since = 1s; since < 12s; since += 1s) {
    loop->beat(at(since));
    loop->look(at(since));
    a.beat(at(since));
    a.look(at(since));
  }
  ASSERT_EQ(loop->keeper.parts().size(), 2U) << "one that stays gets its share";
  for (int i = 1; i <= 60; ++i) {
    const Duration since = 11s + i * 500ms;
    loop = std::make_unique<Host>(table_, "loop/" + std::to_string(i));
    loop->beat(at(since));
    loop->look(at(since));
    a.beat(at(since));
    a.look(at(since));
    EXPECT_THAT(loop->keeper.parts(), IsEmpty()) << i;
    if (since > 21s + 1s) {
      EXPECT_EQ(a.keeper.parts().size(), 4U) << i;
    }
  }
  for (Duration since = 42s; since < 55s; since += 1s) {
    loop->beat(at(since));
    a.beat(at(since));
    a.look(at(since));
    loop->look(at(since));
  }
  EXPECT_EQ(loop->keeper.parts().size(), 2U) << "once it stays, it gets its share again";
}

TEST_F(PartKeeperTest, ASecondProcessOfAHostGetsItsShareWithItsSecondHeartbeat) {
  Host a(table_, "a/1");
  Host b(table_, "a/2");
  a.beat(at(0s));
  a.look(at(0s));
  b.beat(at(1s));
  b.look(at(1s));
  a.look(at(1s));
  EXPECT_EQ(a.keeper.parts().size(), 4U);
  a.beat(at(4s));
  b.beat(at(4s));
  a.look(at(4s));
  b.look(at(4s));
  EXPECT_EQ(a.keeper.parts().size(), 2U);
  EXPECT_EQ(b.keeper.parts().size(), 2U);
}

TEST_F(PartKeeperTest, FewerShardsAreLostAndMoreAreTaken) {
  Host a(table_, "a");
  a.beat(at(0s));
  a.look(at(0s));
  table_.items.resize(2);
  a.look(at(1s));
  EXPECT_THAT(a.lost, ElementsAre(2, 3));
  table_.items.push_back({.part = 2});
  a.look(at(2s));
  EXPECT_THAT(a.keeper.parts(), ElementsAre(0, 1, 2));
}

/// Hosts that beat and look late, stop for a while, die, come back under another name and leave, over hours.
class Crowd {
 public:
  explicit Crowd(std::uint64_t seed, bool two_thirds = true)
      : random_(seed), two_thirds_(two_thirds), table_(1 + static_cast<std::uint32_t>(random_.below(12))) {
    for (int i = 0; i < 4; ++i) {
      add();
    }
  }

  /// False once two hosts have worked on a shard at the same time.
  bool run(int steps) {
    for (int step = 0; step < steps; ++step) {
      now_ += std::chrono::milliseconds(1 + random_.below(400));
      act(*hosts_[random_.below(hosts_.size())]);
      if (!exclusive()) {
        return false;
      }
    }
    return true;
  }

  /// Lets those that live work for a while; every shard must be somebody's then.
  bool all_are_worked_on() {
    for (auto& host : hosts_) {
      host->paused_until = {};
      host->host->leaving = false;
    }
    for (int round = 0; round < 40; ++round) {
      now_ += 1s;
      for (auto& host : hosts_) {
        host->host->busy = false;
        host->host->beat(now_);
        host->host->look(now_);
      }
    }
    for (std::uint32_t shard = 0; shard < table_.items.size(); ++shard) {
      int workers = 0;
      for (const auto& host : hosts_) {
        workers += host->host->works_on(shard, now_) ? 1 : 0;
      }
      if (workers != 1) {
        return false;
      }
    }
    return true;
  }

 private:
  struct Member {
    Member(Table& table, const std::string& name) { host.emplace(table, name); }
    std::optional<Host> host;
    SteadyTime paused_until{};
    std::optional<SteadyTime> writing_since;  ///< a heartbeat is on its way
  };

  void add() { hosts_.push_back(std::make_unique<Member>(table_, "h" + std::to_string(++named_))); }

  void act(Member& member) {
    if (now_ < member.paused_until) {
      return;
    }
    switch (random_.below(24)) {
      case 0:
        member.paused_until = now_ + std::chrono::seconds(random_.below(30));
        return;
      case 1:
        member.host.emplace(table_, "h" + std::to_string(++named_));
        member.writing_since.reset();  // it has died, and another begins
        return;
      case 2:
        member.host->leaving = !member.host->leaving;
        return;
      case 3:
        member.host->busy = !member.host->busy;
        return;
      default:
        break;
    }
    if (member.writing_since) {
      member.host->beat(*member.writing_since, now_);
      member.writing_since.reset();
    } else if (random_.below(3) == 0) {
      member.writing_since = now_;
    } else {
      member.host->look(now_);
    }
  }

  bool exclusive() const {
    for (std::uint32_t shard = 0; shard < table_.items.size(); ++shard) {
      int workers = 0;
      for (const auto& member : hosts_) {
        Host& host = *member->host;
        const bool owned = host.keeper.keeping(shard) == PartKeeper::Keeping::owned;
        workers += two_thirds_ ? (host.works_on(shard, now_) ? 1 : 0) : (owned ? 1 : 0);
      }
      if (workers > 1) {
        return false;
      }
    }
    return true;
  }

  SeededRandom random_;
  const bool two_thirds_;
  SteadyTime now_ = SteadyTime() + 1000s;
  Table table_;
  int named_ = 0;
  std::vector<std::unique_ptr<Member>> hosts_;
};

TEST(PartKeeperCrowdTest, NoTwoHostsEverWorkOnOneShard) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Crowd crowd(seed);
    ASSERT_TRUE(crowd.run(3000)) << "seed " << seed;
    ASSERT_TRUE(crowd.all_are_worked_on()) << "seed " << seed;
  }
}

TEST(PartKeeperCrowdTest, TheCheckFindsHostsThatDoNotLookAtTheirLease) {
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    found += Crowd(seed, false).run(3000) ? 0 : 1;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace sluice::queue::owned
