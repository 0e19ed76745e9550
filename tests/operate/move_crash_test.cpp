#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dynamo/client.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "tests/operate/move_rig.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/sim_queues.hpp"

/// A move is killed behind each of its writes, and goes on; what is promised holds for each of them.
namespace sluice::operate {
namespace {

using namespace std::chrono_literals;
using State = Mover::Step::State;

constexpr std::size_t kForEver = std::numeric_limits<std::size_t>::max();

/// One store of a kind, and a desk on it.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;
  virtual test::Desk& desk() = 0;
};

class SimStore final : public Store {
 public:
  SimStore(const Clock& clock, Random& random) : queues(clock, random), desk_(queues) {}
  test::Desk& desk() override { return desk_; }

  test::SimQueues queues;

 private:
  test::Desk desk_;
};

class FileStore final : public Store {
 public:
  FileStore(const Clock& clock, Random& random) : desk_(test::open_store(folder_.file("store.db"), clock, random)) {}
  test::Desk& desk() override { return *desk_; }

 private:
  test::TempFolder folder_;
  std::unique_ptr<test::StoreDesk> desk_;
};

/// A table of the model, with one process on it.
class TableStore final : public Store {
 public:
  TableStore(const Clock& clock, Random& random, const std::string& table, bool leased = false)
      : model(clock, 7),
        transport_(model, clock),
        credentials_("HOST"),
        client_(options(), transport_, credentials_, clock, random),
        queues_(leased ? leased_queues(table, client_, clock, random)
                       : queue::dynamomq::make_dynamomq_queues({{.host = "h", .region = "us-east-1"}}, client_, clock,
                                                               random)),
        desk_(*queues_) {
    queue::dynamodb::TableSpec spec;
    spec.table = table;
    if (leased) {
      spec.layout = queue::dynamodb::kLeasedLayout;
    }
    const auto made = queue::dynamodb::create_queue_table(client_, spec, clock, Deadline::never());
    EXPECT_TRUE(made) << made.error().message();
  }
  test::Desk& desk() override { return desk_; }

  test::model::Model model;

 private:
  /// Nobody owns a shard: what consumes, borrows.
  static std::unique_ptr<queue::Queues> leased_queues(const std::string& table, dynamo::Client& client,
                                                      const Clock& clock, Random& random) {
    queue::leased::LeasedOptions options;
    options.queues[table] = {.table = table, .shards = 2};
    options.host = "h";
    options.region = "us-east-1";
    options.own_threads = false;
    return queue::leased::make_leased_queues(std::move(options), client, clock, random);
  }
  static dynamo::ClientOptions options() {
    dynamo::ClientOptions options;
    options.region = "us-east-1";
    return options;
  }

  test::model::ModelTransport transport_;
  test::model::FixedCredentials credentials_;
  dynamo::Client client_;
  std::unique_ptr<queue::Queues> queues_;
  test::Desk desk_;
};

enum class Kind { sim, file, table, leased };

struct Way {
  const char* name;
  Kind from;
  Kind to;
};

std::unique_ptr<Store> open(Kind kind, const Clock& clock, Random& random, const std::string& queue) {
  switch (kind) {
    case Kind::sim:
      return std::make_unique<SimStore>(clock, random);
    case Kind::file:
      return std::make_unique<FileStore>(clock, random);
    case Kind::table:
    case Kind::leased:
      break;
  }
  return std::make_unique<TableStore>(clock, random, queue, kind == Kind::leased);
}

/// The two queues of a way, filled: six messages are ready, one is delayed, one waits for a retry, two are dead.
class World {
 public:
  explicit World(const Way& way) {
    clock_.set_steady(SystemClock().steady_now());
    if (way.from == Kind::leased || way.to == Kind::leased) {
      clock_.advance(Duration(123'456));  // such a table keeps whole milliseconds
    }
    from_ = open(way.from, clock_, random_, "orders");
    to_ = open(way.to, clock_, random_, "orders2");
    fill();
    rig = std::make_unique<test::MoveRig>(clock_, from_->desk(), to_->desk());
  }

  void fill() {
    test::Desk& desk = from_->desk();
    for (int i = 0; i < 10; ++i) {
      queue::NewMessage message{.id = "M-" + std::to_string(i), .body = "b" + std::to_string(i)};
      message.attributes = {{"n", std::to_string(i)}};
      message.delay = i == 6 ? Duration(1h) : Duration();
      ASSERT_EQ(desk.send("orders", std::span(&message, 1), soon()).front().status, queue::SendStatus::sent);
      clock_.advance(1ms);
    }
    clock_.advance(10ms);
    // The first one that is claimed waits for its retry.
    const auto claimed = desk.claim({"orders"}, 1, 30s, soon());
    ASSERT_EQ(claimed->size(), 1U);
    retried = claimed->front().message.id;
    const queue::Completion retry{.receipt = claimed->front().receipt,
                                  .action = queue::CompletionAction::retry,
                                  .delay = 30min,
                                  .failure = {.error = "no route", .handler = "h", .host = "x", .attempts = 1}};
    ASSERT_EQ(desk.settle({"orders"}, std::span(&retry, 1), soon()).front().status, queue::SettleStatus::applied);
    for (const char* const id : {"M-8", "M-9"}) {
      ASSERT_TRUE(desk.dead_letter("orders", id, {.error = "gone", .handler = "h", .attempts = 3}, soon()));
    }
    clock_.advance(10ms);
  }

  /// What is delayed has come due, and everybody has worked off what there was.
  void settle_all() {
    rig->consume();
    clock_.advance(2h);
    rig->consume();
  }

  /// Nothing lost, nothing doubled.
  void expect_each_once(const std::string& when) {
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(rig->handled["M-" + std::to_string(i)], 1) << "M-" << i << " " << when;
    }
    EXPECT_EQ(total("orders", queue::Half::standard) + total("orders", queue::Half::dlq), 0U) << when;
    EXPECT_EQ(total("orders2", queue::Half::standard), 0U) << when;
    EXPECT_EQ(total("orders2", queue::Half::dlq), 2U) << when;
    const auto dead = to_->desk().get("orders2", "M-8", soon());
    ASSERT_TRUE(dead) << when;
    EXPECT_EQ(dead->failure.error, "gone");
    EXPECT_EQ(dead->state(clock_.wall_now()), queue::MessageState::ready) << when;
    const auto notice = rig->from_board().read(queue::Topic::schedules, "move/orders", soon());
    EXPECT_EQ(notice->version, 0) << "the notice is taken down " << when;
  }

  std::uint64_t total(const std::string& queue, queue::Half half) {
    test::Desk& desk = queue == "orders" ? from_->desk() : to_->desk();
    return desk.stats({queue, half}, soon())->total();
  }

  Deadline soon() const { return Deadline::after(clock_, 60s); }
  test::FakeClock& clock() { return clock_; }
  Store& from() { return *from_; }
  Store& to() { return *to_; }

  std::unique_ptr<test::MoveRig> rig;
  std::string retried;

 private:
  test::FakeClock clock_;
  SeededRandom random_{11};
  std::unique_ptr<Store> from_;
  std::unique_ptr<Store> to_;
};

/// A leased table has what was sent for later under the time at which it is due, and says no more of it.
WallTime due(const queue::StoredMessage& record) { return record.invisible_until.value_or(record.message.sent_at); }

class MoveWays : public testing::TestWithParam<Way> {
 protected:
  /// The single writes that a whole move makes.
  std::size_t whole_move() {
    World world(GetParam());
    EXPECT_EQ(world.rig->run(kForEver).state, State::finished);
    return world.rig->writes;
  }
};

TEST_P(MoveWays, CarriesEverythingAsItIs) {
  World world(GetParam());
  const auto before = world.from().desk().get("orders", "M-3", world.soon());
  const auto retry = world.from().desk().get("orders", world.retried, world.soon());
  const auto delayed = world.from().desk().get("orders", "M-6", world.soon());
  const auto end = world.rig->run(kForEver);
  ASSERT_EQ(end.state, State::finished) << end.error.message();
  EXPECT_EQ(world.rig->count.carried, 10U);
  EXPECT_EQ(world.rig->count.dead_letters, 2U);
  EXPECT_EQ(world.rig->writes, 40U) << "four for each message";
  test::Desk& to = world.to().desk();
  const auto after = to.get("orders2", "M-3", world.soon());
  EXPECT_EQ(after->message.body, "b3");
  EXPECT_EQ(after->message.attributes, before->message.attributes);
  if (GetParam().to == Kind::leased) {
    EXPECT_TRUE(same_millisecond(after->message.sent_at, before->message.sent_at));
    EXPECT_TRUE(same_millisecond(after->created_at, before->created_at));
  } else {
    EXPECT_EQ(after->message.sent_at, before->message.sent_at);
    EXPECT_EQ(after->created_at, before->created_at);
  }
  EXPECT_EQ(after->message.attempt, 0U);
  EXPECT_EQ(after->state(world.clock().wall_now()), queue::MessageState::ready);
  const auto retry_after = to.get("orders2", world.retried, world.soon());
  EXPECT_EQ(retry_after->message.attempt, 1U);
  EXPECT_EQ(retry_after->failure.error, "no route");
  ASSERT_TRUE(retry_after->invisible_until);
  EXPECT_LT(std::chrono::abs(*retry_after->invisible_until - *retry->invisible_until), 1s) << "its time is kept";
  const auto delayed_after = to.get("orders2", "M-6", world.soon());
  EXPECT_LT(std::chrono::abs(due(*delayed_after) - due(*delayed)), 1s);
  EXPECT_EQ(due(*delayed_after), delayed_after->message.sent_at) << "sent for later, and no retry";
  world.settle_all();
  world.expect_each_once("after a move that nothing disturbed");
}

TEST_P(MoveWays, IsResumedAfterADeathBehindEachWrite) {
  const std::size_t writes = whole_move();
  for (std::size_t life = 0; life < writes; ++life) {
    World world(GetParam());
    EXPECT_EQ(world.rig->run(life).state, State::more) << "killed";
    const auto end = world.rig->run(kForEver);
    ASSERT_EQ(end.state, State::finished) << end.error.message();
    world.settle_all();
    world.expect_each_once("with a death behind write " + std::to_string(life));
  }
}

TEST_P(MoveWays, ConsumersOfBothSidesWorkBetweenAnyTwoWrites) {
  const std::size_t writes = whole_move();
  for (std::size_t life = 0; life < writes; ++life) {
    World world(GetParam());
    const auto consume = [&world] { world.rig->consume(); };
    world.rig->run(life, consume);
    world.rig->consume();  // between the death and the next run
    world.rig->consume();
    const auto end = world.rig->run(kForEver, consume);
    ASSERT_EQ(end.state, State::finished) << end.error.message();
    world.settle_all();
    world.expect_each_once("with consumers, and a death behind write " + std::to_string(life));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stores, MoveWays,
    testing::Values(Way{"memory", Kind::sim, Kind::sim}, Way{"file_to_file", Kind::file, Kind::file},
                    Way{"table_to_file", Kind::table, Kind::file}, Way{"file_to_table", Kind::file, Kind::table},
                    Way{"table_to_table", Kind::table, Kind::table}, Way{"file_to_leased", Kind::file, Kind::leased},
                    Way{"table_to_leased", Kind::table, Kind::leased}, Way{"leased_to_file", Kind::leased, Kind::file}),
    [](const auto& way) { return std::string(way.param.name); });

TEST(MoveDeaths, TwoOfThemAnywhereDoNoHarm) {
  const Way way{"memory", Kind::sim, Kind::sim};
  for (std::size_t first = 0; first < 40; ++first) {
    for (std::size_t second = 0; second < 45; ++second) {
      World world(way);
      world.rig->run(first);
      world.rig->consume();
      world.rig->run(second);
      world.rig->consume();
      const auto end = world.rig->run(kForEver);
      ASSERT_EQ(end.state, State::finished) << end.error.message();
      world.settle_all();
      world.expect_each_once("with deaths behind writes " + std::to_string(first) + " and " + std::to_string(second));
      ASSERT_FALSE(testing::Test::HasFailure());
    }
  }
}

/// Answers are lost, requests fail and arrive late, and indexes lag: on both sides, for a mover that gives up at each
/// failure and is run again.
TEST(MoveFaults, WhateverGoesWrongWithRequestsNothingIsLostOrDoubled) {
  constexpr int kSeeds = 20;
  std::uint64_t faults = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    test::FakeClock clock;
    SeededRandom random(seed);
    TableStore from(clock, random, "orders");
    TableStore to(clock, random, "orders2");
    test::MoveRig rig(clock, from.desk(), to.desk());
    const auto soon = [&clock] { return Deadline::after(clock, 60s); };
    constexpr int kMessages = 60;
    for (int i = 0; i < kMessages; ++i) {
      const queue::NewMessage message{.id = "M-" + std::to_string(i), .body = "x"};
      ASSERT_EQ(from.desk().send("orders", std::span(&message, 1), soon()).front().status, queue::SendStatus::sent);
      clock.advance(1ms);
    }
    rig.plan.batch = 7;
    for (TableStore* const store : {&from, &to}) {
      test::model::ModelSettings settings;
      settings.faults.refuse = settings.faults.lose = settings.faults.error_500 = 0.035;
      settings.faults.commit_then_500 = settings.faults.commit_then_lose = settings.faults.bad_crc = 0.035;
      settings.faults.throttle = 0.035;
      settings.faults.part_throttle = settings.faults.part_error = settings.faults.part_commit_then_error = 0.035;
      settings.lag = {.typical = 100ms, .longest = 2s, .slow = 0.3};
      store->model.configure(settings);
    }
    auto end = rig.run(kForEver);
    int runs = 1;
    for (; end.state != State::finished && runs < 200; ++runs) {
      clock.advance(1s);
      end = rig.run(kForEver);
    }
    ASSERT_EQ(end.state, State::finished) << end.error.message();
    for (TableStore* const store : {&from, &to}) {
      for (const auto& [name, times] : store->model.counters().faults) {
        faults += times;
      }
      store->model.configure({});
      store->model.clear_faults();
    }
    clock.advance(10s);
    // What nobody knows the end of is found by the next run.
    ASSERT_EQ(rig.run(kForEver).state, State::finished);
    clock.advance(10s);
    for (int round = 0; round < 30; ++round) {
      rig.consume();
      clock.advance(1s);
    }
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(rig.handled["M-" + std::to_string(i)], 1) << "M-" << i << ", seed " << seed << ", " << runs << " runs";
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  EXPECT_GT(faults, 10U * kSeeds) << "requests did fail";
}

}  // namespace
}  // namespace sluice::operate
