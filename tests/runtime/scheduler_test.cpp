#include "host/runtime/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timestamp.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using config::CatchUp;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// 2026-01-02T03:04:05Z, as the fake clock begins.
WallTime at(const std::string& text) { return *parse_timestamp(text); }

Schedule every(Duration span, CatchUp catch_up = CatchUp::last, const std::string& body = "tick") {
  Schedule schedule;
  schedule.config.name = "sweep";
  schedule.config.every = span;
  schedule.config.catch_up = catch_up;
  schedule.config.queue = "orders";
  schedule.config.body = body;
  schedule.file = "jobs.d/a.toml";
  return schedule;
}

/// One host's scheduler on queues that several may share, its clock in the test's hand.
class HostOfTest {
 public:
  HostOfTest(test::SimQueues& queues, const test::FakeClock& clock, const std::string& name = "a")
      : clock_(clock), scheduler_(name) {
    auto sender = queues.open_sender("orders");
    sender_ = std::move(*sender);
    auto board = queues.open_board("orders");
    board_ = std::move(*board);
  }

  void take(const Schedule& schedule) { scheduler_.take({schedule}, clock_.wall_now()); }
  /// Carries out all that there is to do now; what was sent, by its deduplication id.
  std::vector<std::string> work() {
    std::vector<std::string> sent;
    for (auto order = scheduler_.next(clock_.wall_now()); order.duty != Scheduler::Duty::none;
         order = scheduler_.next(clock_.wall_now())) {
      const Deadline never = Deadline::never();
      if (order.duty == Scheduler::Duty::look) {
        scheduler_.looked(order.name, board_->read(queue::Topic::schedules, order.name, never), clock_.wall_now());
      } else if (order.duty == Scheduler::Duty::send) {
        const auto result = sender_->send({&order.message, 1}, never).front();
        if (result.status == queue::SendStatus::sent) {
          sent.push_back(order.message.dedup_id);
        }
        scheduler_.sent(order.name, order.due, result, clock_.wall_now());
      } else {
        scheduler_.told(order.name, board_->post(queue::Topic::schedules, order.notice, never), clock_.wall_now());
      }
    }
    for (const auto& line : scheduler_.take_lines()) {
      if (line.bad) {
        bad_lines_.push_back(line.text);
      }
    }
    return sent;
  }
  /// The latest time that hosts tell as one of which a message was sent; empty: none.
  std::string told_sent() const {
    const auto notice = ScheduleNotice::read(board_->read(queue::Topic::schedules, "sweep", Deadline::never())->text);
    return notice->sent ? format_timestamp(WallTime(notice->sent->time_since_epoch())) : std::string();
  }
  WallTime wake() { return scheduler_.next(clock_.wall_now()).wake; }
  std::vector<std::string> take_bad_lines() { return std::exchange(bad_lines_, {}); }

 private:
  const test::FakeClock& clock_;
  Scheduler scheduler_;
  std::unique_ptr<queue::Sender> sender_;
  std::unique_ptr<queue::NoticeBoard> board_;
  std::vector<std::string> bad_lines_;
};

class SchedulerTest : public ::testing::Test {
 protected:
  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
};

TEST_F(SchedulerTest, SendsAtEachTimeThatIsDue) {
  HostOfTest host(queues_, clock_);
  host.take(every(15min));
  EXPECT_THAT(host.work(), IsEmpty()) << "what was due before it was there was not missed";
  EXPECT_EQ(host.wake(), at("2026-01-02T03:04:35Z")) << "to look whether another host has it otherwise";
  clock_.set_wall(at("2026-01-02T03:14:50Z"));
  host.work();
  EXPECT_EQ(host.wake(), at("2026-01-02T03:15:00Z"));
  clock_.set_wall(at("2026-01-02T03:15:00Z"));
  EXPECT_THAT(host.work(), ElementsAre("schedule/sweep/2026-01-02T03:15:00.000000000Z"));
  EXPECT_THAT(host.work(), IsEmpty());
  clock_.set_wall(at("2026-01-02T03:30:00.5Z"));
  EXPECT_THAT(host.work(), ElementsAre("schedule/sweep/2026-01-02T03:30:00.000000000Z"));
  EXPECT_THAT(host.take_bad_lines(), IsEmpty());
}

TEST_F(SchedulerTest, TellsWhatItHasSentAndNothingBefore) {
  HostOfTest host(queues_, clock_, "a");
  host.take(every(15min));
  host.work();
  EXPECT_EQ(host.told_sent(), "") << "it is up to date, and has sent nothing";
  clock_.set_wall(at("2026-01-02T03:15:00Z"));
  host.work();
  EXPECT_EQ(host.told_sent(), "2026-01-02T03:15:00.000000000Z");
  HostOfTest other(queues_, clock_, "b");
  other.take(every(15min, CatchUp::none));
  other.work();
  clock_.set_wall(at("2026-01-02T03:40:00Z"));
  other.work();
  EXPECT_EQ(other.told_sent(), "2026-01-02T03:15:00.000000000Z") << "what is let go was not sent";
}

TEST_F(SchedulerTest, ManyHostsAndManyStartsSendOnce) {
  std::size_t sent = 0;
  HostOfTest first(queues_, clock_, "a");
  HostOfTest second(queues_, clock_, "b");
  first.take(every(1min));
  second.take(every(1min));
  for (int minute = 0; minute < 30; ++minute) {
    sent += first.work().size();
    HostOfTest restarted(queues_, clock_, "c");
    restarted.take(every(1min));
    sent += restarted.work().size() + second.work().size();
    clock_.advance(1min);
  }
  sent += first.work().size() + second.work().size();
  EXPECT_EQ(sent, 30U);
  EXPECT_THAT(first.take_bad_lines(), IsEmpty());
}

class CatchUpTest : public SchedulerTest {
 protected:
  /// What a host sends at its start that has been away from 03:15 until 06:20.
  std::vector<std::string> after_absence(CatchUp policy) {
    HostOfTest before(queues_, clock_);
    before.take(every(1h, policy));
    before.work();
    clock_.set_wall(at("2026-01-02T04:00:00Z"));
    EXPECT_THAT(before.work(), SizeIs(1));
    clock_.advance(2min);
    before.work();
    clock_.set_wall(at("2026-01-02T07:20:00Z"));
    HostOfTest after(queues_, clock_);
    after.take(every(1h, policy));
    return after.work();
  }
};

TEST_F(CatchUpTest, None) { EXPECT_THAT(after_absence(CatchUp::none), IsEmpty()); }

TEST_F(CatchUpTest, Last) {
  EXPECT_THAT(after_absence(CatchUp::last), ElementsAre("schedule/sweep/2026-01-02T07:00:00.000000000Z"));
}

TEST_F(CatchUpTest, All) {
  EXPECT_THAT(after_absence(CatchUp::all), ElementsAre("schedule/sweep/2026-01-02T05:00:00.000000000Z",
                                                       "schedule/sweep/2026-01-02T06:00:00.000000000Z",
                                                       "schedule/sweep/2026-01-02T07:00:00.000000000Z"));
}

TEST_F(CatchUpTest, AllIsBounded) {
  HostOfTest before(queues_, clock_);
  before.take(every(1min, CatchUp::all));
  before.work();
  clock_.advance(24h);
  HostOfTest after(queues_, clock_);
  after.take(every(1min, CatchUp::all));
  EXPECT_THAT(after.work(), SizeIs(Scheduler::kMostCaughtUp));
  const auto lines = after.take_bad_lines();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("has missed more than 100 times; those before 2026-01-03 01:25:00 UTC are let go"));
}

TEST_F(SchedulerTest, AClockThatJumpsSendsNothingTwice) {
  HostOfTest host(queues_, clock_);
  host.take(every(1h));
  host.work();
  clock_.advance(1h);
  EXPECT_THAT(host.work(), SizeIs(1));
  clock_.set_wall(clock_.wall_now() - 30min);
  EXPECT_THAT(host.work(), IsEmpty());
  clock_.advance(31min);
  EXPECT_THAT(host.work(), IsEmpty()) << "04:00 comes again, and was sent";
  clock_.advance(1h);
  EXPECT_THAT(host.work(), SizeIs(1));
}

TEST_F(SchedulerTest, ARecordOfAClockThatWasWrongDoesNotStopItForEver) {
  clock_.set_wall(at("2100-01-01T00:00:00Z"));
  HostOfTest wrong(queues_, clock_, "a");
  wrong.take(every(1h));
  wrong.work();
  clock_.set_wall(at("2026-01-02T03:04:05Z"));
  HostOfTest host(queues_, clock_, "b");
  host.take(every(1h));
  host.work();
  clock_.advance(1h);
  EXPECT_THAT(host.work(), SizeIs(1));
}

TEST_F(SchedulerTest, HostsThatDifferAreTold) {
  HostOfTest first(queues_, clock_, "a");
  HostOfTest second(queues_, clock_, "b");
  first.take(every(15min));
  EXPECT_THAT(first.work(), IsEmpty());
  Schedule other = every(20min);
  other.file = "jobs.d/b.toml";
  second.take(other);
  second.work();
  const auto told = second.take_bad_lines();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], HasSubstr("schedule 'sweep' is not the same everywhere: here jobs.d/b.toml has every 20m"));
  EXPECT_THAT(told[0], HasSubstr("on host a jobs.d/a.toml has every 15m"));
  EXPECT_THAT(told[0], HasSubstr("Make the files the same and reload, or give one of them another name"));
  // And the first one, long before it has something to send.
  clock_.advance(Scheduler::kLookInterval);
  first.work();
  const auto first_told = first.take_bad_lines();
  ASSERT_THAT(first_told, SizeIs(1));
  EXPECT_THAT(first_told[0], HasSubstr("on host b jobs.d/b.toml has every 20m"));
  clock_.set_wall(at("2026-01-02T05:15:00Z"));
  first.work();
  EXPECT_THAT(first.take_bad_lines(), IsEmpty()) << "once";
}

TEST_F(SchedulerTest, HostsThatDifferDoNotWriteOverEachOtherForEver) {
  HostOfTest first(queues_, clock_, "a");
  HostOfTest second(queues_, clock_, "b");
  first.take(every(24h));
  first.work();
  second.take(every(48h));
  second.work();
  auto opened = queues_.open_board("orders");
  const std::unique_ptr<queue::NoticeBoard> board = *std::move(opened);
  const auto version = [&] { return board->read(queue::Topic::schedules, "sweep", Deadline::never())->version; };
  EXPECT_EQ(version(), 2) << "each has told what it has";
  for (int minute = 0; minute < 10; ++minute) {
    clock_.advance(1min);
    first.work();
    second.work();
  }
  EXPECT_EQ(version(), 2);
  EXPECT_THAT(first.take_bad_lines(), SizeIs(1));
  EXPECT_THAT(second.take_bad_lines(), SizeIs(1));
}

TEST_F(SchedulerTest, ALookThatFailsHoldsUpNothingThatIsDue) {
  HostOfTest host(queues_, clock_);
  host.take(every(15min));
  host.work();
  clock_.set_wall(at("2026-01-02T03:14:59Z"));
  queues_.fail_next(test::StoreCall::board, 1, Error(ErrorCode::unavailable, "down"));
  host.work();
  clock_.set_wall(at("2026-01-02T03:15:00Z"));
  EXPECT_THAT(host.work(), SizeIs(1));
  EXPECT_THAT(host.take_bad_lines(), IsEmpty());
}

TEST_F(SchedulerTest, AClockThatIsSetBackStillLooks) {
  HostOfTest first(queues_, clock_, "a");
  first.take(every(24h));
  clock_.set_wall(at("2026-01-03T03:04:05Z"));
  first.work();
  clock_.set_wall(at("2026-01-02T03:04:05Z"));
  HostOfTest second(queues_, clock_, "b");
  second.take(every(48h));
  second.work();
  first.work();
  EXPECT_THAT(first.take_bad_lines(), SizeIs(1));
}

TEST_F(SchedulerTest, AChangedScheduleBeginsAnewAndAnUnchangedOneGoesOn) {
  HostOfTest host(queues_, clock_);
  host.take(every(15min));
  host.work();
  clock_.set_wall(at("2026-01-02T03:15:00Z"));
  host.take(every(15min));
  EXPECT_THAT(host.work(), SizeIs(1)) << "taken again as it was";
  clock_.set_wall(at("2026-01-02T03:31:00Z"));
  host.take(every(10min));
  EXPECT_THAT(host.work(), IsEmpty());
  clock_.set_wall(at("2026-01-02T03:40:00Z"));
  EXPECT_THAT(host.work(), ElementsAre("schedule/sweep/2026-01-02T03:40:00.000000000Z"));
  EXPECT_THAT(host.take_bad_lines(), IsEmpty()) << "it was changed on the host that had it";
}

TEST_F(SchedulerTest, AStoreThatFailsIsTriedAgain) {
  HostOfTest host(queues_, clock_);
  host.take(every(15min));
  host.work();
  clock_.set_wall(at("2026-01-02T03:15:00Z"));
  queues_.fail_next(test::StoreCall::send, 3, Error(ErrorCode::unavailable, "down"));
  EXPECT_THAT(host.work(), IsEmpty());
  for (int i = 0; i < 3; ++i) {
    clock_.advance(10s);
    host.work();
  }
  EXPECT_THAT(host.take_bad_lines(), ElementsAre("schedule 'sweep' cannot send, trying again: down"));
  test::Desk desk(queues_);
  EXPECT_EQ(desk.stats({"orders"}, Deadline::never())->total(), 1U);
}

TEST_F(SchedulerTest, AClockThatIsSetBackPutsOffNoSecondTry) {
  HostOfTest host(queues_, clock_);
  host.take(every(15min));
  host.work();
  clock_.set_wall(at("2026-01-02T03:15:00Z"));
  queues_.fail_next(test::StoreCall::send, 1, Error(ErrorCode::unavailable, "down"));
  EXPECT_THAT(host.work(), IsEmpty());
  clock_.set_wall(at("2026-01-02T02:15:00Z"));
  EXPECT_THAT(host.work(), ElementsAre("schedule/sweep/2026-01-02T03:15:00.000000000Z"));
}

TEST_F(SchedulerTest, AMessageThatCannotBeSentIsLetGo) {
  HostOfTest host(queues_, clock_);
  host.take(every(15min, CatchUp::last, std::string(500'000, 'x')));
  host.work();
  clock_.set_wall(at("2026-01-02T03:15:00Z"));
  EXPECT_THAT(host.work(), IsEmpty());
  const auto lines = host.take_bad_lines();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("cannot be sent, and the one of 2026-01-02 03:15:00 UTC is let go: a body has"));
}

TEST_F(SchedulerTest, TheThreadSendsAndStops) {
  // On the machine's clock: what is due each second is there within a few.
  const SystemClock clock;
  test::SimQueues queues(clock, random_);
  observe::Log log(observe::LogLevel::error, observe::LogFormat::text);
  ScheduleService service(queues, log, clock, "a");
  ASSERT_TRUE(service.start());
  service.take({every(1s)});
  test::Desk desk(queues);
  const SteadyTime limit = clock.steady_now() + 60s;
  while (desk.stats({"orders"}, Deadline::never())->total() == 0 && clock.steady_now() < limit) {
    std::this_thread::yield();
  }
  EXPECT_GE(desk.stats({"orders"}, Deadline::never())->total(), 1U);
  EXPECT_TRUE(service.leave(clock.steady_now() + 60s));
}

}  // namespace
}  // namespace sluice::runtime
