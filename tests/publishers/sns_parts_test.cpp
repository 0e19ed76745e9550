// How messages are put into batches, step by step; and the small parts beside.

#include <gmock/gmock.h>

#include "protocol.hpp"
#include "publisher.hpp"
#include "publishing/publishing.hpp"
#include "service.hpp"

namespace sluice::publishers {
namespace {

using sns::BatchAnswer;
using sns::Failure;
using sns::PublishQueue;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const sns::Topic kOrders = *sns::parse_topic_arn("arn:aws:sns:eu-west-1:123456789012:orders");
const sns::Topic kOther = *sns::parse_topic_arn("arn:aws:sns:eu-west-1:123456789012:bills");
constexpr SteadyTime kStart{1h};

sns::Entry entry_of(const std::string& body) { return {body, {}, {}, {}}; }
BatchAnswer all_good(std::size_t count) { return {sns::BatchResults(count), false}; }
BatchAnswer refused(std::size_t count, const Failure& failure) { return {sns::BatchResults(count, failure), true}; }

class PublishQueueTest : public ::testing::Test {
 protected:
  std::vector<PublishQueue::Ticket> add(int count, SteadyTime now, const sns::Topic& topic = kOrders) {
    std::vector<PublishQueue::Ticket> tickets;
    tickets.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      tickets.push_back(queue.add(topic, entry_of("x"), now));
    }
    return tickets;
  }

  PublishQueue queue{{.linger = 5ms, .longest_wait = 50ms, .attempts = 3}};
};

TEST_F(PublishQueueTest, SendsAFullBatchAtOnceAndWaitsForMoreOtherwise) {
  add(13, kStart);
  const auto full = queue.next(kStart);
  ASSERT_TRUE(full);
  EXPECT_EQ(full->tickets.size(), 10U);
  EXPECT_FALSE(queue.next(kStart + 6ms)) << "the first batch is under way, and its answer lets more come";
  EXPECT_EQ(queue.wake(kStart), kStart + 50ms);
  queue.answered(*full, all_good(10), kStart + 6ms, 0);
  ASSERT_TRUE(queue.next(kStart + 6ms)) << "nothing more came";
}

TEST_F(PublishQueueTest, LingersAfterTheLastMessage) {
  add(1, kStart);
  EXPECT_EQ(queue.wake(kStart), kStart + 5ms);
  add(1, kStart + 4ms);
  EXPECT_FALSE(queue.next(kStart + 8ms));
  const auto batch = queue.next(kStart + 9ms);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->tickets.size(), 2U);
  EXPECT_EQ(queue.wake(kStart + 9ms), SteadyTime::max());
}

TEST_F(PublishQueueTest, NeverWaitsLongerThanItMay) {
  for (auto at = 0ms; at < 40ms; at += 4ms) {
    add(at == 36ms ? 0 : 1, kStart + at);
    EXPECT_FALSE(queue.next(kStart + at)) << at.count();
  }
  add(10, kStart, kOther);
  ASSERT_TRUE(queue.next(kStart + 36ms)) << "a full batch of another topic is not held up";
  PublishQueue slow({.linger = 1h, .longest_wait = 50ms, .attempts = 3});
  slow.add(kOrders, entry_of("x"), kStart);
  EXPECT_FALSE(slow.next(kStart + 49ms));
  EXPECT_TRUE(slow.next(kStart + 50ms));
}

TEST_F(PublishQueueTest, StopsABatchBeforeItIsTooLarge) {
  for (int i = 0; i < 3; ++i) {
    queue.add(kOrders, entry_of(std::string(100 * 1024, 'x')), kStart);
  }
  EXPECT_EQ(queue.next(kStart)->tickets.size(), 2U);
  EXPECT_FALSE(queue.next(kStart));
}

// With far more messages than are out at once, a request carries ten of them but for the last ones.
TEST_F(PublishQueueTest, NeedsAtMostElevenRequestsForAHundredMessages) {
  constexpr int kMessages = 10'000;
  for (const int workers : {16, 64, 100, 256}) {
    PublishQueue crowd({.linger = 5ms, .longest_wait = 50ms, .attempts = 3});
    SteadyTime now = kStart;
    int brought = 0;
    int finished = 0;
    int requests = 0;
    std::deque<std::pair<SteadyTime, PublishQueue::Batch>> under_way;
    while (finished < kMessages) {
      for (; brought < kMessages && brought - finished < workers; ++brought) {
        crowd.add(kOrders, entry_of("x"), now);
      }
      while (auto batch = crowd.next(now)) {
        ++requests;
        under_way.emplace_back(now + 20ms, std::move(*batch));
      }
      now = std::min(crowd.wake(now), under_way.empty() ? SteadyTime::max() : under_way.front().first);
      while (!under_way.empty() && under_way.front().first <= now) {
        const auto& batch = under_way.front().second;
        finished += static_cast<int>(crowd.answered(batch, all_good(batch.tickets.size()), now, 0).size());
        under_way.pop_front();
      }
    }
    EXPECT_LE(requests, kMessages * 11 / 100) << workers << " workers";
    EXPECT_GE(requests, kMessages / 10);
  }
}

TEST_F(PublishQueueTest, RepeatsOnlyTheEntriesThatFailed) {
  const auto tickets = add(3, kStart);
  const auto batch = queue.next(kStart + 5ms);
  BatchAnswer answer = all_good(3);
  answer.results[1] = Failure{"InternalError", "", true};
  const auto finished = queue.answered(*batch, answer, kStart + 10ms, 0);
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_FALSE(finished[0]->failure);
  EXPECT_FALSE(queue.next(kStart + 34ms));
  EXPECT_EQ(queue.wake(kStart + 34ms), kStart + 35ms) << "half of 50 ms, where chance is 0";
  const auto again = queue.next(kStart + 35ms);
  ASSERT_TRUE(again);
  EXPECT_THAT(again->tickets, ElementsAre(tickets[1]));
}

TEST_F(PublishQueueTest, LetsWhatIsRepeatedWaitForNobody) {
  PublishQueue patient({.linger = 1h, .longest_wait = 2h, .attempts = 3});
  for (int i = 0; i < 10; ++i) {
    patient.add(kOrders, entry_of("x"), kStart);
  }
  BatchAnswer answer = all_good(10);
  answer.results[3] = Failure{"InternalError", "", true};
  patient.answered(*patient.next(kStart), answer, kStart, 1);
  EXPECT_EQ(patient.wake(kStart), kStart + 50ms);
  EXPECT_TRUE(patient.next(kStart + 50ms));
}

TEST_F(PublishQueueTest, GivesUpAfterItsAttempts) {
  add(1, kStart);
  SteadyTime now = kStart;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    now += 10s;
    const auto batch = queue.next(now);
    ASSERT_TRUE(batch) << attempt;
    const auto finished = queue.answered(*batch, refused(1, {"Throttled", "slow down", true}), now, 1);
    ASSERT_EQ(finished.size(), attempt == 3 ? 1U : 0U);
    if (attempt == 3) {
      EXPECT_EQ(finished[0]->failure->text(), "Throttled: slow down");
    }
  }
}

// One entry may bring its batch down: each is then tried alone, and only the bad one fails.
TEST_F(PublishQueueTest, FindsTheEntryThatABatchWasRefusedFor) {
  const auto tickets = add(3, kStart);
  const auto batch = queue.next(kStart + 5ms);
  EXPECT_TRUE(queue.answered(*batch, refused(3, {"InvalidParameter", "", false}), kStart + 6ms, 0).empty());
  for (std::size_t i = 0; i < 3; ++i) {
    const auto alone = queue.next(kStart + 6ms);
    ASSERT_TRUE(alone);
    EXPECT_THAT(alone->tickets, ElementsAre(tickets[i]));
    const auto finished =
        queue.answered(*alone, i == 1 ? refused(1, {"InvalidParameter", "", false}) : all_good(1), kStart + 7ms, 0);
    ASSERT_EQ(finished.size(), 1U);
    EXPECT_EQ(finished[0]->failure.has_value(), i == 1);
  }
}

TEST_F(PublishQueueTest, TakesARefusalOfTheTopicForAllAtOnce) {
  add(3, kStart);
  const auto batch = queue.next(kStart + 5ms);
  EXPECT_EQ(queue.answered(*batch, refused(3, {"NotFound", "", false}), kStart, 0).size(), 3U);
  EXPECT_EQ(queue.wake(kStart), SteadyTime::max());
}

TEST_F(PublishQueueTest, ForgetsWhatNobodyWaitsFor) {
  const auto tickets = add(2, kStart);
  queue.abandon(tickets[0]);
  const auto batch = queue.next(kStart + 5ms);
  EXPECT_THAT(batch->tickets, ElementsAre(tickets[1]));
  queue.abandon(tickets[1]);
  EXPECT_TRUE(queue.answered(*batch, all_good(1), kStart, 0).empty());
}

TEST_F(PublishQueueTest, GivesUpWhatFailedAndWaitsButNotWhatIsNew) {
  const auto tickets = add(1, kStart);
  EXPECT_FALSE(queue.give_up(tickets[0]));
  const auto batch = queue.next(kStart + 5ms);
  EXPECT_FALSE(queue.give_up(tickets[0])) << "it is under way";
  queue.answered(*batch, refused(1, {"Throttled", "", true}), kStart, 0);
  ASSERT_TRUE(queue.give_up(tickets[0]));
  EXPECT_EQ(queue.wake(kStart), SteadyTime::max());
}

TEST(SnsTopic, ReadsArnsAndNothingThatCouldBecomeAnAddress) {
  EXPECT_EQ(kOrders.region, "eu-west-1");
  EXPECT_FALSE(kOrders.is_fifo());
  EXPECT_TRUE(sns::parse_topic_arn("arn:aws-cn:sns:cn-north-1:123456789012:a_b-c.fifo")->is_fifo());
  for (const char* text :
       {"arn:aws:sns:eu-west-1@evil.example:123456789012:a", "arn:aws:sns:eu-west-1.evil:123456789012:a",
        "arn:aws:sns:evil.example/:123456789012:a", "arn:aws:sns::123456789012:a", "arn:aws:sqs:eu-west-1:1:a",
        "arn:aws:sns:eu-west-1:123456789012:a:b", "arn:aws:sns:eu-west-1:123456789012:", "rn:aws:sns:eu-west-1:1:a",
        "arn:aws:sns:eu-west-1:1:a b", "orders", ""}) {
    EXPECT_FALSE(sns::parse_topic_arn(text)) << text;
  }
}

TEST(SnsEntry, GivesFifoTopicsIdsThatSnsTakes) {
  const sns::Topic fifo = *sns::parse_topic_arn("arn:aws:sns:eu-west-1:123456789012:orders.fifo");
  const auto make = [&](const std::string& aggregate, const std::string& id, const sns::EntryRules& rules = {}) {
    return sns::make_entry(fifo, "x", aggregate, id, {}, rules);
  };
  const auto plain = std::get<sns::Entry>(make("1:1", "shop/outbox:orders/42"));
  EXPECT_EQ(plain.group, "1:1");
  EXPECT_EQ(plain.deduplication, "shop/outbox:orders/42");
  EXPECT_TRUE(sns::is_fifo_id(std::string(128, '~')));
  const auto hashed = std::get<sns::Entry>(make("a b", std::string(129, 'x')));
  EXPECT_EQ(hashed.group, "c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65");
  EXPECT_EQ(hashed.deduplication.size(), 64U);
  EXPECT_EQ(hashed.deduplication, std::get<sns::Entry>(make("a", std::string(129, 'x'))).deduplication);
  EXPECT_THAT(std::get<sns::BadEntry>(make("a b", "1", {.hash_groups = false})).reason, HasSubstr("can be no group"));
  EXPECT_THAT(std::get<sns::BadEntry>(make("", "1")).reason, HasSubstr("the topic is FIFO"));
}

TEST(SnsEntry, LeavesTheGroupOutOfStandardTopicsUnlessAsked) {
  const auto entry = std::get<sns::Entry>(sns::make_entry(kOrders, "x", "a", "1", {}, {}));
  EXPECT_EQ(entry.group + entry.deduplication, "");
  EXPECT_EQ(std::get<sns::Entry>(sns::make_entry(kOrders, "x", "a", "1", {}, {.group_on_standard = true})).group, "a");
  EXPECT_EQ(std::get<sns::Entry>(sns::make_entry(kOrders, "x", "", "1", {}, {.group_on_standard = true})).group, "");
}

TEST(SnsEntry, RefusesWhatSnsWouldRefuse) {
  const auto reason = [](const std::string& body, std::vector<std::pair<std::string, std::string>> attributes = {}) {
    const auto made = sns::make_entry(kOrders, body, "", "1", std::move(attributes), {});
    const auto* bad = std::get_if<sns::BadEntry>(&made);
    return bad == nullptr ? "" : bad->reason;
  };
  EXPECT_EQ(reason(std::string(262144, 'x')), "");
  EXPECT_THAT(reason(std::string(262145, 'x')), HasSubstr("262145 bytes"));
  EXPECT_THAT(reason(std::string(262140, 'x'), {{"Event", "made"}}), HasSubstr("262155 bytes"));
  EXPECT_THAT(reason(""), HasSubstr("empty"));
  EXPECT_THAT(reason("a\xff"), HasSubstr("not UTF-8"));
}

TEST(SnsEndpoints, AreOfTheTopicsRegion) {
  EXPECT_EQ(sns::Endpoints{}.url("eu-west-1"), "https://sns.eu-west-1.amazonaws.com");
  EXPECT_EQ(sns::Endpoints{}.url("cn-north-1"), "https://sns.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ((sns::Endpoints{{.use_fips = true, .use_dual_stack = true}}.url("us-east-1")),
            "https://sns-fips.us-east-1.api.aws");
  EXPECT_EQ((sns::Endpoints{{.use_dual_stack = true}}.url("cn-north-1")),
            "https://sns.cn-north-1.api.amazonwebservices.com.cn");
  EXPECT_EQ((sns::Endpoints{{.endpoint = "http://127.0.0.1:1"}}.url("us-east-1")), "http://127.0.0.1:1");
}

TEST(Reminder, IsDueOnceAWhileForEachThingAndNeverForTooMany) {
  using publishing::Reminder;
  constexpr Reminder::Time kNow{1h};
  Reminder reminder(10min, 2);
  EXPECT_TRUE(reminder.due("row 1", kNow));
  EXPECT_FALSE(reminder.due("row 1", kNow + 9min));
  EXPECT_TRUE(reminder.due("row 2", kNow + 9min));
  EXPECT_FALSE(reminder.due("row 3", kNow + 9min)) << "two can be remembered";
  EXPECT_TRUE(reminder.due("row 1", kNow + 10min));
  EXPECT_FALSE(reminder.due("row 2", kNow + 18min));
  EXPECT_TRUE(reminder.due("row 3", kNow + 30min));
}

TEST(Patterns, FitWholeTexts) {
  EXPECT_TRUE(publishing::matches("order.*", "order.created"));
  EXPECT_TRUE(publishing::matches("*", ""));
  EXPECT_TRUE(publishing::matches("*.a*b", "x.a.aab"));
  EXPECT_TRUE(publishing::matches("", ""));
  EXPECT_FALSE(publishing::matches("order", "order.created"));
  EXPECT_FALSE(publishing::matches("order.*x", "order.created"));
  EXPECT_FALSE(publishing::matches("", "a"));
}

}  // namespace
}  // namespace sluice::publishers
