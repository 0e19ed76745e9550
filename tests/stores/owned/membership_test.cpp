#include "host/stores/owned/membership.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/fake_clock.hpp"

namespace sluice::queue::owned {
namespace {

using namespace std::chrono_literals;

SteadyTime at(Duration since) { return SteadyTime() + 1000s + since; }

void see(Membership& members, std::vector<Heartbeat> beats, Duration when) { members.saw(beats, at(when)); }

TEST(MembershipTest, AHostLivesForALeaseFromWhenItsCounterWasSeenToMove) {
  Membership members(10s);
  see(members, {{"a", 1, 10s}}, 0s);
  see(members, {{"a", 1, 10s}}, 8s);
  EXPECT_TRUE(members.alive("a", at(9s)));
  EXPECT_FALSE(members.alive("a", at(10s)));
  see(members, {{"a", 2, 10s}}, 12s);
  EXPECT_TRUE(members.alive("a", at(21s))) << "it was slow";
}

TEST(MembershipTest, OneThatTellsNothingIsWaitedForFromWhenItWasMet) {
  Membership members(10s);
  EXPECT_FALSE(members.alive("b", at(0s)));
  members.met("b", at(0s));
  members.met("b", at(9s));
  EXPECT_TRUE(members.alive("b", at(9s)));
  EXPECT_FALSE(members.alive("b", at(10s)));
}

TEST(MembershipTest, ADeadOneThatIsStillListedStaysDead) {
  Membership members(10s);
  for (const Duration when : {0s, 20s, 60s, 100s}) {
    see(members, {{"a", 1, 10s}}, when);
  }
  EXPECT_FALSE(members.alive("a", at(100s)));
  EXPECT_TRUE(members.dead_since("a", at(10s)));
  EXPECT_FALSE(members.dead_since("a", at(9s)));
}

TEST(OwnLeaseTest, EndsALeaseAfterItsHeartbeatWasBegun) {
  test::FakeClock clock;
  OwnLease lease(10s, clock);
  EXPECT_FALSE(lease.holds());
  const SteadyTime began = lease.now();
  clock.advance(3s);
  EXPECT_FALSE(lease.renewed(began)) << "there was none before";
  clock.advance(6s);
  EXPECT_TRUE(lease.holds());
  clock.advance(1s);
  EXPECT_FALSE(lease.holds());
}

TEST(OwnLeaseTest, AHeartbeatThatWasWrittenAfterTheEndDoesNotBringBackWhatWasHeld) {
  test::FakeClock clock;
  OwnLease lease(10s, clock);
  (void)lease.renewed(lease.now());
  clock.advance(6s);
  const SteadyTime second = lease.now();
  clock.advance(1s);
  EXPECT_TRUE(lease.renewed(second));
  clock.advance(8s);
  const SteadyTime third = lease.now();
  clock.advance(2s);
  EXPECT_FALSE(lease.renewed(third)) << "begun in time, written too late: others may have seen it dead";
}

}  // namespace
}  // namespace sluice::queue::owned
