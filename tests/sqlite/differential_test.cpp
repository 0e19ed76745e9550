// The SQLite store and the one in memory are put through the same random history, step by step; both must answer the
// same. A failure prints its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_store.hpp"

namespace sluice::test {
namespace {

using queue::Claim;
using queue::QueueAddress;
using queue::QueueType;
using queue::Settlement;

class TwoStores {
 public:
  explicit TwoStores(unsigned seed) : dice_(seed) {}

  void run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      switch (below(12)) {
        case 0:
        case 1:
        case 2:
          send();
          break;
        case 3:
        case 4:
          claim();
          break;
        case 5:
        case 6:
        case 7:
          settle();
          break;
        case 8:
          extend();
          break;
        case 9:
          clock_.advance(std::chrono::milliseconds(below(20'000)));
          break;
        case 10:
          operate();
          break;
        default:
          compare();
      }
    }
    compare();
    sqlite_.reset();
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }

 private:
  struct Held {
    QueueAddress address;
    queue::Receipt sqlite;
    queue::Receipt sim;
  };

  std::uint64_t below(std::uint64_t bound) { return dice_() % bound; }
  QueueAddress address() {
    return {below(4) == 0 ? "invoices" : "orders", below(3) == 0 ? QueueType::dlq : QueueType::standard};
  }
  std::string id() { return "id" + std::to_string(below(60)); }
  Duration delay() { return below(2) == 0 ? Duration::zero() : Duration(std::chrono::milliseconds(below(15'000))); }
  queue::Failure failure() {
    if (below(2) == 0) {
      return {};
    }
    return {.error = "error " + std::to_string(below(100)),
            .handler = "h",
            .host = "w",
            .attempts = 1,
            .failed_at = clock_.wall_now()};
  }

  void send() {
    std::vector<queue::NewMessage> messages(below(6));
    for (auto& message : messages) {
      message.id = id();
      message.body = std::string(below(50), 'b');
      message.delay = delay();
      if (below(3) == 0) {
        message.attributes = {{"k", "v"}};
      }
    }
    const std::string name = address().queue;
    const auto left = sqlite_->send(name, messages, Deadline::never());
    const auto right = sim_.send(name, messages, Deadline::never());
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].status, right[i].status) << messages[i].id;
    }
    clock_.advance(Duration(below(3)));
  }

  void claim() {
    const QueueAddress from = address();
    const std::size_t max = below(8);
    const Duration visibility = std::chrono::milliseconds(below(20'000));
    const auto left = sqlite_->claim(from, max, visibility, Deadline::never());
    const auto right = sim_.claim(from, max, visibility, Deadline::never());
    ASSERT_TRUE(left) << left.error().message();
    ASSERT_EQ(left->size(), right->size());
    for (std::size_t i = 0; i < left->size(); ++i) {
      const Claim& a = (*left)[i];
      const Claim& b = (*right)[i];
      ASSERT_EQ(a.message.id, b.message.id);
      EXPECT_EQ(a.message.attempt, b.message.attempt);
      EXPECT_EQ(a.message.body, b.message.body);
      EXPECT_EQ(a.receipt.version, b.receipt.version);
      EXPECT_EQ(a.invisible_until, b.invisible_until);
      held_.push_back({from, a.receipt, b.receipt});
    }
  }

  void settle() {
    if (held_.empty()) {
      return;
    }
    // Old receipts are used again and again, and twice in a batch: most are lost by then.
    const QueueAddress half = held_[below(held_.size())].address;
    std::vector<Settlement> left_batch;
    std::vector<Settlement> right_batch;
    for (std::uint64_t i = 0, tries = 1 + below(8); i < tries; ++i) {
      const Held& held = held_[below(held_.size())];
      if (held.address.queue != half.queue) {
        continue;  // In memory each queue counts for itself, so that the receipt might fit another message there.
      }
      Settlement settlement{.receipt = held.sqlite,
                            .action = static_cast<queue::SettleAction>(below(6) % 4),
                            .delay = delay(),
                            .failure = failure()};
      left_batch.push_back(settlement);
      settlement.receipt = held.sim;
      right_batch.push_back(settlement);
    }
    const auto left = sqlite_->settle(half, left_batch, Deadline::never());
    const auto right = sim_.settle(half, right_batch, Deadline::never());
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].status, right[i].status) << left_batch[i].receipt.id;
    }
  }

  void extend() {
    if (held_.empty()) {
      return;
    }
    Held& held = held_[below(held_.size())];
    const Duration visibility = std::chrono::milliseconds(below(20'000));
    const auto left = sqlite_->extend(held.address, std::span(&held.sqlite, 1), visibility, Deadline::never());
    const auto right = sim_.extend(held.address, std::span(&held.sim, 1), visibility, Deadline::never());
    ASSERT_EQ(left.at(0).status, right.at(0).status) << held.sqlite.id;
    EXPECT_EQ(left[0].receipt.version, right[0].receipt.version);
    held.sqlite = left[0].receipt;
    held.sim = right[0].receipt;
  }

  void operate() {
    const std::string name = address().queue;
    const std::string which = id();
    const queue::Failure why = failure();
    const auto same = [&](const Result<void>& left, const Result<void>& right) {
      EXPECT_EQ(left.has_value(), right.has_value()) << which;
      if (!left && !right) {
        EXPECT_EQ(left.error().code(), right.error().code()) << which;
      }
    };
    switch (below(4)) {
      case 0:
        same(sqlite_->dead_letter(name, which, why, Deadline::never()),
             sim_.dead_letter(name, which, why, Deadline::never()));
        break;
      case 1:
        same(sqlite_->redrive(name, which, Deadline::never()), sim_.redrive(name, which, Deadline::never()));
        break;
      case 2:
        same(sqlite_->remove(name, which, Deadline::never()), sim_.remove(name, which, Deadline::never()));
        break;
      default: {
        const auto found = sim_.get(name, which, Deadline::never());
        if (found) {
          const queue::NewMessage content{.id = {}, .body = "edited " + std::to_string(below(1000))};
          const auto left = sqlite_->edit(name, *found, content, Deadline::never());
          const auto right = sim_.edit(name, *found, content, Deadline::never());
          ASSERT_TRUE(left) << left.error().message();
          EXPECT_EQ(left->version, right->version);
        }
      }
    }
  }

  void compare() {
    for (const std::string name : {"orders", "invoices"}) {
      for (const QueueType type : {QueueType::standard, QueueType::dlq}) {
        const auto left = sqlite_->stats({name, type}, Deadline::never());
        const auto right = sim_.stats({name, type}, Deadline::never());
        ASSERT_TRUE(left) << left.error().message();
        EXPECT_EQ(left->ready, right->ready);
        EXPECT_EQ(left->in_flight, right->in_flight);
        EXPECT_EQ(left->delayed, right->delayed);
        EXPECT_EQ(left->oldest_ready, right->oldest_ready);
        compare_lists({name, type});
      }
    }
  }

  void compare_lists(const QueueAddress& which) {
    const auto left = sqlite_->list({.address = which, .limit = 500, .cursor = {}}, Deadline::never());
    const auto right = sim_.list({.address = which, .limit = 500, .cursor = {}}, Deadline::never());
    ASSERT_TRUE(left) << left.error().message();
    // A message that has moved keeps its seq here and there, but the two need not agree on ties.
    const auto by_id = [](const queue::StoredMessage& a, const queue::StoredMessage& b) {
      return a.message.id < b.message.id;
    };
    auto a = left->messages;
    auto b = right->messages;
    EXPECT_TRUE(std::is_sorted(a.begin(), a.end(),
                               [](const auto& x, const auto& y) { return x.message.sent_at < y.message.sent_at; }));
    std::sort(a.begin(), a.end(), by_id);
    std::sort(b.begin(), b.end(), by_id);
    ASSERT_EQ(a.size(), b.size());
    const WallTime now = clock_.wall_now();
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].message.id, b[i].message.id);
      EXPECT_EQ(a[i].message.body, b[i].message.body);
      EXPECT_EQ(a[i].message.attributes, b[i].message.attributes);
      EXPECT_EQ(a[i].message.attempt, b[i].message.attempt) << a[i].message.id;
      EXPECT_EQ(a[i].message.sent_at, b[i].message.sent_at) << a[i].message.id;
      EXPECT_EQ(a[i].version, b[i].version) << a[i].message.id;
      EXPECT_EQ(a[i].state(now), b[i].state(now)) << a[i].message.id;
      EXPECT_EQ(a[i].received_at, b[i].received_at) << a[i].message.id;
      EXPECT_EQ(a[i].updated_at, b[i].updated_at) << a[i].message.id;
      EXPECT_EQ(a[i].created_at, b[i].created_at) << a[i].message.id;
      EXPECT_EQ(a[i].failure.error, b[i].failure.error) << a[i].message.id;
    }
  }

  std::mt19937 dice_;
  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  SimStore sim_{clock_, random_};
  std::unique_ptr<queue::Store> sqlite_ = open_store(file_, clock_, random_);
  std::vector<Held> held_;
};

TEST(Differential, RandomHistoriesGoTheSameWayAsInMemory) {
  for (unsigned seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TwoStores(seed).run(400);
  }
}

}  // namespace
}  // namespace sluice::test
