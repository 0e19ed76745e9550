// What SQS's clients know: deduplication, unique keys, waiting for messages, and the limits.

#include <atomic>
#include <thread>

#include "tests/client/client_rig.hpp"

namespace sluice::client {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class SqsRules : public ClientTest {
 protected:
  bool on_sqlite() const { return std::string(GetParam().name) == "Sqlite"; }
};

TEST_P(SqsRules, ADuplicateIsAnsweredWithTheFirstOnesId) {
  const NewMessage first{.id = "A-1", .data = "x", .dedup_id = "order 7"};
  const NewMessage second{.id = "A-2", .data = "x", .dedup_id = "order 7"};
  EXPECT_EQ(client().send(first).value_or("none"), "A-1");
  EXPECT_EQ(client().send(second).value_or("none"), "A-1");
  EXPECT_FALSE(client().get("A-2").value());
  clock().advance(5min);
  EXPECT_EQ(client().send(second).value_or("none"), "A-2");
  const NewMessage bad{.id = "A-3", .data = "x", .dedup_id = std::string(10'000, 'k')};
  EXPECT_EQ(error_name(client().send(bad)), "MarshalingAttributeError");
}

TEST_P(SqsRules, ByContentWhereTheClientSaysSo) {
  auto content = client_with({.dedup_by_content = true, .dedup_window = 1h});
  EXPECT_EQ(content.send({.id = "A-1", .data = "same"}).value_or("none"), "A-1");
  EXPECT_EQ(content.send({.id = "A-2", .data = "same", .attributes = {{"k", "v"}}}).value_or("none"), "A-1");
  EXPECT_EQ(content.send({.id = "A-3", .data = "other"}).value_or("none"), "A-3");
  EXPECT_EQ(content.send({.id = "A-4", .data = "same", .dedup_id = "its own"}).value_or("none"), "A-4");
  clock().advance(59min);
  EXPECT_EQ(content.send({.id = "A-5", .data = "same"}).value_or("none"), "A-1");
  EXPECT_EQ(client().send({.id = "A-6", .data = "same"}).value_or("none"), "A-6") << "another client does not";
}

TEST_P(SqsRules, AUniqueKeyAndAProducer) {
  Producer producer(client());
  EXPECT_EQ(producer.produce("x", {.id = "A-1", .unique_key = "report"}).value_or("none"), "A-1");
  EXPECT_EQ(producer.produce("x", {.id = "A-2", .unique_key = "report"}).value_or("none"), "A-1");
  const auto received = client().receive();
  ASSERT_TRUE(received);
  ASSERT_TRUE(client().delete_message(received->receipt));
  EXPECT_EQ(producer.produce("x", {.id = "A-3", .unique_key = "report"}).value_or("none"), "A-3");
}

TEST_P(SqsRules, AReceiveThatIsStoppedReturnsAtOnce) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(error_name(client().receive({.wait_time = 20s, .stop = stop.get_token()})), "EmptyQueueError");
  ASSERT_TRUE(client().send({.id = "A-1", .data = "x"}));
  EXPECT_TRUE(client().receive({.wait_time = 20s, .stop = stop.get_token()})) << "what is there is received";
  EXPECT_EQ(error_name(client().receive({.wait_time = 21s})), "InvalidParameterValueError");
  EXPECT_EQ(client().receive({.wait_time = 21s}).error().message(),
            "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.");
}

TEST_P(SqsRules, NoReceiptIsExtendedBeyondTheLongestLease) {
  ASSERT_TRUE(client().send({.id = "A-1", .data = "x"}));
  auto receipt = client().receive()->receipt;
  const auto beyond = client().change_visibility(receipt, 12h + 1s);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().message(),
            "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message "
            "is beyond the limit [43200 seconds]");
  for (int i = 0; i < 11; ++i) {
    auto extended = client().change_visibility(receipt, 2h);
    if (!extended) {
      EXPECT_EQ(error_name(extended), "InvalidParameterValueError");
      EXPECT_EQ(i, 11);
      break;
    }
    receipt = *extended;
    clock().advance(1h);
  }
  EXPECT_EQ(error_name(client().change_visibility(receipt, 2h)), "InvalidParameterValueError");
  EXPECT_TRUE(client().change_visibility(receipt, 1s));
}

TEST_P(SqsRules, ALeaseOfAnyLengthRefusesNothing) {
  auto patient = client_with({.max_lease = Duration::max()});
  ASSERT_TRUE(client().send({.id = "A-1", .data = "x"}));
  const auto received = patient.receive();
  ASSERT_TRUE(received);
  clock().advance(1s);
  const auto longer = patient.change_visibility(received->receipt, 1min);
  ASSERT_TRUE(longer) << longer.error().message();
  EXPECT_TRUE(patient.change_visibility(*longer, Duration::max() - 1h));
  clock().advance(20h);
  EXPECT_EQ(error_name(client().receive()), "EmptyQueueError");
}

TEST_P(SqsRules, ToZeroMakesItVisibleAtOnce) {
  ASSERT_TRUE(client().send({.id = "A-1", .data = "x"}));
  const auto first = client().receive();
  ASSERT_TRUE(first);
  ASSERT_TRUE(client().change_visibility(first->receipt, Duration::zero()));
  clock().advance(1s);
  const auto again = client().receive();
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->message.receive_count, 2U);
  EXPECT_EQ(error_name(client().change_visibility(first->receipt, 10s)), "ConditionalCheckFailedError");
}

TEST_P(SqsRules, TheLimitInFlightIsSaid) {
  auto limited = client_with({.max_in_flight = 2});
  for (const std::string id : {"A", "B", "C"}) {
    ASSERT_TRUE(client().send({.id = id, .data = "x"}));
  }
  const auto received = limited.receive(10);
  if (!on_sqlite()) {
    ASSERT_FALSE(received);
    EXPECT_THAT(received.error().message(), HasSubstr("max_in_flight"));
    return;
  }
  ASSERT_TRUE(received);
  EXPECT_THAT(*received, SizeIs(2));
  const auto refused = limited.receive();
  EXPECT_EQ(error_name(refused), "OverLimitError");
  EXPECT_THAT(refused.error().message(), HasSubstr("The specified action violates a limit"));
  EXPECT_TRUE(refused.error().transient());
  ASSERT_TRUE(client().delete_message((*received)[0].receipt));
  EXPECT_TRUE(limited.receive());
}

SLUICE_ON_BOTH_STORES(SqsRules);

// On the machine's clock: the wait ends with the send, whichever of the two comes first.
TEST(LongPoll, EndsWhenSomethingComes) {
  const auto of_test = sqlite_of_test();
  SystemClock clock;
  SeededRandom random(7);
  QueueClient client = make_client(of_test->queues(), clock, random, "orders");
  std::atomic<bool> received = false;
  std::jthread receiver([&] {
    const auto got = client.receive({.wait_time = 20s});
    received = got && got->message.id == "A-1";
  });
  ASSERT_TRUE(client.send({.id = "A-1", .data = "x"}));
  receiver.join();
  EXPECT_TRUE(received);
}

TEST(LongPoll, EndsWhenItIsStoppedMeanwhile) {
  const auto of_test = sqlite_of_test();
  SystemClock clock;
  SeededRandom random(7);
  QueueClient client = make_client(of_test->queues(), clock, random, "orders");
  std::stop_source stop;
  std::jthread receiver(
      [&] { EXPECT_EQ(error_name(client.receive({.wait_time = 20s, .stop = stop.get_token()})), "EmptyQueueError"); });
  stop.request_stop();
  receiver.join();
}

}  // namespace
}  // namespace sluice::client
