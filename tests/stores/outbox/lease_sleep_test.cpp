// Leases of an outbox whose machine slept: its monotonic clock stood still, and others have taken over meanwhile.

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "host/stores/outbox/lease_locks.hpp"
#include "host/stores/outbox/outbox_queues.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::queue::outbox {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLease = 15s;

/// A book in memory, which every session of a test writes in.
struct Pages {
  std::map<std::int64_t, LeaseMember> members;
  BucketLeases buckets;
  int marked = 0;
  std::optional<Error> unread;  ///< why nobody can read who has which bucket
};

class MemoryBook final : public LeaseBook {
 public:
  explicit MemoryBook(Pages& pages) : pages_(pages) {}

  void open(const LockSpace& /*space*/) override {}
  Result<void> announce(const LeaseMember& member, Deadline /*deadline*/) override {
    pages_.members.insert_or_assign(member.name, member);
    return {};
  }
  Result<std::vector<LeaseMember>> members(Deadline /*deadline*/) override {
    std::vector<LeaseMember> all;
    for (const auto& [name, member] : pages_.members) {
      all.push_back(member);
    }
    return all;
  }
  void bury(std::span<const LeaseMember> members, Deadline /*deadline*/) override {
    for (const LeaseMember& member : members) {
      pages_.members.erase(member.name);
    }
  }
  Result<BucketLeases> buckets(Deadline /*deadline*/) override {
    return pages_.unread ? Result<BucketLeases>(*pages_.unread) : pages_.buckets;
  }
  Result<std::vector<std::uint32_t>> change_hands(const BucketLeases& before, std::int64_t owner,
                                                  Deadline /*deadline*/) override {
    std::vector<std::uint32_t> changed;
    for (const auto& [bucket, lease] : before) {
      pages_.buckets[bucket] = {owner, lease.epoch + 1};
      changed.push_back(bucket);
    }
    return changed;
  }
  Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, const LeaseMember* /*member*/,
                                       Deadline /*deadline*/) override {
    pages_.marked += static_cast<int>(marks.size());
    return std::vector<MarkStatus>(marks.size(), MarkStatus::written);
  }
  bool marks_are_heartbeats() const override { return true; }

 private:
  Pages& pages_;
};

class SleepingLease : public ::testing::Test {
 protected:
  // The wall clock gains on the monotonic one.
  void sleep(Duration span) { clock_.set_wall(clock_.wall_now() + span); }
  std::unique_ptr<LockSession> session() {
    Settings settings{.name = "orders"};
    settings.config.lease = kLease;
    return make_lease_locks(std::make_unique<MemoryBook>(pages_), settings, kLease / 3, clock_, random_);
  }
  Deadline soon() const { return Deadline::after(clock_, 5s); }

  test::FakeClock clock_;
  SeededRandom random_{1};
  Pages pages_;
};

// Nothing was locked, so that there is nothing that the session would have without knowing it.
TEST_F(SleepingLease, GoesOnWhereWhoHasWhatCouldNotBeReadForAMoment) {
  const auto one = session();
  ASSERT_TRUE(one->join({"orders/relay", 2}, soon()));
  const std::vector<std::uint32_t> buckets{0, 1};
  pages_.unread = Error(ErrorCode::throttled, "too fast");
  const auto none = one->lock(buckets, soon());
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_TRUE(none->empty());
  pages_.unread.reset();
  EXPECT_EQ(one->lock(buckets, soon())->size(), 2U);
}

TEST_F(SleepingLease, EndsWhileTheMachineSleeps) {
  const auto locks = session();
  ASSERT_TRUE(locks->join({"orders/relay", 1}, soon()));
  const std::vector<std::uint32_t> bucket{0};
  const auto got = locks->lock(bucket, soon());
  ASSERT_TRUE(got);
  ASSERT_EQ(*got, bucket);
  const std::vector<RowEdit> marks{sent_mark({1})};
  sleep(kLease - 1s);
  EXPECT_TRUE(locks->mark(marks, soon())) << "which is a heartbeat";
  sleep(kLease);
  EXPECT_EQ(locks->mark(marks, soon()).error().code(), ErrorCode::unavailable);
  EXPECT_EQ(pages_.marked, 1) << "others may have the row by now";
  EXPECT_FALSE(locks->beat(soon())) << "a heartbeat does not bring back what was held";
}

TEST_F(SleepingLease, ManyShortSleepsAddUp) {
  const auto locks = session();
  ASSERT_TRUE(locks->join({"orders/relay", 1}, soon()));
  const std::vector<RowEdit> marks{sent_mark({1})};
  const std::vector<std::uint32_t> none;
  for (Duration slept{}; slept < kLease; slept += 1s) {
    EXPECT_TRUE(locks->lock(none, soon()));
    sleep(1s);
  }
  EXPECT_FALSE(locks->mark(marks, soon()));
}

/// Whose reads and desks nobody asks for.
class MemoryDatabase final : public Database {
 public:
  explicit MemoryDatabase(std::function<std::unique_ptr<LockSession>()> open) : open_(std::move(open)) {}
  Result<std::unique_ptr<LockSession>> open_locks(Deadline /*deadline*/) override { return open_(); }
  Result<std::unique_ptr<ReadSession>> open_reader(Deadline /*deadline*/) override {
    return Error(ErrorCode::unavailable, "nobody reads here");
  }
  Result<std::unique_ptr<AdminSession>> open_admin(Deadline /*deadline*/) override {
    return Error(ErrorCode::unavailable, "there is no desk");
  }
  std::string ddl(bool /*in_use*/) const override { return {}; }

 private:
  const std::function<std::unique_ptr<LockSession>()> open_;
};

/// Joined once with another one, and not heard of again.
class MuteSession final : public LockSession {
 public:
  /// `locking`: happens while buckets are locked.
  explicit MuteSession(
      std::function<void()> asked, std::function<void()> locking = [] {})
      : asked_(std::move(asked)), locking_(std::move(locking)) {}
  Result<Members> join(const LockSpace& /*space*/, Deadline /*deadline*/) override { return Members{2, 0}; }
  Result<Members> beat(Deadline /*deadline*/) override {
    asked_();
    return Error(ErrorCode::throttled, "it has no time");
  }
  Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> /*buckets*/, Deadline /*deadline*/) override {
    locking_();
    return std::vector<std::uint32_t>();
  }
  Result<void> unlock(std::span<const std::uint32_t> /*buckets*/, Deadline /*deadline*/) override { return {}; }
  Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, Deadline /*deadline*/) override {
    return std::vector<MarkStatus>(marks.size(), MarkStatus::written);
  }

 private:
  const std::function<void()> asked_;
  const std::function<void()> locking_;
};

// Others measure by heartbeats: they may have taken over what a host locked ever more of.
TEST_F(SleepingLease, OnlyAHeartbeatRenewsIt) {
  std::promise<void> asked;
  bool told = false;
  MemoryDatabase database([&] {
    return std::make_unique<MuteSession>(
        [&] {
          if (!std::exchange(told, true)) {
            asked.set_value();
          }
        },
        [&] { clock_.advance(kLease - 5s); });
  });
  OutboxOptions options{.settings = {.name = "orders"}};
  options.settings.config.lease = kLease;
  options.settings.config.buckets = 16;  // which two hosts try in two steps
  const auto source = *make_outbox_source(options, {.job = "relay"}, database, clock_, random_);
  source->start({});
  asked.get_future().wait();
  EXPECT_FALSE(source->holds(0));
  source->stop();
}

TEST_F(SleepingLease, NoRowIsHandedOutOnceTheMachineHasSleptForALease) {
  std::promise<void> asked;
  bool told = false;
  MemoryDatabase database([&] {
    return std::make_unique<MuteSession>([&] {
      if (!std::exchange(told, true)) {
        asked.set_value();
      }
    });
  });
  OutboxOptions options{.settings = {.name = "orders"}};
  options.settings.config.lease = kLease;
  options.settings.config.buckets = 1;
  const auto source = *make_outbox_source(options, {.job = "relay"}, database, clock_, random_);
  source->start({});
  asked.get_future().wait();  // from here on nothing renews it
  EXPECT_TRUE(source->holds(0));
  sleep(kLease);
  EXPECT_FALSE(source->holds(0));
  source->stop();
}

}  // namespace
}  // namespace sluice::queue::outbox
