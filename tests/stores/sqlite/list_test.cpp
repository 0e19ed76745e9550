// Lists of many pages over messages that wait, while others change them.

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""s;

constexpr int kListed = 1000;

class ListTest : public ::testing::Test {
 protected:
  ListTest() : store_(open_store(file_, clock_, random_)) {
    // Every third is delayed, by less and less, so that their order is not that in which they become due.
    std::vector<queue::NewMessage> batch;
    for (int i = 0; i < kListed; ++i) {
      batch.push_back({.id = "n" + std::to_string(i), .body = "x"});
      if (i % 3 == 0) {
        batch.back().delay = std::chrono::seconds(kListed - i);
      }
    }
    for (const auto& result : store_->send("orders", batch, Deadline::never())) {
      EXPECT_EQ(result.status, queue::SendStatus::sent);
    }
  }

  /// How often each id comes in a list by small pages; `between` runs before each page but the first.
  std::map<std::string, int> list(const std::function<void()>& between) {
    std::map<std::string, int> seen;
    queue::ListRequest request{.limit = 30, .cursor = {}};
    WallTime last = WallTime::min();
    do {
      const auto page = store_->list("orders", request, Deadline::never());
      EXPECT_TRUE(page) << page.error().message();
      for (const auto& record : page->messages) {
        ++seen[record.message.id];
        EXPECT_GE(record.message.sent_at, last) << record.message.id;
        last = record.message.sent_at;
      }
      request.cursor = page->next;
      between();
    } while (!request.cursor.empty());
    return seen;
  }
  void claim(Desk& store, std::size_t count) { EXPECT_TRUE(store.claim({"orders"}, count, 30s, Deadline::never())); }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_;
};

TEST_F(ListTest, ShowsEachOnce) {
  const auto seen = list([] {});
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kListed));
  for (const auto& [id, count] : seen) {
    EXPECT_EQ(count, 1) << id;
  }
  EXPECT_EQ(list([] {}), seen) << "a second time";
}

TEST_F(ListTest, APageEndsByItsBytesThoseOfCheckpointsIncluded) {
  std::vector<queue::StoredMessage> records(300);
  for (std::size_t i = 0; i < records.size(); ++i) {
    queue::Message& message = records[i].message;
    message.id = "k" + std::to_string(i);
    message.sent_at = clock_.wall_now() - 1s;
    message.checkpoint = std::string(queue::kMostCheckpointBytes, 'x');
  }
  for (const auto& result : store_->put("orders", records, queue::PutMode::insert, Deadline::never())) {
    EXPECT_EQ(result.status, queue::PutStatus::written) << result.error.message();
  }
  for (const bool content : {true, false}) {
    const auto page =
        store_->list("orders", {.limit = records.size(), .cursor = {}, .content = content}, Deadline::never());
    ASSERT_TRUE(page) << page.error().message();
    EXPECT_EQ(page->messages.size(), 256U);
    EXPECT_NE(page->next, "");
  }
}

TEST_F(ListTest, ShowsEachOnceThoughTheyAreClaimedMeanwhile) {
  // Faster than the list, so that it finds ready ones among those in flight.
  auto other = open_store(file_, clock_, random_);
  int round = 0;
  const auto seen = list([this, &other, &round] { claim(++round % 2 == 0 ? *store_ : *other, 40); });
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kListed));
  for (const auto& [id, count] : seen) {
    EXPECT_EQ(count, 1) << id;
  }
}

TEST_F(ListTest, LeavesOutWhatIsTakenAwayBeforeItsPage) {
  int round = 0;
  const auto seen = list([this, &round] {
    if (round++ == 3) {
      for (int i = 0; i < kListed; i += 3) {
        ASSERT_TRUE(store_->remove("orders", "n" + std::to_string(i), Deadline::never()));
      }
    }
  });
  EXPECT_LT(seen.size(), static_cast<std::size_t>(kListed));
  EXPECT_FALSE(seen.contains("n0")) << "with the longest delay it would have come last";
}

}  // namespace
}  // namespace sluice::test
