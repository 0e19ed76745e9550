#include <gtest/gtest.h>

#include "host/stores/dynamomq/half_backlog.hpp"
#include "host/stores/table/nonce.hpp"

namespace sluice::queue::dynamomq {
namespace {

using namespace std::chrono_literals;

const SteadyTime kStart = SteadyTime(1000s);

Candidate candidate(int number) {
  Candidate one;
  one.id = "m" + std::to_string(number);
  return one;
}

TEST(Contention, IsActiveOnlyWhileRacesAreLost) {
  Contention contention("AAAAA");
  EXPECT_FALSE(contention.active(kStart));
  contention.lost(7, kStart);
  EXPECT_FALSE(contention.active(kStart));
  contention.lost(3, kStart);
  EXPECT_TRUE(contention.active(kStart));
  EXPECT_FALSE(contention.active(kStart + Contention::kHalfLife));
}

TEST(Contention, WithoutLossesNothingIsLeftToOthers) {
  Contention contention("AAAAA");
  contention.saw_peer("BBBBB", kStart);
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(contention.leave(candidate(i), kStart));
  }
}

TEST(Contention, HostsShareCandidatesOutAlike) {
  const std::vector<std::string> tags{"AAAAA", "BBBBB", "CCCCC"};
  std::vector<Contention> hosts;
  for (const auto& tag : tags) {
    Contention& host = hosts.emplace_back(tag);
    host.lost(100, kStart);
    for (const auto& other : tags) {
      host.saw_peer(other, kStart);
    }
  }
  std::vector<int> shares(tags.size());
  for (int i = 0; i < 3'000; ++i) {
    int takers = 0;
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      if (!hosts[h].leave(candidate(i), kStart)) {
        ++takers;
        ++shares[h];
      }
    }
    EXPECT_EQ(takers, 1) << i;
  }
  for (const int share : shares) {
    EXPECT_NEAR(share, 1'000, 150);
  }
}

TEST(Contention, WhatWaitsTooLongIsAnybodys) {
  Contention contention("AAAAA");
  contention.lost(1'000, kStart);
  contention.saw_peer("BBBBB", kStart);
  int others = 0;
  while (!contention.leave(candidate(others), kStart)) {
    ++others;
  }
  EXPECT_TRUE(contention.leave(candidate(others), kStart + Contention::kPatience - 1ms));
  EXPECT_FALSE(contention.leave(candidate(others), kStart + Contention::kPatience));
}

TEST(Contention, WhoeverSendsOrEditsMessagesIsNoPeer) {
  SeededRandom random(1);
  table::NonceSource host("worker-b", random);
  table::NonceSource producer("shop", random);
  Contention contention("AAAAA");
  contention.saw_peer(table::NonceSource::tag_of(producer.anonymous()), kStart);
  EXPECT_FALSE(contention.knows_peers(kStart));
  contention.saw_peer(table::NonceSource::tag_of(host.next()), kStart);
  EXPECT_TRUE(contention.knows_peers(kStart));
  EXPECT_NE(producer.anonymous(), producer.anonymous());
}

TEST(Contention, PeersAreForgottenAndNeverTooMany) {
  Contention contention("AAAAA");
  contention.saw_peer("", kStart);
  contention.saw_peer("AAAAA", kStart);
  EXPECT_FALSE(contention.knows_peers(kStart));
  contention.saw_peer("BBBBB", kStart);
  EXPECT_TRUE(contention.knows_peers(kStart + Contention::kPeerLife));
  EXPECT_FALSE(contention.knows_peers(kStart + Contention::kPeerLife + 1ms));
  for (int i = 0; i < 10'000; ++i) {
    contention.saw_peer("P" + std::to_string(i), kStart);
    contention.lost(100, kStart);
    contention.leave(candidate(i), kStart);
  }
  EXPECT_TRUE(contention.active(kStart));
}

}  // namespace
}  // namespace sluice::queue::dynamomq
