#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "base/mutex.hpp"
#include "tests/contract/store_contract.hpp"

// Many threads on one store, the clock standing still.
namespace sluice::test {

using queue::Completion;
using queue::Delivery;
using queue::NewMessage;
using queue::SendStatus;
using queue::SettleStatus;

namespace {

/// Runs `work` on `count` threads and waits for all of them.
template <typename Work>
void on_threads(std::size_t count, Work work) {
  std::vector<std::jthread> threads;
  threads.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    threads.emplace_back([&work, i] { work(i); });
  }
}

}  // namespace

TEST_P(StoreContract, ConcurrentClaimersNeverShareAMessage) {
  constexpr std::size_t kMessages = 400;
  send_many(kMessages);
  Mutex mutex;
  std::map<std::string, int> claimed;
  std::atomic<std::size_t> total = 0;
  on_threads(4, [&](std::size_t) {
    // A store under contention may come back empty-handed; the bound keeps a broken one from running for ever.
    for (int tries = 0; total < kMessages && tries < 2000; ++tries) {
      const auto claims = desk().claim(standard(), 7, 30s, soon());
      ASSERT_TRUE(claims) << claims.error().message();
      total += claims->size();
      const MutexLock lock(mutex);
      for (const Delivery& claim : *claims) {
        ++claimed[claim.message.id];
      }
    }
  });
  EXPECT_EQ(claimed.size(), kMessages);
  for (const auto& [id, times] : claimed) {
    EXPECT_EQ(times, 1) << id;
  }
}

TEST_P(StoreContract, OneOfManySendersOfAnIdWins) {
  constexpr std::size_t kIds = 30;
  std::vector<std::atomic<int>> sent(kIds);
  std::atomic<int> odd = 0;
  on_threads(4, [&](std::size_t thread) {
    for (std::size_t i = 0; i < kIds; ++i) {
      const NewMessage message{.id = "id" + std::to_string(i), .body = "from " + std::to_string(thread)};
      const auto results = desk().send(queue_name(), std::span(&message, 1), soon());
      sent[i] += results.at(0).status == SendStatus::sent ? 1 : 0;
      odd += results.at(0).status == SendStatus::failed ? 1 : 0;
    }
  });
  EXPECT_EQ(odd, 0);
  for (std::size_t i = 0; i < kIds; ++i) {
    EXPECT_EQ(sent[i], 1) << i;
  }
  EXPECT_EQ(stats(standard()).total(), kIds);
}

TEST_P(StoreContract, OneOfManySettlersOfAReceiptWins) {
  send_many(40);
  const auto claims = claim_all(standard());
  ASSERT_EQ(claims.size(), 40U);
  std::vector<std::atomic<int>> applied(claims.size());
  on_threads(4, [&](std::size_t thread) {
    for (std::size_t n = 0; n < claims.size(); ++n) {
      const std::size_t i = (n + thread * 10) % claims.size();
      const Completion settlement{.receipt = claims[i].receipt, .action = queue::CompletionAction::retry, .delay = 60s};
      const auto results = desk().settle(standard(), std::span(&settlement, 1), soon());
      applied[i] += results.at(0).status == SettleStatus::applied ? 1 : 0;
    }
  });
  for (std::size_t i = 0; i < claims.size(); ++i) {
    EXPECT_GE(applied[i], 1) << i;
    EXPECT_EQ(get(claims[i].message.id).message.attempt, 1U);
  }
  EXPECT_EQ(stats(standard()).delayed, claims.size());
}

TEST_P(StoreContract, SendersWorkersAndOperatorsTogetherLoseNothing) {
  constexpr std::size_t kSenders = 2;
  constexpr std::size_t kEach = 150;
  std::atomic<std::size_t> sent = 0;
  std::atomic<std::size_t> removed = 0;
  std::atomic<int> odd = 0;
  on_threads(kSenders + 3, [&](std::size_t thread) {
    if (thread < kSenders) {
      for (std::size_t i = 0; i < kEach; i += 10) {
        std::vector<NewMessage> batch(10);
        for (std::size_t n = 0; n < batch.size(); ++n) {
          batch[n].id = std::to_string(thread) + "-" + std::to_string(i + n);
        }
        for (const auto& result : desk().send(queue_name(), batch, soon())) {
          odd += result.status == SendStatus::sent ? 0 : 1;
          ++sent;
        }
      }
      return;
    }
    if (thread == kSenders) {
      while (removed < kSenders * kEach && odd == 0) {
        odd += desk().list(queue_name(), {.limit = 5}, soon()) ? 0 : 1;
        odd += desk().stats(standard(), soon()) ? 0 : 1;
      }
      return;
    }
    for (int tries = 0; removed < kSenders * kEach && tries < 20000 && odd == 0; ++tries) {
      const auto claims = desk().claim(standard(), 9, 600s, soon());
      if (!claims) {
        ++odd;
        return;
      }
      std::vector<Completion> settlements;
      for (const Delivery& claim : *claims) {
        settlements.push_back({.receipt = claim.receipt});
      }
      for (const auto& result : desk().settle(standard(), settlements, soon())) {
        odd += result.status == SettleStatus::applied ? 0 : 1;
        ++removed;
      }
    }
  });
  EXPECT_EQ(odd, 0);
  EXPECT_EQ(sent, kSenders * kEach);
  EXPECT_EQ(removed, kSenders * kEach);
  EXPECT_EQ(stats(standard()).total(), 0U);
}

}  // namespace sluice::test
