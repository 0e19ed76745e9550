// A host's place in its fleet: what it tells, what it obeys, and that no store holds it up.

#include "host/runtime/fleet_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "base/random.hpp"
#include "host/fleet/fleet.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {
namespace {

using fleet::Directive;
using fleet::Fleet;
using fleet::Target;
using fleet::Wish;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

/// How long a test waits for what should come at once.
constexpr Duration kPatience = 20s;

/// A host that notes what is asked of it. Thread-safe.
class NotingControl final : public fleet::HostControl {
 public:
  fleet::HostRecord describe() const override {
    fleet::HostRecord record = identity();
    ++described;
    if (unready) {
      record.not_ready = "job mailer cannot work: no answer";
    }
    if (leaves_work) {
      record.state = fleet::HostState::ended;
      record.left_behind = "job mailer: a handler had not returned";
    }
    record.jobs.resize(1);
    record.jobs[0].name = "mailer";
    record.jobs[0].queue = "mails";
    record.running_total = 1;
    record.running.resize(1);
    record.running[0].message = "m-1";
    return record;
  }
  fleet::Answer obey(const Directive& order) override {
    note("order: " + order.text());
    return {order.id, order.wish != Wish::cancel_running, "noted"};
  }
  void take(const fleet::HostSteering& standing) override {
    note("paused " + std::to_string(standing.paused_jobs.size()) + ", scaled " +
         std::to_string(standing.workers.size()));
  }

  mutable std::atomic<int> described{0};
  std::atomic<bool> unready{false};
  std::atomic<bool> leaves_work{false};  ///< the host has ended, and not clean

  static fleet::HostRecord identity() {
    fleet::HostRecord record;
    record.instance = "ops:7:abc";
    record.name = "ops";
    record.pid = 7;
    record.state = fleet::HostState::running;
    return record;
  }
  std::vector<std::string> noted() const {
    const MutexLock lock(mutex_);
    return noted_;
  }
  bool await(const std::string& text) {
    const MutexLock lock(mutex_);
    return changed_.wait_until(mutex_, SystemClock().steady_now() + kPatience, [&]() SLUICE_NO_TSA {
      return std::find(noted_.begin(), noted_.end(), text) != noted_.end();
    });
  }

 private:
  void note(std::string text) {
    const MutexLock lock(mutex_);
    noted_.push_back(std::move(text));
    changed_.notify_all();
  }

  mutable Mutex mutex_;
  Condition changed_;
  std::vector<std::string> noted_ SLUICE_GUARDED_BY(mutex_);
};

class FleetServiceTest : public testing::Test {
 protected:
  FleetServiceTest() : fleet_(*Fleet::open(queues_, {"mails"}, random_)) { make(); }

  void make() {
    service_ = std::make_unique<FleetService>(
        FleetService::Parts{queues_, control_, log_, clock_, [this] { return std::exchange(ended_, {}); }},
        NotingControl::identity(), [] {
          return std::vector<std::string>{"mails", "orders"};
        });
  }
  Deadline soon() { return Deadline::after(clock_, kPatience); }
  void give(Wish wish, Target target, const std::string& name, const std::string& value = {}) {
    const auto given = fleet_->give({.wish = wish, .target = target, .name = name, .value = value}, {}, "ann", soon());
    ASSERT_TRUE(given) << given.error().message();
  }
  /// Waits until the host's record is as wanted; it is told again each time the board is looked at.
  bool await_record(const std::function<bool(const fleet::HostRecord&)>& wanted) {
    const SteadyTime end = clock_.steady_now() + kPatience;
    while (clock_.steady_now() < end) {
      const auto view = fleet_->hosts(soon());
      if (view && view->hosts.size() == 1 && wanted(view->hosts[0].record)) {
        return true;
      }
      std::this_thread::yield();
    }
    return false;
  }
  std::size_t records() { return fleet_->hosts(soon())->sightings.size(); }

  SystemClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  observe::Log log_{observe::LogLevel::off, observe::LogFormat::text};
  NotingControl control_;
  std::vector<fleet::HostEnd> ended_;  ///< touched by the service's thread alone, once that runs
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<FleetService> service_;
};

TEST_F(FleetServiceTest, TellsOfTheHostAndTakesItsWordBack) {
  ASSERT_TRUE(service_->start());
  EXPECT_TRUE(await_record([](const fleet::HostRecord& record) {
    return record.instance == "ops:7:abc" && record.every > 0s && record.running.empty() && !record.detailed &&
           record.running_total == 1;
  }));
  EXPECT_EQ(records(), 1U) << "both queues have one board";
  EXPECT_TRUE(service_->leave(clock_.steady_now() + 5s));
  EXPECT_EQ(records(), 0U);
  service_->stop();
}

TEST_F(FleetServiceTest, WhereItLeavesWorkBehindItsLastWordSaysSo) {
  ASSERT_TRUE(service_->start());
  ASSERT_TRUE(await_record([](const auto&) { return true; }));
  control_.leaves_work = true;
  EXPECT_TRUE(service_->leave(clock_.steady_now() + 5s));
  const auto view = fleet_->hosts(soon());
  ASSERT_EQ(view->hosts.size(), 1U);
  EXPECT_EQ(view->hosts[0].record.left_behind, "job mailer: a handler had not returned");
  EXPECT_FALSE(view->hosts[0].answers());
}

TEST_F(FleetServiceTest, TellsOfADeadHostThatItHasEnded) {
  const auto board = *queues_.open_board("mails");
  fleet::HostRecord dead = NotingControl::identity();
  dead.every = 30s;
  ASSERT_TRUE(board->post(queue::Topic::hosts, {.key = "ops:6:old", .text = write_record(dead, 65'536)}, soon()));
  ended_ = {{"ops:6:old", "killed"}};
  ASSERT_TRUE(service_->start());
  const SteadyTime end = clock_.steady_now() + kPatience;
  std::string why;
  while (why.empty() && clock_.steady_now() < end) {
    const auto view = fleet_->hosts(soon());
    for (const fleet::KnownHost& host : view->hosts) {
      why += host.record.left_behind;
    }
    std::this_thread::yield();
  }
  EXPECT_EQ(why, "killed");
}

TEST_F(FleetServiceTest, WhatStandsIsObeyedBeforeAnythingBegins) {
  give(Wish::pause, Target::job, "mailer");
  service_->look_first({"mails"});
  EXPECT_THAT(control_.noted(), ElementsAre("paused 1, scaled 0"));
}

TEST_F(FleetServiceTest, AWishIsObeyedAndAnsweredAtOnce) {
  ASSERT_TRUE(service_->start());
  ASSERT_TRUE(await_record([](const auto&) { return true; }));
  const SteadyTime before = clock_.steady_now();
  const auto given = fleet_->give({.wish = Wish::pause, .target = Target::job, .name = "mailer"}, {}, "ann", soon());
  ASSERT_TRUE(given);
  EXPECT_TRUE(control_.await("paused 1, scaled 0"));
  EXPECT_LT(clock_.steady_now() - before, 1s);
  EXPECT_TRUE(await_record([&](const fleet::HostRecord& record) {
    return record.seen >= given->at(0).version && record.answers.size() == 1 && record.answers[0].done;
  }));
  EXPECT_THAT(Fleet::obedience({given->at(0)}, *fleet_->hosts(soon())).seen_by, ElementsAre("ops:7"));
  ASSERT_TRUE(fleet_->reset(Wish::pause, "mailer", "ann", soon()));
  EXPECT_TRUE(control_.await("paused 0, scaled 0"));
}

TEST_F(FleetServiceTest, AnOrderIsCarriedOutOnceAndNoneOfThoseBefore) {
  give(Wish::drain, Target::host, "ops");
  service_->look_first({"mails"});
  ASSERT_TRUE(service_->start());
  give(Wish::reload, Target::all, "");
  give(Wish::cancel_running, Target::message, "m-9");
  give(Wish::reload, Target::host, "dead-host");
  give(Wish::scale, Target::job, "mailer", "3");
  EXPECT_TRUE(control_.await("paused 0, scaled 1"));
  EXPECT_TRUE(control_.await("order: cancel-running message m-9"));
  EXPECT_THAT(control_.noted(), UnorderedElementsAre("order: reload all hosts", "order: cancel-running message m-9",
                                                     "paused 0, scaled 1"));
  EXPECT_TRUE(await_record([](const fleet::HostRecord& record) { return record.answers.size() == 2; }))
      << "of a message that runs elsewhere nothing is said";
}

TEST_F(FleetServiceTest, TellsInDetailWhileSomebodyLooks) {
  ASSERT_TRUE(service_->start());
  ASSERT_TRUE(fleet_->watch(30s, soon()));
  EXPECT_TRUE(
      await_record([](const fleet::HostRecord& record) { return record.detailed && record.running.size() == 1; }));
}

TEST_F(FleetServiceTest, TellsAtOnceThatItIsNotReady) {
  ASSERT_TRUE(service_->start());
  ASSERT_TRUE(await_record([](const auto&) { return true; }));
  const SteadyTime before = clock_.steady_now();
  control_.unready = true;
  service_->look_now();
  EXPECT_TRUE(await_record([](const fleet::HostRecord& record) { return !record.not_ready.empty(); }));
  EXPECT_LT(clock_.steady_now() - before, 5s) << "and not with the next record that is due";
}

TEST_F(FleetServiceTest, ThePaceIsMeasuredWithEveryLookHoweverSeldomItIsTold) {
  ASSERT_TRUE(service_->start());
  ASSERT_TRUE(await_record([](const auto&) { return true; }));
  const SteadyTime end = clock_.steady_now() + 5s;  // long before the next record is due
  for (int i = 0; i < 5; ++i) {
    const int before = control_.described;
    service_->look_now();
    while (control_.described == before && clock_.steady_now() < end) {
      std::this_thread::yield();
    }
  }
  EXPECT_LT(clock_.steady_now(), end);
}

TEST_F(FleetServiceTest, ALookThatFindsNothingNewIsNotTold) {
  ASSERT_TRUE(service_->start());
  ASSERT_TRUE(await_record([](const auto&) { return true; }));
  const auto board = *queues_.open_board("mails");
  const std::int64_t version = (*board->list(queue::Topic::hosts, soon()))[0].version;
  for (int i = 0; i < 5; ++i) {
    const std::size_t calls = queues_.count(test::StoreCall::board);
    service_->look_now();
    while (queues_.count(test::StoreCall::board) == calls) {
      std::this_thread::yield();
    }
  }
  // What a look brings about is told before the next one.
  EXPECT_EQ((*board->list(queue::Topic::hosts, soon()))[0].version, version);
}

TEST_F(FleetServiceTest, ARecordThatSomebodySweptAwayIsWrittenAnew) {
  ASSERT_TRUE(service_->start());
  ASSERT_TRUE(await_record([](const auto&) { return true; }));
  const auto board = *queues_.open_board("mails");
  const auto listed = *board->list(queue::Topic::hosts, soon());
  ASSERT_TRUE(board->take_down(queue::Topic::hosts, listed[0].key, listed[0].version, soon()));
  service_->tell_now();
  EXPECT_TRUE(await_record([](const auto&) { return true; }));
}

TEST_F(FleetServiceTest, GarbageOnTheBoardLeavesWhatStood) {
  give(Wish::pause, Target::job, "mailer");
  service_->look_first({"mails"});
  const auto board = *queues_.open_board("mails");
  const auto notice = *board->read(queue::Topic::steering, {}, soon());
  ASSERT_TRUE(board->post(queue::Topic::steering, {.text = "\x01 garbage", .version = notice.version}, soon()));
  service_->look_first({"mails"});
  EXPECT_THAT(control_.noted(), SizeIs(1));
  give(Wish::scale, Target::job, "mailer", "3");
  service_->look_first({"mails"});
  EXPECT_THAT(control_.noted(), ElementsAre("paused 1, scaled 0", "paused 0, scaled 1"))
      << "the next wish mends the board";
}

TEST_F(FleetServiceTest, IsLeftWhileAStoreDoesNotAnswer) {
  std::latch asked{1};
  std::latch answers{1};
  queues_.set_fault_source([&](test::StoreCall, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    asked.count_down();
    answers.wait();
    return test::StoreFault{Error(ErrorCode::timeout, "no answer")};
  });
  ASSERT_TRUE(service_->start());
  asked.wait();
  const SteadyTime before = clock_.steady_now();
  EXPECT_FALSE(service_->leave(before + 50ms));
  EXPECT_LT(clock_.steady_now() - before, 5s);
  answers.count_down();
  service_->stop();
}

TEST_F(FleetServiceTest, AStoreThatFailsIsTriedAgainAndThenTold) {
  queues_.fail_next(test::StoreCall::board, 1, Error(ErrorCode::unavailable, "down"));
  ASSERT_TRUE(service_->start());
  EXPECT_TRUE(await_record([](const auto&) { return true; }));
  EXPECT_TRUE(service_->leave(clock_.steady_now() + 5s));
}

TEST_F(FleetServiceTest, TheFirstLookGivesUpOnAStoreThatFails) {
  queues_.fail_next(test::StoreCall::board, 1, Error(ErrorCode::unavailable, "down"));
  service_->look_first({"mails"});
  EXPECT_THAT(control_.noted(), IsEmpty());
}

}  // namespace
}  // namespace sluice::runtime
