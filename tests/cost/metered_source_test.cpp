// The real DynamoMQ store on the model of DynamoDB, under virtual time: what is put down to whom is what was consumed.
#include <gtest/gtest.h>

#include "host/cost/cost_book.hpp"
#include "host/cost/prices.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/forwarding_source.hpp"

namespace sluice::cost {
namespace {

using std::chrono_literals::operator""s;

dynamo::ClientOptions options_that_tell(std::function<void(const dynamo::CallRecord&)> observer) {
  dynamo::ClientOptions options{{.region = "us-east-1"}};
  options.observer = std::move(observer);
  return options;
}

class MeteredSourceTest : public testing::Test {
 protected:
  static config::HostConfig host_with(double write_units) {
    config::HostConfig host;
    host.cost.attribute = "tenant";
    host.queues["orders"].max_write_units = write_units;
    return host;
  }

  explicit MeteredSourceTest(double write_units = 0)
      : host_(host_with(write_units)),
        book_(host_, clock_),
        client_(options_that_tell([this](const dynamo::CallRecord& call) {
                  book_.spent(call.table, {1, call.capacity.read, call.capacity.write});
                  all_ += {1, call.capacity.read, call.capacity.write};
                }),
                transport_, credentials_, clock_, random_),
        queues_(
            queue::dynamomq::make_dynamomq_queues({{.host = "a", .region = "us-east-1"}}, client_, clock_, random_)) {
    EXPECT_TRUE(queue::dynamodb::create_queue_table(client_, {.table = "orders"}, clock_, soon()));
    sender_ = *queues_->open_sender("orders");
    source_ = metered(*queues_->open_source({"orders"}), book_, "billing", "orders");
  }

  Deadline soon() const { return Deadline::after(clock_, 10s); }

  void send(std::size_t count, const std::string& tenant, std::size_t bytes = 100) {
    std::vector<queue::NewMessage> messages(count);
    for (queue::NewMessage& message : messages) {
      message.body = std::string(bytes, 'x');
      if (!tenant.empty()) {
        message.attributes["tenant"] = tenant;
      }
    }
    for (const queue::SendResult& sent : sender_->send(messages, soon())) {
      ASSERT_EQ(sent.status, queue::SendStatus::sent);
    }
  }

  std::vector<queue::Delivery> claim(std::size_t most = 100) {
    auto claimed = source_->claim({.max = most, .visibility = 30s}, soon());
    EXPECT_TRUE(claimed);
    return claimed ? std::move(claimed->deliveries) : std::vector<queue::Delivery>();
  }

  void settle(const std::vector<queue::Delivery>& deliveries,
              queue::CompletionAction action = queue::CompletionAction::remove) {
    std::vector<queue::Completion> completions;
    completions.reserve(deliveries.size());
    for (const queue::Delivery& delivery : deliveries) {
      completions.push_back({.receipt = delivery.receipt, .action = action});
    }
    for (const queue::SettleResult& result : source_->settle(completions, soon())) {
      EXPECT_EQ(result.status, queue::SettleStatus::applied);
    }
  }

  static const CostView::Row* row(const CostView& view, const std::string& job) {
    for (const CostView::Row& one : view.rows) {
      if (one.job == job) {
        return &one;
      }
    }
    return nullptr;
  }
  Usage of_value(const std::string& value) const {
    for (const TopValues::Named& named : book_.view().values.values) {
      if (named.value == value) {
        return named.usage;
      }
    }
    return {};
  }

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::model::Model model_{clock_, 1};
  test::model::ModelTransport transport_{model_, clock_};
  test::model::FixedCredentials credentials_;
  const config::HostConfig host_;
  CostBook book_;
  Spent all_;  ///< what the client was told
  dynamo::Client client_;
  std::unique_ptr<queue::Queues> queues_;
  std::unique_ptr<queue::Sender> sender_;
  std::unique_ptr<queue::Source> source_;
};

TEST_F(MeteredSourceTest, TellsItsSourceWhatWasHandled) {
  struct Told final : test::ForwardingSource {
    Told(std::unique_ptr<queue::Source> source, std::vector<std::string>& told)
        : ForwardingSource(std::move(source)), ids(told) {}
    void handled(std::span<const queue::Receipt> receipts) override {
      for (const queue::Receipt& receipt : receipts) {
        ids.push_back(receipt.id);
      }
    }
    std::vector<std::string>& ids;
  };
  std::vector<std::string> ids;
  const auto source =
      metered(std::make_unique<Told>(*queues_->open_source({"orders"}), ids), book_, "billing", "orders");
  source->handled(std::vector<queue::Receipt>{{.id = "a"}, {.id = "b"}});
  EXPECT_EQ(ids, (std::vector<std::string>{"a", "b"}));
}

TEST_F(MeteredSourceTest, PutsEachUnitDownToSomebody) {
  send(100, "acme");
  settle(claim());
  const CostView view = book_.view();
  const auto* job = row(view, "billing");
  const auto* shared = row(view, std::string(kShared));
  ASSERT_NE(job, nullptr);
  ASSERT_NE(shared, nullptr);
  EXPECT_DOUBLE_EQ(job->total.spent.write_units + shared->total.spent.write_units, all_.write_units);
  EXPECT_DOUBLE_EQ(job->total.spent.read_units + shared->total.spent.read_units, all_.read_units);
  EXPECT_DOUBLE_EQ(job->total.spent.requests + shared->total.spent.requests, all_.requests);
  // A claim writes the record and its copy in the index, so does a deletion.
  EXPECT_DOUBLE_EQ(job->total.spent.write_units, 400);
  EXPECT_DOUBLE_EQ(shared->total.spent.write_units, 200) << "this test's own puts, which no job has made";
  EXPECT_EQ(job->total.messages, 100);
  EXPECT_EQ(job->total.kib, 100);
  EXPECT_EQ(job->hour.spent.write_units, 400);
}

TEST_F(MeteredSourceTest, TellsHowLongMessagesLayThereUntilTheyWereHandedOutFirst) {
  send(10, "acme", 900);
  clock_.advance(60s);
  const auto deliveries = claim();
  const Usage first = row(book_.view(), "billing")->total;
  EXPECT_NEAR(first.message_seconds, 600, 1);
  EXPECT_GT(first.kib_seconds, 600 * 900.0 / 1024);
  EXPECT_LT(first.kib_seconds, 600);
  EXPECT_EQ(first.kib, 10);
  EXPECT_EQ(first.indexed_kib, 20) << "a record of DynamoMQ's table takes more than its message";
  settle(deliveries, queue::CompletionAction::retry);
  clock_.advance(60s);
  EXPECT_EQ(claim().size(), 10U);
  EXPECT_EQ(row(book_.view(), "billing")->total.message_seconds, first.message_seconds)
      << "the second attempt's wait is not known";
}

TEST_F(MeteredSourceTest, ForgetsAfterAnHourWhatTheHourCost) {
  send(10, "acme");
  settle(claim());
  clock_.advance(std::chrono::hours(2));
  const CostView view = book_.view();
  EXPECT_EQ(row(view, "billing")->hour.spent.write_units, 0);
  EXPECT_EQ(row(view, "billing")->total.spent.write_units, 40);
}

TEST_F(MeteredSourceTest, SharesACallAmongItsMessagesByTheirBegunKib) {
  send(10, "small");
  send(10, "large", 2500);
  send(5, "");
  settle(claim());
  const Usage small = of_value("small");
  const Usage large = of_value("large");
  const Usage none = of_value(std::string(kNoValue));
  EXPECT_EQ(small.messages, 10);
  EXPECT_EQ(small.kib, 10);
  EXPECT_EQ(large.kib, 30);
  EXPECT_NEAR(large.spent.write_units, 3 * small.spent.write_units, 1e-6);
  EXPECT_NEAR(none.spent.write_units, small.spent.write_units / 2, 1e-6);
  const Usage job = row(book_.view(), "billing")->total;
  EXPECT_NEAR(small.spent.write_units + large.spent.write_units + none.spent.write_units, job.spent.write_units, 1e-6);
  EXPECT_NEAR(small.spent.requests + large.spent.requests + none.spent.requests, job.spent.requests, 1e-6);
}

TEST_F(MeteredSourceTest, AClaimThatFindsNothingIsNobodysMessage) {
  EXPECT_TRUE(claim().empty());
  const Usage idle = of_value(std::string(kIdle));
  EXPECT_GT(idle.spent.read_units, 0);
  EXPECT_EQ(idle.messages, 0);
  EXPECT_EQ(idle.spent.read_units, row(book_.view(), "billing")->total.spent.read_units);
}

TEST_F(MeteredSourceTest, AnExtensionIsItsMessages) {
  send(4, "acme");
  const auto claimed = claim();
  const double before = of_value("acme").spent.write_units;
  std::vector<queue::Receipt> receipts;
  receipts.reserve(claimed.size());
  for (const queue::Delivery& delivery : claimed) {
    receipts.push_back(delivery.receipt);
  }
  source_->extend(receipts, 60s, soon());
  EXPECT_NEAR(of_value("acme").spent.write_units - before, 8, 1e-6);
}

class BudgetedSourceTest : public MeteredSourceTest {
 protected:
  static constexpr double kBudget = 20;
  BudgetedSourceTest() : MeteredSourceTest(kBudget) {}
};

// Drains as fast as it may; the model's own count is the truth.
TEST_F(BudgetedSourceTest, KeepsTheHostBelowItAndDrainsAllTheSame) {
  constexpr std::size_t kMessages = 200;
  send(kMessages, "acme");
  UnitBudget& budget = *book_.budget("orders");
  const double before = model_.counters().write_units;
  const SteadyTime start = clock_.steady_now();
  std::size_t done = 0;
  std::size_t waits = 0;
  while (done < kMessages) {
    ASSERT_LT(clock_.steady_now() - start, std::chrono::minutes(5));
    auto claimed = source_->claim({.max = 100, .visibility = 300s}, soon());
    ASSERT_TRUE(claimed);
    if (claimed->deliveries.empty()) {
      ASSERT_TRUE(claimed->next_due);
      clock_.advance(std::max<Duration>(*claimed->next_due, std::chrono::milliseconds(1)));
      ++waits;
      continue;
    }
    if (const SteadyTime at = budget.ready_at(UnitBudget::Call::settlement, clock_.steady_now());
        at > clock_.steady_now()) {
      clock_.advance(at - clock_.steady_now());
    }
    settle(claimed->deliveries);
    done += claimed->deliveries.size();
    const double seconds = std::chrono::duration<double>(clock_.steady_now() - start).count();
    // A second's worth was saved up, and one call of ten messages may go beyond.
    EXPECT_LE(model_.counters().write_units - before, kBudget * (seconds + 1) + 40);
  }
  EXPECT_GT(waits, 10U);
  const double seconds = std::chrono::duration<double>(clock_.steady_now() - start).count();
  EXPECT_NEAR(seconds, kMessages * 4 / kBudget, 5) << "it uses what it may";
}

TEST_F(BudgetedSourceTest, WhatNoJobHasCausedIsNotHeldAgainstIt) {
  book_.spent("orders", {1, 1e6, 1e6});
  send(1, "acme");
  EXPECT_EQ(claim().size(), 1U);
}

TEST_F(BudgetedSourceTest, ExtensionsDoNotWait) {
  send(10, "acme");
  const auto claimed = claim();
  ASSERT_FALSE(claimed.empty());
  book_.budget("orders")->charge({1, 0, 1e6}, clock_.steady_now());
  EXPECT_TRUE(claim().empty());
  const std::vector<queue::Receipt> receipts{claimed.front().receipt};
  const auto extended = source_->extend(receipts, 60s, soon());
  EXPECT_EQ(extended.front().status, queue::SettleStatus::applied);
}

}  // namespace
}  // namespace sluice::cost
