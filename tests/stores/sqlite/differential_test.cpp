// The SQLite store and the one in memory are put through the same random history, step by step; both must answer the
// same. A failure prints its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "host/stores/core/outcomes.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::Delivery;
using queue::Half;
using queue::QueueAddress;

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
  QueueAddress address() { return {below(4) == 0 ? "invoices" : "orders", below(3) == 0 ? Half::dlq : Half::standard}; }
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
      const Delivery& a = (*left)[i];
      const Delivery& b = (*right)[i];
      ASSERT_EQ(a.message.id, b.message.id);
      EXPECT_EQ(a.message.attempt, b.message.attempt);
      EXPECT_EQ(a.message.body, b.message.body);
      EXPECT_EQ(a.receipt.version, b.receipt.version);
      EXPECT_EQ(a.invisible_until, b.invisible_until);
      EXPECT_EQ(a.suspect, b.suspect);
      held_.push_back({from, a.receipt, b.receipt});
    }
  }

  void settle() {
    if (held_.empty()) {
      return;
    }
    // Old receipts are used again and again, and twice in a batch: most are lost by then.
    const QueueAddress half = held_[below(held_.size())].address;
    std::vector<Completion> left_batch;
    std::vector<Completion> right_batch;
    for (std::uint64_t i = 0, tries = 1 + below(8); i < tries; ++i) {
      const Held& held = held_[below(held_.size())];
      if (held.address.queue != half.queue) {
        continue;  // In memory each queue counts for itself, so that the receipt might fit another message there.
      }
      Completion settlement{.receipt = held.sqlite,
                            .action = static_cast<queue::CompletionAction>(below(6) % 4),
                            .delay = delay(),
                            .failure = failure(),
                            .marks = below(4) == 0 ? queue::core::kSuspect : 0};
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
    switch (below(4)) {
      case 0:
      case 1:
        change();
        break;
      case 2:
        edit();
        break;
      default:
        put();
    }
  }

  void change() {
    const std::string name = address().queue;
    std::map<std::string, queue::Change> batch;  // at most one an id
    for (std::uint64_t i = 0, count = 1 + below(6); i < count; ++i) {
      const std::string which = id();
      queue::Change change{.id = which,
                           .action = static_cast<queue::ChangeAction>(below(7)),
                           .version = std::nullopt,
                           .after = delay() - Duration(below(3)),
                           .failure = failure()};
      const auto found = sim_.get(name, which, Deadline::never());
      if (found && below(2) == 0) {
        change.version = found->version + (below(4) == 0 ? 1 : 0);
      }
      batch[which] = change;
    }
    std::vector<queue::Change> changes;
    changes.reserve(batch.size());
    for (const auto& [which, change] : batch) {
      changes.push_back(change);
    }
    const auto left = sqlite_->change(name, changes, Deadline::never());
    const auto right = sim_.change(name, changes, Deadline::never());
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].status, right[i].status) << changes[i].id;
      EXPECT_EQ(left[i].version, right[i].version) << changes[i].id;
      EXPECT_EQ(left[i].error.code(), right[i].error.code()) << changes[i].id;
    }
  }

  void edit() {
    const std::string name = address().queue;
    const std::string which = id();
    const auto found = sim_.get(name, which, Deadline::never());
    const std::vector<queue::ContentEdit> choices{
        {.path = {"data"}, .json = "\"edited " + std::to_string(below(1000)) + "\""},
        {.path = {"data"}, .json = R"({"list":[]})"},
        {.path = {"data", "list", std::size_t{0}}, .json = std::to_string(below(1000))},
        {.path = {"attributes", "k"}, .json = std::nullopt},
        {.path = {"attributes", "new"}, .json = R"("v")"},
        {.path = {"group"}, .json = R"("g")"},
    };
    const std::vector<queue::ContentEdit> edits{choices[below(choices.size())], choices[below(choices.size())]};
    const std::int64_t version = found ? found->version + (below(5) == 0 ? 1 : 0) : 1;
    const auto left = sqlite_->edit(name, which, version, edits, Deadline::never());
    const auto right = sim_.edit(name, which, version, edits, Deadline::never());
    ASSERT_EQ(left.has_value(), right.has_value()) << which;
    if (left) {
      EXPECT_EQ(left->version, right->version);
      EXPECT_EQ(left->message.group, right->message.group);
    } else {
      EXPECT_EQ(left.error().code(), right.error().code());
    }
  }

  void put() {
    // Copies of what lies in one queue, some of them under another id or with another native record.
    const std::string from = address().queue;
    const auto page = sim_.list(from, {.half = address().half, .limit = 1 + below(5), .cursor = {}, .native = true},
                                Deadline::never());
    std::vector<queue::StoredMessage> records = page->messages;
    for (queue::StoredMessage& record : records) {
      record.message.id = below(2) == 0 ? id() : record.message.id;
      record.version += static_cast<std::int64_t>(below(5));
      record.native = below(2) == 0 ? "{\"n\":" + std::to_string(below(9)) + "}" : record.native;
    }
    const std::string to = address().queue;
    const auto mode = below(2) == 0 ? queue::PutMode::insert : queue::PutMode::replace;
    const auto left = sqlite_->put(to, records, mode, Deadline::never());
    const auto right = sim_.put(to, records, mode, Deadline::never());
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i].status, right[i].status) << records[i].message.id;
    }
  }

  void compare() {
    for (const std::string name : {"orders", "invoices"}) {
      for (const Half half : {Half::standard, Half::dlq}) {
        const auto left = sqlite_->stats({name, half}, Deadline::never());
        const auto right = sim_.stats({name, half}, Deadline::never());
        ASSERT_TRUE(left) << left.error().message();
        EXPECT_EQ(left->ready, right->ready);
        EXPECT_EQ(left->in_flight, right->in_flight);
        EXPECT_EQ(left->delayed, right->delayed);
        EXPECT_EQ(left->oldest_ready, right->oldest_ready);
        compare_lists({name, half});
        compare_overviews({name, half});
      }
    }
  }

  void compare_overviews(const QueueAddress& which) {
    const queue::OverviewRequest request{.half = which.half, .ids = 500, .errors = 500};
    const auto left = sqlite_->overview(which.queue, request, Deadline::never());
    const auto right = sim_.overview(which.queue, request, Deadline::never());
    ASSERT_TRUE(left) << left.error().message();
    const auto sorted = [](std::vector<std::string> ids) {
      std::sort(ids.begin(), ids.end());  // ties
      return ids;
    };
    EXPECT_EQ(sorted(left->first_ids), sorted(right->first_ids));
    EXPECT_EQ(sorted(left->first_in_flight_ids), sorted(right->first_in_flight_ids));
    ASSERT_EQ(left->errors.size(), right->errors.size());
    for (std::size_t i = 0; i < left->errors.size(); ++i) {
      EXPECT_EQ(left->errors[i].error, right->errors[i].error);
      EXPECT_EQ(left->errors[i].count, right->errors[i].count);
      EXPECT_EQ(left->errors[i].last_failed_at, right->errors[i].last_failed_at);
    }
  }

  void compare_lists(const QueueAddress& which) {
    const queue::ListRequest request{.half = which.half, .limit = 500, .cursor = {}, .native = true};
    const auto left = sqlite_->list(which.queue, request, Deadline::never());
    const auto right = sim_.list(which.queue, request, Deadline::never());
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
      EXPECT_EQ(a[i].message.content_type, b[i].message.content_type) << a[i].message.id;
      EXPECT_EQ(a[i].message.group, b[i].message.group) << a[i].message.id;
      EXPECT_EQ(a[i].native, b[i].native) << a[i].message.id;
      EXPECT_EQ(a[i].marks, b[i].marks) << a[i].message.id;
    }
  }

  std::mt19937 dice_;
  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  SimQueues sim_queues_{clock_, random_};
  Desk sim_{sim_queues_};
  std::unique_ptr<StoreDesk> sqlite_ = open_store(file_, clock_, random_);
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
