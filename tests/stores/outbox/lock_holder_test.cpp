// When a source looks who shares its outbox, and when it tries again, on a database that is none.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <numeric>

#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "host/stores/outbox/outbox_queues.hpp"
#include "tests/isolation/sanitized.hpp"

namespace sluice::queue::outbox {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

TEST(RetryPause, IsASecondAtMostWhereTheDatabaseCannotBeReached) {
  SeededRandom random(7);
  for (const auto& [code, last] : {std::pair<ErrorCode, Duration>(ErrorCode::unavailable, 1s),
                                   {ErrorCode::timeout, 1s},
                                   {ErrorCode::denied, 5s},
                                   {ErrorCode::throttled, 5s}}) {
    RetryPause pause;
    EXPECT_LE(pause.next(code, random), 100ms);
    for (int i = 0; i < 20; ++i) {
      EXPECT_LE(pause.next(code, random), last);
    }
    EXPECT_GE(pause.next(code, random), last / 2);
    pause.worked();
    EXPECT_LE(pause.next(code, random), 100ms);
  }
}

/// A table whose rows never end, shared with one that has none of its buckets yet, or by its sources alone.
class SharedTable final : public Database {
 public:
  Result<std::unique_ptr<LockSession>> open_locks(Deadline /*deadline*/) override {
    if (hangs) {
      return Error(ErrorCode::timeout, "no answer in time");
    }
    ++sessions;
    return std::unique_ptr<LockSession>(std::make_unique<Locks>(*this));
  }
  Result<std::unique_ptr<ReadSession>> open_reader(Deadline /*deadline*/) override {
    return std::unique_ptr<ReadSession>(std::make_unique<Reader>(*this));
  }
  Result<std::unique_ptr<AdminSession>> open_admin(Deadline /*deadline*/) override {
    return Error(ErrorCode::internal, "nobody asks");
  }
  std::string ddl(bool /*in_use*/) const override { return {}; }

  std::atomic<int> beats = 0;
  std::atomic<bool> frees_at_once = true;
  std::atomic<bool> hangs = false;
  std::atomic<int> sessions = 0;
  std::atomic<bool> throttled = false;  ///< of two buckets that are to be locked one cannot be
  std::atomic<bool> full = false;       ///< nothing can be written
  std::atomic<bool> told = false;       ///< the database tells of rows without an end, and there are none
  std::atomic<std::uint32_t> others = 1;

  /// How many buckets each session has, sorted, once `wanted` says that it is so.
  std::vector<std::size_t> shares_once(const std::function<bool(const std::vector<std::size_t>&)>& wanted) {
    const MutexLock lock(mutex_);
    std::vector<std::size_t> shares;
    const auto as_wanted = [&]() SLUICE_REQUIRES(mutex_) {
      std::map<const LockSession*, std::size_t> counts;
      for (const auto& [bucket, owner] : owners_) {
        ++counts[owner];
      }
      shares = mapped(counts, [](const auto& one) { return one.second; });
      std::sort(shares.begin(), shares.end());
      return wanted(shares);
    };
    EXPECT_TRUE(changed_.wait_until(mutex_, SystemClock().steady_now() + 30s, as_wanted));
    return shares;
  }

 private:
  class Locks final : public LockSession {
   public:
    explicit Locks(SharedTable& table) : table_(table) {}
    ~Locks() override {
      table_.members_ -= joined_ ? 1 : 0;
      const MutexLock lock(table_.mutex_);
      std::erase_if(table_.owners_, [this](const auto& one) { return one.second == this; });
    }
    bool frees_at_once() const override { return table_.frees_at_once; }
    Result<Members> join(const LockSpace& /*space*/, Deadline /*deadline*/) override {
      joined_ = true;
      ++table_.members_;
      return Members{.count = table_.members_ + table_.others};
    }
    Result<Members> beat(Deadline /*deadline*/) override {
      ++table_.beats;
      return Members{.count = table_.members_ + table_.others};
    }
    Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline /*deadline*/) override {
      if (table_.throttled.exchange(false)) {
        return Error(ErrorCode::throttled, "fewer requests, please");
      }
      const MutexLock lock(table_.mutex_);
      std::vector<std::uint32_t> got;
      for (const std::uint32_t bucket : buckets) {
        const auto [owner, free] = table_.owners_.emplace(bucket, this);
        EXPECT_TRUE(free || owner->second != this) << "it would be locked twice";
        if (free) {
          got.push_back(bucket);
        }
      }
      table_.changed_.notify_all();
      return got;
    }
    Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline /*deadline*/) override {
      const MutexLock lock(table_.mutex_);
      for (const std::uint32_t bucket : buckets) {
        EXPECT_EQ(table_.owners_.at(bucket), this);
        table_.owners_.erase(bucket);
      }
      return {};
    }
    Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, Deadline /*deadline*/) override {
      if (table_.full) {
        return Error(ErrorCode::full, "the server's disk is full");
      }
      return std::vector<MarkStatus>(marks.size(), MarkStatus::written);
    }

   private:
    SharedTable& table_;
    bool joined_ = false;
  };

  class Reader final : public ReadSession {
   public:
    explicit Reader(SharedTable& table) : table_(table) {}
    Result<SourceId> source_id(Deadline /*deadline*/) override { return SourceId{}; }
    Result<Page> fetch(const FetchRequest& request, Deadline /*deadline*/) override {
      Page page;
      for (int i = 0; i < 10 && !table_.told; ++i) {
        const auto bucket = request.buckets[static_cast<std::size_t>(last_) % request.buckets.size()];
        page.rows.push_back({.id = ++last_, .group = {"t", ""}, .event = "e", .bucket = bucket});
        page.more = true;
      }
      return page;
    }
    Result<std::vector<Page>> fetch_groups(std::span<const Group> groups, const FetchRequest& /*request*/,
                                           Deadline /*deadline*/) override {
      return std::vector<Page>(groups.size());
    }
    Result<News> news() override {
      ::poll(nullptr, 0, table_.told ? 5 : 0);
      return table_.told ? News::rows : News::none;
    }

   private:
    SharedTable& table_;
    std::int64_t last_ = 0;
  };

  std::atomic<std::uint32_t> members_ = 0;
  Mutex mutex_;
  Condition changed_;
  std::map<std::uint32_t, const LockSession*> owners_ SLUICE_GUARDED_BY(mutex_);
};

// A sanitizer that has no descriptor for itself takes sound objects for broken ones.
#ifndef SLUICE_SANITIZED
TEST(OutboxQueues, WithoutDescriptorsNoSourceIsOpenedAndTheirLimitIsNamed) {
  const SystemClock clock;
  SeededRandom random(1);
  OutboxQueues queues({.settings = {.name = "orders"}}, std::make_unique<SharedTable>(), clock, random);
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit none { 0, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto opened = queues.open_source({"outbox:orders"});
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::unavailable);
  EXPECT_THAT(opened.error().message(), ::testing::HasSubstr("outbox:orders needs a file descriptor"));
  EXPECT_THAT(opened.error().message(), ::testing::HasSubstr("ulimit -n"));
}
#endif

class LockHolderTest : public ::testing::Test {
 protected:
  std::unique_ptr<Source> source(std::uint32_t buckets) {
    OutboxOptions options{.settings = {.name = "orders"}};
    options.settings.config.buckets = buckets;
    return *make_outbox_source(std::move(options), Selection{.job = "relay"}, table_, clock_, random_);
  }
  void TearDown() override { source_->stop(); }

  static void start(Source& source) {
    source.start({.on_ready = [] {}, .lost = [](std::span<const Receipt>) {}});
  }
  void start() { start(*source_); }
  /// Which share so many buckets with nobody else.
  std::vector<std::unique_ptr<Source>> sources(std::size_t count, std::uint32_t buckets) {
    table_.others = 0;
    std::vector<std::unique_ptr<Source>> all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(source(buckets));
      start(*all.back());
    }
    return all;
  }
  /// How long so many looks at the others take; meanwhile rows are claimed and marked.
  Duration time_of(int looks, bool rows) {
    const SteadyTime begun = clock_.steady_now();
    const int last = table_.beats + looks;
    while (table_.beats < last && clock_.steady_now() < begun + 60s) {
      const auto claimed = rows ? source_->claim({.max = 5}, Deadline::after(clock_, 1s)) : Result<Claimed>(Claimed{});
      std::vector<Completion> completions;
      for (const Delivery& delivery : claimed->deliveries) {
        completions.push_back({.receipt = delivery.receipt});
      }
      source_->settle(completions, Deadline::after(clock_, 1s));
      rest();
    }
    return clock_.steady_now() - begun;
  }
  void rest() {
    Mutex mutex;
    Condition never;
    const MutexLock lock(mutex);
    never.wait_until(mutex, clock_.steady_now() + 5ms, [] { return false; });
  }

  SystemClock clock_;
  SeededRandom random_;
  SharedTable table_;
  std::unique_ptr<Source> source_ = source(4);
};

// As `sluice receive --wait` does: no relay begins there.
TEST_F(LockHolderTest, WhoClaimsByCallIsHandedNothingThoughHeWaits) {
  source_->start({.on_ready = [] {}, .lost = {}, .by_call = true});
  const auto claimed = source_->claim({.max = 1}, Deadline::after(clock_, 1s));
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code(), ErrorCode::invalid);
  EXPECT_EQ(table_.beats, 0);
}

// Who is killed is missed once a second otherwise, and with him his rows.
TEST_F(LockHolderTest, LooksForOthersThatHaveEndedWhileRowsAreHandedOut) {
  start();
  time_of(2, true);
  EXPECT_LT(time_of(10, true), 5s);
}

TEST_F(LockHolderTest, LooksForThemWhileTheDatabaseTellsOfRowsThatNobodyHandsOut) {
  table_.told = true;
  start();
  time_of(2, false);
  EXPECT_LT(time_of(10, false), 5s);
}

TEST_F(LockHolderTest, LooksSeldomWithoutRowsOrWhereWhoHasEndedIsNotKnownAtOnce) {
  table_.frees_at_once = false;
  start();
  time_of(2, true);
  EXPECT_GT(time_of(2, true), 900ms);
}

// What stood in the name of a session that lives and does not know it would be nobody's for as long as it lives.
TEST_F(LockHolderTest, ASessionThatIsNotKnownToHoldWhatItHasLockedIsGivenUp) {
  table_.throttled = true;
  start();
  for (bool claimed = false; !claimed; rest()) {
    const auto some = source_->claim({.max = 1}, Deadline::after(clock_, 60s));
    claimed = some && !some->deliveries.empty();
  }
  EXPECT_EQ(table_.sessions, 2);
}

// It was told to be lost and stayed out, so that neither its mark was written nor it itself handed out again.
TEST_F(LockHolderTest, ARowWhoseMarkTheDatabaseHasNoRoomForIsMarkedLater) {
  table_.full = true;
  start();
  const auto claimed = source_->claim({.max = 1}, Deadline::after(clock_, 60s));
  ASSERT_TRUE(claimed);
  ASSERT_EQ(claimed->deliveries.size(), 1U);
  const std::vector<Completion> done{{.receipt = claimed->deliveries[0].receipt}};
  EXPECT_EQ(source_->settle(done, Deadline::after(clock_, 60s))[0].status, SettleStatus::failed);
  table_.full = false;
  EXPECT_EQ(source_->settle(done, Deadline::after(clock_, 60s))[0].status, SettleStatus::applied);
}

TEST_F(LockHolderTest, SourcesThatJoinGetTheirPartAndWhatADeadOneHeldIsTakenOver) {
  const auto even = [](const std::vector<std::size_t>& shares) {
    return std::accumulate(shares.begin(), shares.end(), std::size_t{0}) == 64 && shares.back() - shares.front() <= 2;
  };
  auto all = sources(1, 64);
  EXPECT_EQ(table_.shares_once(even).size(), 1U);
  for (auto& joining : sources(2, 64)) {
    all.push_back(std::move(joining));
  }
  table_.shares_once([&](const auto& shares) { return shares.size() == 3 && even(shares); });
  all.erase(all.begin() + 1);
  table_.shares_once([&](const auto& shares) { return shares.size() == 2 && even(shares); });
}

TEST_F(LockHolderTest, MoreSourcesThanBucketsLeaveSomeWithNone) {
  const auto all = sources(3, 2);
  EXPECT_EQ(table_.shares_once([](const auto& shares) { return shares.size() == 2; }),
            (std::vector<std::size_t>{1, 1}));
}

TEST_F(LockHolderTest, ABucketLeavesOnlyWhenNothingIsOut) {
  const auto first = std::move(sources(1, 4)[0]);
  const auto claimed = first->claim({.max = 4}, Deadline::after(clock_, 60s));
  ASSERT_TRUE(claimed);
  ASSERT_EQ(claimed->deliveries.size(), 4U) << "one of each bucket";
  const auto second = sources(1, 4);
  const int last = table_.beats + 10;
  while (table_.beats < last) {
    rest();
  }
  EXPECT_EQ(table_.shares_once([](const auto&) { return true; }), std::vector<std::size_t>{4});
  const std::vector<Completion> done{{.receipt = claimed->deliveries[3].receipt}};
  EXPECT_EQ(first->settle(done, Deadline::after(clock_, 60s))[0].status, SettleStatus::applied);
  table_.shares_once([](const auto& shares) { return shares == std::vector<std::size_t>{1, 3}; });
}

// A job claimed ever more seldom from a database that hung, up to ten seconds, and found it well only then.
TEST_F(LockHolderTest, ADatabaseThatHangsIsOneThatIsAway) {
  table_.hangs = true;
  start();
  EXPECT_EQ(source_->claim({.max = 1}, Deadline::after(clock_, 60s)).error().code(), ErrorCode::unavailable);
}

}  // namespace
}  // namespace sluice::queue::outbox
