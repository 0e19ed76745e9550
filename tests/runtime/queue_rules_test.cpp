// What jobs ask of the order of messages, held against what the stores of their queues can do.

#include <gtest/gtest.h>

#include "host/runtime/job_plan.hpp"

namespace sluice::runtime {
namespace {

class QueueRules : public ::testing::Test {
 protected:
  QueueRules() {
    host_.stores["aws"].kind = config::StoreKind::dynamodb;
    host_.queues["table"].store = "aws";
  }

  static config::JobConfig job(const std::string& queue) {
    config::JobConfig made;
    made.name = "job of " + queue;
    made.queue = queue;
    made.queue_place = {"jobs.d/a.toml", 2, 9};
    return made;
  }
  std::string only_error(const std::vector<config::JobConfig>& jobs) {
    const auto errors = refused_rules(host_, jobs);
    EXPECT_EQ(errors.size(), 1U);
    return errors.size() == 1 ? errors.front().text() : std::string();
  }
  void expect_refused(const config::JobConfig& wanted, const std::string& phrase) {
    const std::string text = only_error({wanted});
    EXPECT_TRUE(text.starts_with("jobs.d/a.toml:2:9: queue \"table\" lies in a DynamoDB table, ")) << text;
    EXPECT_NE(text.find(phrase), std::string::npos) << text;
    config::JobConfig elsewhere = wanted;
    elsewhere.queue = "file";
    elsewhere.queues.clear();
    EXPECT_TRUE(refused_rules(host_, {elsewhere}).empty()) << "SQLite can do all of it";
  }

  config::HostConfig host_;
};

TEST_F(QueueRules, ATableKeepsNoGroups) {
  config::JobConfig wanted = job("table");
  wanted.order = config::Order::group;
  expect_refused(wanted, "use order = \"queue\", a queue for each group, layout = \"leased\", or a SQLite store");
  wanted.order = config::Order::none;
  wanted.fair = true;
  expect_refused(wanted, "has no turns by group");
  expect_refused(wanted, "layout = \"leased\"");
}

TEST_F(QueueRules, ATableHoldsNothingBehindADeadLetter) {
  config::JobConfig wanted = job("table");
  wanted.order = config::Order::queue;
  EXPECT_TRUE(refused_rules(host_, {wanted}).empty());
  wanted.on_dead_letter = config::OnDeadLetter::hold;
  expect_refused(wanted, "use on_dead_letter = \"continue\"");
}

TEST_F(QueueRules, ATableHasNoPriorities) {
  config::JobConfig wanted = job("table");
  wanted.priorities.critical = 20;
  expect_refused(wanted, "one job with queues = [\"urgent:6\", \"bulk:1\"]");
  wanted.priorities = {};
  EXPECT_TRUE(refused_rules(host_, {wanted}).empty());
  wanted.weighs_priorities = true;
  expect_refused(wanted, "has no priorities");
  expect_refused(wanted, "layout = \"leased\"");
}

TEST_F(QueueRules, AScheduleIsHeldToWhatItsQueueTakes) {
  config::JobConfig wanted = job("file");
  config::ScheduleConfig schedule;
  schedule.name = "nightly";
  schedule.queue = "file";
  schedule.place = {"jobs.d/a.toml", 9, 1};
  schedule.priority = "high";
  wanted.schedules.push_back(schedule);
  EXPECT_TRUE(refused_rules(host_, {wanted}).empty());
  wanted.schedules[0].queue = "table";
  const std::string text = only_error({wanted});
  EXPECT_TRUE(text.starts_with("jobs.d/a.toml:9:1: queue \"table\" lies in a DynamoDB table, which has no prior"))
      << text;
  wanted.queue = "outbox:orders";
  EXPECT_EQ(only_error({wanted}), text) << "whatever its job draws from";
  wanted.schedules[0].priority = "normal";
  EXPECT_TRUE(refused_rules(host_, {wanted}).empty());
}

TEST_F(QueueRules, EachOfSeveralQueuesIsLookedAt) {
  config::JobConfig wanted = job("file");
  wanted.queues = {{"file", 2}, {"table", 1}};
  EXPECT_TRUE(refused_rules(host_, {wanted}).empty());
  wanted.order = config::Order::group;
  expect_refused(wanted, "where groups cannot be kept");
}

TEST_F(QueueRules, JobsOnOneQueueWantTheSameOrder) {
  config::JobConfig first = job("file");
  config::JobConfig second = job("file");
  second.name = "another";
  second.order = config::Order::group;
  EXPECT_NE(only_error({first, second}).find("want different orders of it: order = \"none\", and order = \"group\""),
            std::string::npos);
  first.order = config::Order::group;
  EXPECT_TRUE(refused_rules(host_, {first, second}).empty());
  second.on_dead_letter = config::OnDeadLetter::hold;
  EXPECT_NE(only_error({first, second}).find("order = \"group\" and on_dead_letter = \"hold\"; give both the same"),
            std::string::npos)
      << "a group that one of them holds the other would let go on";
  second.source = config::Source::dlq;
  EXPECT_TRUE(refused_rules(host_, {first, second}).empty()) << "dead letters have an order of their own";
}

}  // namespace
}  // namespace sluice::runtime
