// Groups in their order over random histories: several hosts, retries, releases, dead letters, hosts that die,
// operators. A failure prints its seed.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "host/stores/core/outcomes.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using queue::ChangeAction;
using queue::Completion;
using queue::CompletionAction;
using queue::Delivery;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

class GroupHistory {
 public:
  GroupHistory(unsigned seed, queue::Order order) : dice_(seed), order_(order) {}
  /// The wall clock is set forward now and then, by an hour each time.
  void jumps() { jumps_ = true; }

  void run(int steps) {
    for (auto& host : hosts_) {
      host->source({"orders"}).claim({.max = 1, .visibility = 3s, .rules = {.order = order_}}, Deadline::never());
    }
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      switch (below(10)) {
        case 0:
        case 1:
        case 2:
          send();
          break;
        case 3:
        case 4:
        case 5:
          claim();
          break;
        case 6:
        case 7:
          settle();
          break;
        case 8:
          operate();
          break;
        default:
          clock_.advance(std::chrono::milliseconds(below(4'000)));
          if (jumps_ && below(3) == 0) {
            clock_.set_wall(clock_.wall_now() + kJump);
          }
          lapse();
      }
    }
    drain();
    for (auto& host : hosts_) {
      host.reset();
    }
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }

 private:
  struct Out {
    std::size_t host;
    queue::Receipt receipt;
    SteadyTime until;
  };

  std::uint64_t below(std::uint64_t bound) { return dice_() % bound; }
  StoreDesk& any_host() { return *hosts_[below(hosts_.size())]; }
  std::string lane_of(const std::string& group) const { return order_ == queue::Order::queue ? "queue" : group; }

  void send() {
    std::vector<queue::NewMessage> batch;
    for (std::uint64_t i = 0; i <= below(6); ++i) {
      const std::string group = "g" + std::to_string(below(4));
      const auto delay = below(6) == 0 ? Duration(std::chrono::milliseconds(1 + below(3'000))) : Duration::zero();
      batch.push_back({.id = std::to_string(next_id_++), .body = "x", .group = group, .delay = delay});
    }
    for (const auto& result : any_host().send("orders", batch, Deadline::never())) {
      EXPECT_EQ(result.status, queue::SendStatus::sent);
    }
    for (const auto& message : batch) {
      live_.insert(message.id);
    }
    clock_.advance(1ms);
  }

  void claim() {
    lapse();
    const std::size_t host = below(hosts_.size());
    const queue::ClaimRequest request{
        .max = 1 + below(5), .visibility = 3s, .suspects = below(4) != 0, .rules = {.order = order_}};
    const auto claimed = hosts_[host]->source({"orders"}).claim(request, Deadline::never());
    ASSERT_TRUE(claimed) << claimed.error().message();
    for (const Delivery& delivery : claimed->deliveries) {
      const std::string lane = lane_of(delivery.message.group);
      EXPECT_FALSE(out_.contains(lane)) << delivery.message.id << " beside " << out_[lane].receipt.id;
      // The oldest of its group that is not hidden for having been sent for later.
      for (const auto& [id, sent_at] : places_of(lane)) {
        EXPECT_FALSE(sent_at < delivery.message.sent_at) << id << " lies before " << delivery.message.id;
      }
      out_[lane] = {host, delivery.receipt, delivery.leased_until};
    }
  }

  /// The messages of a lane that can be claimed or wait for a retry, with the times they were sent for.
  std::map<std::string, WallTime> places_of(const std::string& lane) {
    std::map<std::string, WallTime> found;
    const auto page = any_host().list("orders", {.limit = 1000, .cursor = {}}, Deadline::never());
    for (const auto& stored : page->messages) {
      const bool sent_for_later = stored.invisible_until && *stored.invisible_until == stored.message.sent_at;
      if (lane_of(stored.message.group) == lane && !sent_for_later && !moved_.contains(stored.message.id)) {
        found.emplace(stored.message.id, stored.message.sent_at);
      }
    }
    return found;
  }

  void settle() {
    if (out_.empty()) {
      return;
    }
    const auto picked = std::next(out_.begin(), static_cast<std::ptrdiff_t>(below(out_.size())));
    constexpr std::array kActions{CompletionAction::remove, CompletionAction::remove, CompletionAction::retry,
                                  CompletionAction::release, CompletionAction::dead_letter};
    const Completion completion{.receipt = picked->second.receipt,
                                .action = kActions.at(below(kActions.size())),
                                .delay = below(2) == 0 ? Duration::zero() : Duration(500ms),
                                .failure = {.error = "no", .handler = "h", .host = "w"},
                                .marks = below(5) == 0 ? queue::core::kSuspect : 0,
                                .hold_group = below(3) == 0};
    const auto settled =
        hosts_[picked->second.host]->settle({"orders"}, std::span(&completion, 1), Deadline::never()).front();
    EXPECT_EQ(settled.status, queue::SettleStatus::applied) << settled.error.message();
    if (completion.action == CompletionAction::remove) {
      live_.erase(completion.receipt.id);
    }
    out_.erase(picked);
  }

  /// Leases that have ended are nobody's.
  void lapse() {
    std::erase_if(out_, [this](const auto& entry) { return entry.second.until < clock_.steady_now(); });
  }

  void operate() {
    if (live_.empty()) {
      return;
    }
    const std::string id = *std::next(live_.begin(), static_cast<std::ptrdiff_t>(below(live_.size())));
    for (const auto& [lane, out] : out_) {
      if (out.receipt.id == id) {
        return;  // what is at work is left alone, as commands do
      }
    }
    constexpr std::array kActions{ChangeAction::remove,      ChangeAction::delay,   ChangeAction::move_to_front,
                                  ChangeAction::dead_letter, ChangeAction::redrive, ChangeAction::reset};
    const queue::Change change{.id = id, .action = kActions.at(below(kActions.size()))};
    any_host().change("orders", std::span(&change, 1), Deadline::never());
    moved_.insert(id);
    if (change.action == ChangeAction::remove) {
      live_.erase(id);
    }
    clock_.advance(1ms);
  }

  /// Everything can be had in the end, whatever held it.
  void drain() {
    out_.clear();
    clock_.advance(jumps_ ? 100 * kJump
                          : Duration(60s));  // where it jumped twice between two looks a lease lasts longer
    for (int idle = 0; idle < 3 && !::testing::Test::HasFailure();) {
      std::vector<queue::Change> back;
      const auto dead =
          any_host().list("orders", {.half = queue::Half::dlq, .limit = 1000, .cursor = {}}, Deadline::never());
      for (const auto& stored : dead->messages) {
        back.push_back({.id = stored.message.id, .action = ChangeAction::redrive});
      }
      any_host().change("orders", back, Deadline::never());
      const auto claimed = any_host()
                               .source({"orders"})
                               .claim({.max = 100, .visibility = 3s, .rules = {.order = order_}}, Deadline::never());
      ASSERT_TRUE(claimed);
      std::vector<Completion> done;
      for (const Delivery& delivery : claimed->deliveries) {
        done.push_back({.receipt = delivery.receipt});
        live_.erase(delivery.message.id);
      }
      any_host().settle({"orders"}, done, Deadline::never());
      idle = done.empty() && back.empty() ? idle + 1 : 0;
      clock_.advance(1ms);
    }
    EXPECT_TRUE(live_.empty()) << live_.size() << " are left, among them " << *live_.begin();
  }

  static constexpr Duration kJump = std::chrono::hours(1);
  std::mt19937_64 dice_;
  const queue::Order order_;
  bool jumps_ = false;
  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::array<std::unique_ptr<StoreDesk>, 3> hosts_{
      open_store(file_, clock_, random_), open_store(file_, clock_, random_), open_store(file_, clock_, random_)};
  std::map<std::string, Out> out_;  ///< by lane
  std::set<std::string> live_;
  std::set<std::string> moved_;  ///< by an operator: its place is what he said
  int next_id_ = 0;
};

TEST(SqliteOrder, GroupsKeepTheirOrderInAnyHistory) {
  for (unsigned seed = 1; seed <= 12 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GroupHistory(seed, queue::Order::group).run(150);
  }
}

TEST(SqliteOrder, GroupsKeepTheirOrderInAnyHistoryOfAClockThatIsSetForward) {
  for (unsigned seed = 1; seed <= 12 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GroupHistory history(seed, queue::Order::group);
    history.jumps();
    history.run(150);
  }
}

TEST(SqliteOrder, ADeadLetterOfWhoeverSettlesForADeadHostHoldsItsGroup) {
  TempFolder folder;
  FakeClock clock;
  SeededRandom random{1};
  const auto open = [&] { return open_store(folder.file("store.db"), clock, random); };
  const queue::ClaimRequest in_order{.max = 10, .visibility = 30s, .rules = {.order = queue::Order::group}};
  auto dead = open();
  const std::array messages{queue::NewMessage{.id = "first", .body = "x", .group = "g"},
                            queue::NewMessage{.id = "second", .body = "x", .group = "g"}};
  dead->send("orders", messages, Deadline::never());
  const auto held = dead->source({"orders"}).claim(in_order, Deadline::never());
  ASSERT_TRUE(held);
  ASSERT_EQ(held->deliveries.size(), 1U);
  dead.reset();
  // As crash recovery does: with the receipt alone, before it has claimed anything.
  const Completion buried{.receipt = held->deliveries[0].receipt,
                          .action = CompletionAction::dead_letter,
                          .failure = {.error = "SIGSEGV", .handler = "h", .host = "dead"},
                          .hold_group = true};
  EXPECT_EQ(open()->settle({"orders"}, std::span(&buried, 1), Deadline::never()).front().status,
            queue::SettleStatus::applied);
  const auto host = open();
  const auto next = host->source({"orders"}).claim(in_order, Deadline::never());
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->deliveries.empty()) << next->deliveries[0].message.id << " has overtaken a dead letter that holds";
  const queue::Change back{.id = "first", .action = ChangeAction::redrive};
  host->change("orders", std::span(&back, 1), Deadline::never());
  EXPECT_EQ(host->source({"orders"}).claim(in_order, Deadline::never())->deliveries.at(0).message.id, "first");
}

TEST(SqliteOrder, AQueueKeepsItsOrderInAnyHistory) {
  for (unsigned seed = 1; seed <= 6 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GroupHistory(seed, queue::Order::queue).run(150);
  }
}

// By an operator, while a dead letter holds its group.
TEST(SqliteOrder, WhatIsHiddenBehindADeadLetterWaitsForItAndForItsTime) {
  const TempFolder folder;
  FakeClock clock;
  SeededRandom random(1);
  const std::string file = folder.file("store.db");
  auto store = open_store(file, clock, random);
  const std::vector<queue::NewMessage> messages{{.id = "1", .group = "a"}, {.id = "2", .group = "a"}};
  store->send("orders", messages, Deadline::never());
  const auto claim = [&] {
    return store->source({"orders"})
        .claim({.max = 5, .visibility = 3s, .rules = {.order = queue::Order::group}}, Deadline::never())
        ->deliveries;
  };
  const Completion dead{
      .receipt = claim().at(0).receipt, .action = CompletionAction::dead_letter, .failure = {}, .hold_group = true};
  ASSERT_EQ(store->settle({"orders"}, std::span(&dead, 1), Deadline::never())[0].status, queue::SettleStatus::applied);
  const queue::Change hide{.id = "2", .action = ChangeAction::set_visibility, .after = 10s};
  ASSERT_EQ(store->change("orders", std::span(&hide, 1), Deadline::never())[0].status, queue::ChangeStatus::applied);
  clock.advance(11s);
  EXPECT_TRUE(claim().empty());
  ASSERT_EQ(store->change("orders", std::span(&hide, 1), Deadline::never())[0].status, queue::ChangeStatus::applied);
  ASSERT_TRUE(store->remove("orders", "1", Deadline::never()));
  EXPECT_TRUE(claim().empty());
  clock.advance(11s);
  EXPECT_EQ(claim().size(), 1U);
  store.reset();
  EXPECT_EQ(broken_invariants(file), std::vector<std::string>{});
}

TEST(SqliteOrder, TheStricterRuleHoldsWhereHostsDisagreeAndTheOtherOneSaysSo) {
  const TempFolder folder;
  FakeClock clock;
  SeededRandom random(1);
  const std::string file = folder.file("store.db");
  std::vector<std::string> told;
  const auto strict = open_store(file, clock, random);
  queue::SqliteOptions options;
  options.report = [&](const std::string& line) { told.push_back(line); };
  const auto loose = open_store(file, clock, random, options);
  const auto claim = [](StoreDesk& host, const queue::ClaimRules& rules) {
    std::vector<std::string> ids;
    const auto claimed =
        host.source({"orders"}).claim({.max = 10, .visibility = 30s, .rules = rules}, Deadline::never());
    for (const Delivery& one : claimed->deliveries) {
      ids.push_back(one.message.id);
    }
    return ids;
  };
  std::vector<queue::NewMessage> messages;
  for (const char* id : {"a1", "a2", "b1", "b2"}) {
    messages.push_back({.id = id, .body = "x", .group = std::string(id, 1)});
  }
  strict->send("orders", messages, Deadline::never());
  EXPECT_EQ(claim(*strict, {.order = queue::Order::group}), (std::vector<std::string>{"a1", "b1"}));
  EXPECT_TRUE(told.empty());
  EXPECT_TRUE(claim(*loose, {.fair = true}).empty()) << "two of a group at once";
  EXPECT_TRUE(claim(*loose, {}).empty());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("queue 'orders' is handed out in order by group"), std::string::npos) << told[0];
}

// A message with an earlier time is in line behind one with a later time.
TEST(SqliteOrder, WhatComesBackGoesFirstAlsoWhereTheClockWasSetBackMeanwhile) {
  const TempFolder folder;
  FakeClock clock;
  SeededRandom random(1);
  const auto store = open_store(folder.file("store.db"), clock, random);
  const auto send = [&](const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      const queue::NewMessage message{.id = id, .body = "x", .group = "a"};
      store->send("orders", std::span(&message, 1), Deadline::never());
    }
  };
  const auto claim = [&]() -> std::string {
    const auto claimed =
        store->source({"orders"})
            .claim({.max = 1, .visibility = 3s, .rules = {.order = queue::Order::group}}, Deadline::never());
    return claimed && claimed->deliveries.size() == 1 ? claimed->deliveries.front().message.id : "none";
  };
  send({"1", "2"});
  ASSERT_EQ(claim(), "1");
  clock.set_wall(clock.wall_now() - 10s);
  send({"3"});
  clock.advance(14s);
  EXPECT_EQ(claim(), "1");
}

// Its time is later than that of its retry, as if it had been sent for later.
TEST(SqliteOrder, AGroupWaitsForARetryAlsoWhereTheClockWasSetBack) {
  const TempFolder folder;
  FakeClock clock;
  SeededRandom random(1);
  const auto store = open_store(folder.file("store.db"), clock, random);
  std::vector<queue::NewMessage> messages;
  for (const char* id : {"1", "2", "3"}) {
    messages.push_back({.id = id, .body = "x", .group = "a"});
  }
  store->send("orders", messages, Deadline::never());
  queue::Source& source = store->source({"orders"});
  const queue::ClaimRequest request{.max = 1, .visibility = 3s, .rules = {.order = queue::Order::group}};
  const auto first = source.claim(request, Deadline::never());
  ASSERT_EQ(first->deliveries.size(), 1U);
  clock.set_wall(clock.wall_now() - 60s);
  const queue::NewMessage late{.id = "4", .body = "x", .group = "a"};
  store->send("orders", std::span(&late, 1), Deadline::never());
  const Completion retry{
      .receipt = first->deliveries.front().receipt, .action = CompletionAction::retry, .delay = 2s, .failure = {}};
  ASSERT_EQ(source.settle(std::span(&retry, 1), Deadline::never()).front().status, queue::SettleStatus::applied);
  clock.advance(1s);
  EXPECT_TRUE(source.claim(request, Deadline::never())->deliveries.empty());
  clock.advance(120s);
  for (const char* id : {"1", "2", "3", "4"}) {
    const auto next = source.claim(request, Deadline::never());
    ASSERT_EQ(next->deliveries.size(), 1U);
    EXPECT_EQ(next->deliveries.front().message.id, id);
    const Completion done{.receipt = next->deliveries.front().receipt};
    source.settle(std::span(&done, 1), Deadline::never());
  }
}

// Two hosts on one machine, whose clock is set forward by an hour while one of them has a message.
class ClockSetForward : public ::testing::Test {
 protected:
  ClockSetForward() {
    std::vector<queue::NewMessage> messages;
    for (const char* id : {"1", "2"}) {
      messages.push_back({.id = id, .body = "x", .group = "a"});
    }
    a_->send("orders", messages, Deadline::never());
    held_ = claim(*a_).deliveries;
    EXPECT_EQ(ids(held_), "1 ");
    EXPECT_EQ(ids(claim(*b_).deliveries), "");
    clock_.advance(4s);
  }
  void set_forward() { clock_.set_wall(clock_.wall_now() + std::chrono::hours(1)); }
  queue::Claimed claim(StoreDesk& host, std::uint64_t most = 0) {
    auto claimed = host.source({"orders"})
                       .claim({.max = 10,
                               .visibility = 10s,
                               .suspects = true,
                               .rules = {.order = queue::Order::group, .max_in_flight = most}},
                              Deadline::never());
    EXPECT_TRUE(claimed || claimed.error().code() == ErrorCode::over_limit);
    return claimed ? *std::move(claimed) : queue::Claimed{};
  }
  static std::string ids(const std::vector<Delivery>& deliveries) {
    std::string all;
    for (const Delivery& one : deliveries) {
      all += one.message.id + (one.suspect ? "! " : " ");
    }
    return all;
  }

  const TempFolder folder_;
  FakeClock clock_;
  SeededRandom random_{1};
  const std::unique_ptr<StoreDesk> a_ = open_store(folder_.file("store.db"), clock_, random_);
  const std::unique_ptr<StoreDesk> b_ = open_store(folder_.file("store.db"), clock_, random_);
  std::vector<Delivery> held_;
};

TEST_F(ClockSetForward, EndsNoLeaseAndAGroupWaitsForWhatIsAtWork) {
  set_forward();
  for (StoreDesk* host : {a_.get(), b_.get()}) {
    const auto nothing = claim(*host);
    EXPECT_EQ(ids(nothing.deliveries), "");
    ASSERT_TRUE(nothing.next_due);
    EXPECT_EQ(*nothing.next_due, Duration(6s) + Duration(1)) << "the rest of the lease";
  }
  const auto extended =
      a_->source({"orders"}).extend(std::span(&held_.front().receipt, 1), 10s, Deadline::never()).front();
  ASSERT_EQ(extended.status, queue::SettleStatus::applied);
  clock_.advance(9s);
  EXPECT_EQ(ids(claim(*b_).deliveries), "");
  const Completion done{.receipt = extended.receipt};
  ASSERT_EQ(a_->source({"orders"}).settle(std::span(&done, 1), Deadline::never()).front().status,
            queue::SettleStatus::applied);
  EXPECT_EQ(ids(claim(*b_).deliveries), "2 ");
}

TEST_F(ClockSetForward, LeavesADeadHostsLeaseWhatWasLeftOfIt) {
  set_forward();
  clock_.advance(5s);
  EXPECT_EQ(ids(claim(*b_).deliveries), "");
  set_forward();
  EXPECT_EQ(ids(claim(*b_).deliveries), "");
  clock_.advance(2s);
  EXPECT_EQ(ids(claim(*b_).deliveries), "1! ");
  clock_.advance(11s);
  EXPECT_EQ(ids(claim(*a_).deliveries), "1! ") << "what was leased since ends as ever";
}

TEST_F(ClockSetForward, LeavesALimitOfWhatIsInFlightAsItIs) {
  const queue::NewMessage other{.id = "other", .body = "x", .group = "b"};
  b_->send("orders", std::span(&other, 1), Deadline::never());
  set_forward();
  EXPECT_EQ(ids(claim(*b_, 1).deliveries), "");
  EXPECT_EQ(ids(claim(*b_, 2).deliveries), "other ");
}

TEST_F(ClockSetForward, BringsWhatIsDelayedUntilThen) {
  const queue::NewMessage later{.id = "later", .body = "x", .delay = std::chrono::hours(1)};
  b_->send("orders", std::span(&later, 1), Deadline::never());
  EXPECT_EQ(ids(claim(*b_).deliveries), "");
  set_forward();
  clock_.advance(1s);
  EXPECT_EQ(ids(claim(*b_).deliveries), "later ");
}

}  // namespace
}  // namespace sluice::test
