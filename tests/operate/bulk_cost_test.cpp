// What bulk runs ask DynamoDB for: counted, not timed; and whether a dry run knows it beforehand.

#include "host/operate/bulk_run.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using operate::BulkRun;
using queue::ChangeAction;
using State = BulkRun::Step::State;

constexpr std::size_t kMessages = 2'000;

class BulkCost : public StoreOnEmulator {
 protected:
  /// Bodies between 20 bytes and `most`, JSON and text by turns.
  void send_varied(std::size_t count, std::size_t most) {
    std::vector<queue::NewMessage> batch(count);
    for (std::size_t index = 0; index < count; ++index) {
      const std::string text(20 + index * (most - 20) / count, 'x');
      const bool json = index % 2 == 0;
      batch[index].id = "v" + std::to_string(index);
      batch[index].body = json ? "{\"text\":\"" + text + "\",\"n\":[1,2.5,-3,null,true]}" : text;
      batch[index].content_type = json ? queue::kJson : queue::kTextPlain;
      batch[index].attributes = {{"tenant", "acme"}};
    }
    for (const auto& result : desk().send("orders", batch, soon())) {
      ASSERT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
    }
    clock().advance(1ms);
  }

  void dead_letter_all(const queue::QueueAddress& from) {
    operate::BulkPlan plan = plan_for(ChangeAction::dead_letter, from);
    std::get<queue::Change>(plan.work).failure = {
        .error = "refused", .handler = "bill", .host = "h", .attempts = 5, .failed_at = clock().wall_now()};
    ASSERT_EQ(run(std::move(plan)).count.failed, 0U);
    clock().advance(1ms);
  }

  static operate::BulkPlan plan_for(operate::BulkWork work, const queue::QueueAddress& address) {
    operate::BulkPlan plan;
    plan.half = address.half;
    plan.tariff = {config::Layout::dynamomq, address.queue};
    plan.work = std::move(work);
    return plan;
  }
  static operate::BulkPlan plan_for(ChangeAction action, const queue::QueueAddress& address) {
    return plan_for(queue::Change{.id = {}, .action = action, .version = {}, .after = 10min}, address);
  }

  struct Ended {
    operate::BulkCount count;
    cost::Spent planned;
    double read = 0;
    double write = 0;
    double requests = 0;
  };

  Ended run(operate::BulkPlan plan) {
    host().usage().reset();
    BulkRun run(desk().oper("orders"), clock(), std::move(plan));
    auto step = run.step();
    while (step.state == State::more) {
      step = run.step();
    }
    EXPECT_EQ(step.state, State::finished) << step.error.message();
    const auto capacity = host().usage().capacity();
    return {run.count(), run.planned_cost(), capacity.read, capacity.write,
            static_cast<double>(host().usage().requests())};
  }

  /// Runs it dry and then in earnest; the one must have known what the other took.
  void expect_known_cost(operate::BulkPlan plan) {
    plan.dry_run = true;
    const Ended dry = run(plan);
    EXPECT_EQ(dry.write, 0.0);
    EXPECT_GT(dry.count.done, 0U);
    plan.dry_run = false;
    const Ended real = run(plan);
    EXPECT_EQ(real.count.done, dry.count.done);
    EXPECT_NEAR(dry.planned.write_units, real.write, 0.02 * real.write);
    EXPECT_NEAR(dry.read + dry.planned.read_units, real.read, 0.02 * real.read + 1);
    clock().advance(1ms);
  }
};

TEST_F(BulkCost, APurgeTakesAtMostATenthOfARequestAMessage) {
  send(kMessages, 600);
  operate::BulkPlan plan = plan_for(ChangeAction::remove, standard());
  plan.unconditional = true;
  const Ended ended = run(std::move(plan));
  EXPECT_EQ(ended.count.done, kMessages);
  EXPECT_LE(ended.requests / kMessages, 0.05);
  EXPECT_LE(ended.write / kMessages, 2.0);
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 0U);
}

TEST_F(BulkCost, AFilteredPurgeTakesNoMore) {
  send(kMessages, 600);
  operate::BulkPlan plan = plan_for(ChangeAction::remove, standard());
  plan.filter = *operate::Filter::parse("receive_count = 0");
  const Ended ended = run(std::move(plan));
  EXPECT_EQ(ended.count.done, kMessages);
  EXPECT_LE(ended.requests / kMessages, 0.05);
  EXPECT_LE(ended.write / kMessages, 2.0);
}

TEST_F(BulkCost, ARedriveTakesAtMostATenthOfARequestAMessage) {
  send(kMessages, 600);
  dead_letter_all(standard());
  const Ended ended = run(plan_for(ChangeAction::redrive, dlq()));
  EXPECT_EQ(ended.count.done, kMessages);
  EXPECT_LE(ended.requests / kMessages, 0.05);
  EXPECT_LE(ended.write / kMessages, 3.0);
  EXPECT_EQ(desk().stats(standard(), soon())->total(), kMessages);
  EXPECT_EQ(desk().stats(dlq(), soon())->total(), 0U);
}

TEST_F(BulkCost, ADryRunKnowsWhatItWouldCost) {
  send_varied(200, 5'000);
  expect_known_cost(plan_for(ChangeAction::set_visibility, standard()));
  expect_known_cost(plan_for(ChangeAction::dead_letter, standard()));
  expect_known_cost(plan_for(ChangeAction::redrive, dlq()));
  expect_known_cost(plan_for(ChangeAction::delay, standard()));
  clock().advance(1h);
  expect_known_cost(
      plan_for(std::vector<queue::ContentEdit>{{.path = {"attributes", "tenant"}, .json = "\"zeta\""}}, standard()));
  expect_known_cost(plan_for(ChangeAction::remove, standard()));
}

}  // namespace
}  // namespace sluice::test
