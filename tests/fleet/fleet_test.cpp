#include "host/fleet/fleet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/process_mark.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::fleet {
namespace {

using queue::Topic;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FleetTest : public ::testing::Test {
 protected:
  FleetTest() : board_(*queues_.open_board("mails")), fleet_(open()) {}

  std::unique_ptr<Fleet> open() { return *Fleet::open(queues_, {"mails", "orders"}, random_); }

  void tell(const std::string& instance, const std::function<void(HostRecord&)>& say = {}) {
    HostRecord record;
    record.instance = instance;
    record.name = "ops";
    record.pid = static_cast<std::int64_t>(instance.size());
    record.every = 30s;
    if (say) {
      say(record);
    }
    const auto before = board_->read(Topic::hosts, instance, Deadline::never());
    ASSERT_TRUE(board_->post(
        Topic::hosts, {.key = instance, .text = write_record(record, 65'536), .version = before->version}, soon()));
  }
  Deadline soon() { return Deadline::after(clock_, 10s); }
  FleetView view() { return *fleet_->hosts(soon()); }
  Directive pause(const std::string& job) { return {.wish = Wish::pause, .target = Target::job, .name = job}; }
  std::vector<std::string> wishes() {
    std::vector<std::string> texts;
    const auto steering = fleet_->steering(soon());
    for (const Given& given : steering->given) {
      texts.push_back(given.directive.text());
    }
    return texts;
  }

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  std::unique_ptr<queue::NoticeBoard> board_;
  std::unique_ptr<Fleet> fleet_;
};

TEST_F(FleetTest, TwoHostsOfOneNameAreTwo) {
  tell("a");
  tell("bb");
  const FleetView seen = view();
  ASSERT_EQ(seen.hosts.size(), 2U);
  EXPECT_EQ(seen.hosts.at(0).record.label(), "ops:1");
  EXPECT_EQ(seen.hosts.at(1).record.label(), "ops:2");
  EXPECT_THAT(seen.troubles, IsEmpty());
}

TEST_F(FleetTest, AgeTellsWhoIsGone) {
  tell("a");
  EXPECT_EQ(view().hosts.at(0).pulse, Pulse::fresh);
  clock_.advance(49s);
  EXPECT_EQ(view().hosts.at(0).pulse, Pulse::late);
  EXPECT_EQ(view().hosts.at(0).age, 49s);
  clock_.advance(60s);
  EXPECT_EQ(view().hosts.at(0).pulse, Pulse::silent);
}

TEST_F(FleetTest, AProcessOfThisMachineIsKnownToLiveOrToBeGoneHoweverOldItsRecord) {
  const auto of = [](const std::string& mark) {
    return [mark](HostRecord& record) {
      record.pid = ::getpid();
      record.process = mark;
    };
  };
  tell("gone", of(process_mark(::getpid()) + "0"));  // one that had the id before
  tell("stopped", of(process_mark(::getpid())));
  EXPECT_EQ(view().hosts.at(0).pulse, Pulse::silent);
  EXPECT_EQ(view().hosts.at(0).silence, "its process is gone");
  EXPECT_EQ(view().hosts.at(1).pulse, Pulse::fresh);
  clock_.advance(1h);
  EXPECT_EQ(view().hosts.at(1).pulse, Pulse::late);
}

TEST_F(FleetTest, OfOneThatCannotSayThatItHasEndedWhoeverKnowsDoes) {
  tell("a", [](HostRecord& record) {
    record.jobs.resize(1);
    record.running_total = 3;
  });
  ASSERT_TRUE(note_end(*board_, {"a", "SIGABRT in job mailer"}, soon()));
  ASSERT_TRUE(note_end(*board_, {"a", "another has found its ledger too"}, soon()));
  ASSERT_TRUE(note_end(*board_, {"nobody", "killed"}, soon()));
  const FleetView seen = view();
  ASSERT_EQ(seen.hosts.size(), 1U);
  EXPECT_EQ(seen.hosts.at(0).pulse, Pulse::silent);
  EXPECT_EQ(seen.hosts.at(0).record.state, HostState::ended);
  EXPECT_EQ(seen.hosts.at(0).record.left_behind, "SIGABRT in job mailer");
  EXPECT_EQ(seen.hosts.at(0).record.running_total, 0U);
}

TEST_F(FleetTest, OneThatHasEndedAndSaysHowIsNoLongerThere) {
  tell("a", [](HostRecord& record) {
    record.state = HostState::ended;
    record.left_behind = "job mailer: 1 message stays claimed";
  });
  const KnownHost ended = view().hosts.at(0);
  EXPECT_EQ(ended.pulse, Pulse::silent);
  EXPECT_EQ(ended.record.left_behind, "job mailer: 1 message stays claimed");
}

TEST_F(FleetTest, ARecordFromTheFutureIsYoung) {
  tell("a");
  clock_.set_wall(clock_.wall_now() - 3h);
  EXPECT_EQ(view().hosts.at(0).age, 0s);
}

TEST_F(FleetTest, AGarbledRecordHidesNobodyElse) {
  tell("a");
  ASSERT_TRUE(board_->post(Topic::hosts, {.key = "broken", .text = "\x01{"}, soon()));
  const FleetView seen = view();
  EXPECT_EQ(seen.hosts.size(), 1U);
  ASSERT_EQ(seen.troubles.size(), 1U);
  EXPECT_THAT(seen.troubles.at(0).error.message(), HasSubstr("host 'broken'"));
}

TEST_F(FleetTest, WishesStandOnceUntilTheyAreReset) {
  ASSERT_TRUE(fleet_->give(pause("mailer"), {}, "ann@ops", soon()));
  ASSERT_TRUE(fleet_->give(pause("mailer"), {}, "bob@ops", soon()));
  Directive scale{.wish = Wish::scale, .target = Target::job, .name = "mailer", .value = "4"};
  ASSERT_TRUE(fleet_->give(scale, {}, "ann@ops", soon()));
  scale.value = "6";
  ASSERT_TRUE(fleet_->give(scale, {}, "ann@ops", soon()));
  EXPECT_THAT(wishes(), ElementsAre("pause job mailer", "scale job mailer to 6"));
  EXPECT_EQ(fleet_->steering(soon())->given.at(0).directive.by, "bob@ops");
  const auto back = fleet_->reset(Wish::pause, "mailer", "ann@ops", soon());
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 1U);
  EXPECT_THAT(wishes(), ElementsAre("scale job mailer to 6"));
  EXPECT_THAT(*fleet_->reset(Wish::pause, "mailer", "ann@ops", soon()), IsEmpty());
  ASSERT_TRUE(fleet_->reset(std::nullopt, {}, "ann@ops", soon()));
  EXPECT_THAT(wishes(), IsEmpty());
}

TEST_F(FleetTest, AWishStandsThoughTheAuditCannotTakeIt) {
  // The chapter is full, and cannot be turned over: a later one lies where it has to go.
  const std::string full =
      R"({"chapter":0,"entries":[{"id":"a","what":")" + std::string(kChapterBytes, 'x') + R"("}]})";
  ASSERT_TRUE(board_->post(Topic::audit, {.text = full}, soon()));
  ASSERT_TRUE(board_->post(Topic::audit, {.key = "0", .text = R"({"chapter":128,"entries":[]})"}, soon()));
  const auto given = fleet_->give(pause("mailer"), {}, "ann@ops", soon());
  ASSERT_TRUE(given) << given.error().message();
  ASSERT_EQ(given->size(), 1U);
  EXPECT_TRUE(given->front().unnoted);
  EXPECT_THAT(wishes(), ElementsAre("pause job mailer"));
}

TEST_F(FleetTest, OrdersEndByThemselves) {
  ASSERT_TRUE(fleet_->give({.wish = Wish::drain, .target = Target::host, .name = "gone"}, {}, "ann", soon()));
  EXPECT_THAT(wishes(), ElementsAre("drain host gone"));
  clock_.advance(kOrderLife + 1s);
  EXPECT_THAT(wishes(), IsEmpty());
}

TEST_F(FleetTest, AFlawWritesNothing) {
  const auto given =
      fleet_->give({.wish = Wish::scale, .target = Target::job, .name = "j", .value = "200000"}, {}, "ann", soon());
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code(), ErrorCode::invalid);
  EXPECT_EQ(board_->read(Topic::steering, {}, soon())->version, 0);
  EXPECT_THAT(fleet_->audit({.limit = 10}, soon())->deeds, IsEmpty());
}

TEST_F(FleetTest, AnAnswerThatIsLostGivesItOnce) {
  queues_.set_fault_source([fail = true](test::StoreCall, const queue::QueueAddress&) mutable {
    return std::exchange(fail, false) ? std::optional(test::StoreFault{Error(ErrorCode::unknown_outcome, "lost"), true})
                                      : std::nullopt;
  });
  // The fault hits the look; from here on each post once.
  static_cast<void>(fleet_->hosts(soon()));
  queues_.set_fault_source({});
  ASSERT_TRUE(fleet_->give(pause("a"), {}, "ann", soon()));
  int calls = 0;
  queues_.set_fault_source([&calls](test::StoreCall, const queue::QueueAddress&) {
    return ++calls == 2 ? std::optional(test::StoreFault{Error(ErrorCode::unknown_outcome, "lost"), true})
                        : std::nullopt;
  });
  const auto given = fleet_->give(pause("b"), {}, "ann", soon());
  ASSERT_TRUE(given) << given.error().message();
  EXPECT_GT(calls, 4);
  EXPECT_EQ(given->at(0).version, 2);
  EXPECT_THAT(wishes(), ElementsAre("pause job a", "pause job b"));
  EXPECT_EQ(fleet_->audit({.limit = 10}, soon())->deeds.size(), 2U);
}

TEST_F(FleetTest, OperatorsAtATimeLoseNothingOfEachOther) {
  std::vector<std::jthread> operators;
  for (const std::string name : {"a", "b", "c", "d"}) {
    operators.emplace_back([this, name] {
      const auto own = open();
      for (int i = 0; i < 5; ++i) {
        auto given = own->give(pause(name + std::to_string(i)), {}, name, soon());
        EXPECT_TRUE(given) << given.error().message();
      }
    });
  }
  operators.clear();
  EXPECT_EQ(wishes().size(), 20U);
  EXPECT_EQ(fleet_->audit({.limit = 100}, soon())->deeds.size(), 20U);
}

TEST_F(FleetTest, TooManyWishesAreRefused) {
  std::size_t given = 0;
  for (; given <= kMaxDirectives; ++given) {
    const auto done = fleet_->give(pause("j" + std::to_string(given)), {}, "ann", soon());
    if (!done) {
      EXPECT_EQ(done.error().code(), ErrorCode::full) << done.error().message();
      break;
    }
  }
  EXPECT_EQ(given, kMaxDirectives);
  EXPECT_EQ(wishes().size(), kMaxDirectives);
}

TEST_F(FleetTest, WhoLooksOftenWritesSeldom) {
  ASSERT_TRUE(fleet_->watch(10s, soon()));
  const auto first = board_->read(Topic::steering, {}, soon())->version;
  for (int i = 0; i < 4; ++i) {
    clock_.advance(1s);
    ASSERT_TRUE(fleet_->watch(10s, soon()));
  }
  EXPECT_EQ(board_->read(Topic::steering, {}, soon())->version, first);
  clock_.advance(2s);
  ASSERT_TRUE(fleet_->watch(10s, soon()));
  EXPECT_EQ(board_->read(Topic::steering, {}, soon())->version, first + 1);
}

TEST_F(FleetTest, AuditTellsWhoDidWhatNewestFirst) {
  ASSERT_TRUE(fleet_->give(pause("mailer"), {}, "ann@ops", soon()));
  clock_.advance(5s);
  ASSERT_TRUE(fleet_->reset(Wish::pause, "mailer", "bob@ops", soon()));
  clock_.advance(5s);
  ASSERT_TRUE(fleet_->note({.wish = Wish::drain, .target = Target::host, .name = "ops"}, {}, "eve", soon()));
  const auto audit = fleet_->audit({.limit = 10}, soon());
  ASSERT_TRUE(audit);
  const std::vector<AuditEntry>& entries = audit->deeds;
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].what, "drain host ops");
  EXPECT_EQ(entries[1].what, "reset: pause job mailer");
  EXPECT_EQ(entries[1].who, "bob@ops");
  EXPECT_EQ(entries[2].what, "pause job mailer");
  EXPECT_EQ(entries[0].place, "memory");
  EXPECT_EQ(fleet_->audit({.limit = 1}, soon())->deeds.size(), 1U);
}

TEST_F(FleetTest, AuditTellsSinceWhenItIsKeptWhereThatMatters) {
  // As a book of which older chapters are gone.
  ASSERT_TRUE(board_->post(Topic::audit, {.text = R"({"chapter":200,"entries":[]})"}, soon()));
  EXPECT_EQ(fleet_->audit({.names = {"orders"}}, soon())->kept_since, board_->now());
  EXPECT_EQ(fleet_->audit({}, soon())->kept_since, board_->now());
  EXPECT_EQ(fleet_->audit({.names = {"of another board"}}, soon())->kept_since, std::nullopt);
}

TEST_F(FleetTest, ObedienceTellsWhoHasSeenIt) {
  tell("a");
  tell("bb");
  tell("ccc");
  const auto given = fleet_->give(pause("mailer"), {}, "ann", soon());
  ASSERT_TRUE(given);
  tell("a", [&](HostRecord& record) {
    record.seen = given->at(0).version;
    record.answers.push_back({given->at(0).directive.id, false, "no such job"});
  });
  const Obedience now = Fleet::obedience(*given, view());
  EXPECT_THAT(now.seen_by, ElementsAre("ops:1"));
  EXPECT_THAT(now.waited_for, ElementsAre("ops:2", "ops:3"));
  ASSERT_EQ(now.answers.size(), 1U);
  EXPECT_EQ(now.answers.at("ops:1").text, "no such job");
  clock_.advance(49s);
  EXPECT_THAT(Fleet::obedience(*given, view()).waited_for, ElementsAre("ops:2", "ops:3")) << "late is not dead";
  clock_.advance(10h);
  EXPECT_THAT(Fleet::obedience(*given, view()).waited_for, IsEmpty()) << "the dead are not waited for";
}

TEST_F(FleetTest, AStoreThatFailsIsAnError) {
  queues_.set_fault_source([](test::StoreCall, const queue::QueueAddress&) {
    return std::optional(test::StoreFault{Error(ErrorCode::unavailable, "down"), false});
  });
  EXPECT_EQ(fleet_->hosts(soon()).error().code(), ErrorCode::unavailable);
  EXPECT_EQ(fleet_->give(pause("a"), {}, "ann", soon()).error().code(), ErrorCode::unavailable);
  EXPECT_EQ(fleet_->watch(1s, soon()).error().code(), ErrorCode::unavailable);
  EXPECT_FALSE(fleet_->steering(soon()));
}

}  // namespace
}  // namespace sluice::fleet
