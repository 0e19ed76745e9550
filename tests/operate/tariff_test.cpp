// What writes are said to cost in either layout of a table, beside what the model of DynamoDB counts for them.

#include <gtest/gtest.h>

#include "dynamo/client.hpp"
#include "host/operate/bulk_run.hpp"
#include "host/operate/mover.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::operate {
namespace {

using namespace std::chrono_literals;
using config::Layout;
using queue::ChangeAction;
using queue::Half;

bool is_leased(const std::string& queue) { return queue.starts_with("leased"); }

/// In the layout that a queue's name tells.
queue::table::TableQueues::Make in_both_layouts(const Clock& clock) {
  queue::leased::LeasedOptions options{{.host = "h", .region = "eu-west-1"}};
  options.own_threads = false;
  return [plain = queue::dynamomq::in_dynamomq_tables({{.region = "eu-west-1"}}),
          leased = queue::leased::in_leased_tables(options, clock)](const auto& parts, const std::string& queue) {
    return (is_leased(queue) ? leased : plain)(parts, queue);
  };
}

/// "leased" and "leased2" in one leased table, "plain" and "plain2" in tables of DynamoMQ's layout.
class TariffTest : public ::testing::Test {
 protected:
  TariffTest() : model_(clock_, 1), transport_(model_, clock_), credentials_("HOST"), desk_(queues_) {
    const std::string one = queue::leased::LeasedLocation{}.table;
    for (const auto& spec : {queue::dynamodb::TableSpec{.table = one, .layout = queue::dynamodb::kLeasedLayout},
                             queue::dynamodb::TableSpec{.table = "plain"},
                             {.table = "plain2"}}) {
      const auto made = queue::dynamodb::create_queue_table(client_, spec, clock_, Deadline::never());
      EXPECT_TRUE(made) << made.error().message();
    }
  }

  static TableTariff tariff(const std::string& queue) {
    return {is_leased(queue) ? Layout::leased : Layout::dynamomq, queue};
  }

  void send(const std::string& queue, bool own_ids, std::size_t most) {
    std::vector<queue::NewMessage> batch(kMessages);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::string text(20 + i * (most - 20) / batch.size(), 'x');
      const bool json = i % 2 == 0;
      batch[i].id = own_ids ? "order-" + std::to_string(1'000 + i) : std::string();
      batch[i].body = json ? "{\"text\":\"" + text + "\",\"n\":[1,2.5,-3,null,true]}" : text;
      batch[i].content_type = json ? queue::kJson : queue::kTextPlain;
      batch[i].attributes = {{"tenant", "acme"}};
    }
    for (const auto& result : desk_.send(queue, batch, Deadline::never())) {
      ASSERT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
    }
    clock_.advance(1ms);
  }

  struct Units {
    double write = 0;
    double read = 0;
  };
  Units spent() {
    const auto counters = model_.counters();
    return {counters.write_units, counters.read_units};
  }

  /// Runs it dry and then in earnest; the one must have known what the other took.
  void expect_known(const std::string& queue, Half half, BulkWork work, const std::string& what) {
    BulkPlan plan;
    plan.half = half;
    plan.work = std::move(work);
    plan.tariff = tariff(queue);
    plan.dry_run = true;
    Units before = spent();
    BulkRun dry(desk_.oper(queue), clock_, plan);
    finish(dry);
    const Units looked{0, spent().read - before.read};
    ASSERT_EQ(spent().write, before.write);
    ASSERT_EQ(dry.count().done, kMessages) << what;
    plan.dry_run = false;
    before = spent();
    BulkRun real(desk_.oper(queue), clock_, plan);
    finish(real);
    ASSERT_EQ(real.count().done, kMessages) << what;
    const Units took{spent().write - before.write, spent().read - before.read};
    EXPECT_NEAR(dry.planned_cost().write_units, took.write, 0.02 * took.write) << what;
    EXPECT_NEAR(looked.read + dry.planned_cost().read_units, took.read, 0.03 * took.read + 4) << what;
    clock_.advance(1ms);
  }
  static void finish(BulkRun& run) {
    auto step = run.step();
    while (step.state == BulkRun::Step::State::more) {
      step = run.step();
    }
    ASSERT_EQ(step.state, BulkRun::Step::State::finished) << step.error.message();
  }

  /// Carries everything, in batches as a move does.
  void expect_known_move(const std::string& from, const std::string& to) {
    const auto from_board = *queues_.open_board(from);
    const auto to_board = *queues_.open_board(to);
    const auto page = desk_.list(from, {.limit = kMessages, .native = true, .consistent = true}, Deadline::never());
    ASSERT_TRUE(page);
    ASSERT_EQ(page->messages.size(), kMessages);
    cost::Spent planned;
    MoveBatch move_batch({desk_.oper(from), desk_.oper(to), *from_board, *to_board},
                         {.from = from, .from_place = "a", .to = to, .to_place = "b"});
    for (const queue::StoredMessage& record : page->messages) {
      planned += tariff(from).carry_out(record);
      planned += tariff(to).carry_in(record);
      move_batch.add(record, false);
    }
    const Units before = spent();
    for (int steps = 0; steps < 20; ++steps) {
      const auto ended = move_batch.step(Deadline::never());
      ASSERT_TRUE(ended) << ended.error().message();
      if (*ended) {
        break;
      }
    }
    for (const auto& outcome : move_batch.take_outcomes()) {
      ASSERT_EQ(outcome.fate, MoveBatch::Fate::carried) << outcome.error.message();
    }
    const Units took{spent().write - before.write, spent().read - before.read};
    EXPECT_NEAR(planned.write_units, took.write, 0.02 * took.write) << from << " to " << to;
    EXPECT_NEAR(planned.read_units, took.read, 0.03 * took.read + 8) << from << " to " << to;
  }

  static constexpr std::size_t kMessages = 50;
  test::FakeClock clock_;
  SeededRandom random_{1};
  test::model::Model model_;
  test::model::ModelTransport transport_;
  test::model::FixedCredentials credentials_;
  dynamo::Client client_{{{.region = "eu-west-1"}}, transport_, credentials_, clock_, random_};
  queue::table::TableQueues queues_{
      {.host = "h", .region = "eu-west-1"}, client_, clock_, random_, in_both_layouts(clock_)};
  test::Desk desk_;
};

TEST_F(TariffTest, ADryRunKnowsWhatChangesCostInALeasedTable) {
  const auto change = [](ChangeAction action) {
    return BulkWork(queue::Change{.id = {}, .action = action, .version = {}, .after = 10min});
  };
  for (const bool own_ids : {false, true}) {
    const std::string ids = own_ids ? ", own ids" : ", made ids";
    send("leased", own_ids, 5'000);
    expect_known("leased", Half::standard, change(ChangeAction::set_visibility), "visibility" + ids);
    clock_.advance(1h);
    expect_known("leased", Half::standard, change(ChangeAction::remove), "remove" + ids);
    send("leased", own_ids, 5'000);
    expect_known("leased", Half::standard,
                 std::vector<queue::ContentEdit>{{.path = {"attributes", "tenant"}, .json = "\"zeta\""}}, "edit" + ids);
    expect_known("leased", Half::standard, change(ChangeAction::dead_letter), "dead letter" + ids);
    expect_known("leased", Half::dlq, change(ChangeAction::redrive), "redrive" + ids);
    BulkRun run(desk_.oper("leased"), clock_, BulkPlan::removal_of_all(Half::standard));
    finish(run);
  }
}

TEST_F(TariffTest, ASmallMessageCostsWhatTheTableOfCostsSays) {
  queue::StoredMessage made;
  made.message.id = "2" + std::string(28, '7');
  made.message.body = std::string(700, 'x');
  queue::StoredMessage own = made;
  own.message.id = "order-1";
  const TableTariff leased = tariff("leased");
  EXPECT_EQ(leased.change(made, ChangeAction::remove).write_units, 1);
  EXPECT_EQ(leased.change(own, ChangeAction::remove).write_units, 2) << "and its alias";
  EXPECT_EQ(leased.change(own, ChangeAction::set_visibility).write_units, 1);
  EXPECT_EQ(leased.change(own, ChangeAction::redrive).write_units, 6);
  EXPECT_EQ(leased.carry_out(made).write_units, 2);
  EXPECT_DOUBLE_EQ(leased.hold(made).write_units, 1.64) << "a transaction, and a look at 8 shards for each 25";
  EXPECT_EQ(leased.carry_in(own).write_units, 5);
  EXPECT_EQ(leased.carry_in(made).write_units, 7) << "it has an alias too, and what its id says must be empty";
  const TableTariff dynamomq = tariff("plain");
  EXPECT_EQ(dynamomq.change(own, ChangeAction::remove).write_units, 2);
  EXPECT_EQ(dynamomq.carry_out(own).write_units, 4);
  EXPECT_EQ(dynamomq.hold(own).write_units, 0);
  EXPECT_EQ(dynamomq.carry_in(own).write_units, 4);
  EXPECT_EQ(TableTariff().carry_in(own).write_units, 0) << "a file is not billed";
}

TEST_F(TariffTest, AMoveIsPricedByTheLayoutsOfBothSides) {
  for (const bool own_ids : {true, false}) {
    for (const auto& [from, to] : {std::pair("plain", "leased"), std::pair("leased", "plain2"),
                                   std::pair("plain2", "plain"), std::pair("plain", "leased2")}) {
      if (desk_.stats({from, Half::standard}, Deadline::never())->total() == 0) {
        send(from, own_ids, 3'000);
        clock_.advance(1s);
      }
      expect_known_move(from, to);
      clock_.advance(1s);
    }
    BulkRun run(desk_.oper("leased2"), clock_, BulkPlan::removal_of_all(Half::standard));
    finish(run);
  }
}

TEST_F(TariffTest, WhatALeasedTableHasMadeKeepsItsIdElsewhere) {
  send("leased", false, 3'000);
  clock_.advance(1s);
  expect_known_move("leased", "leased2");
}

}  // namespace
}  // namespace sluice::operate
