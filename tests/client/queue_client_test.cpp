// What DynamoMQ's own tests leave out: receipts, batches, paging, races.
#include <atomic>
#include <limits>
#include <thread>

#include "tests/client/client_rig.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace sluice::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class QueueClientTest : public ClientTest {
 protected:
  ReceivedMessage receive_one(const ReceiveOptions& options = {}) {
    auto received = client().receive(options);
    EXPECT_TRUE(received) << (received ? "" : received.error().message());
    return received ? std::move(*received) : ReceivedMessage();
  }
};

TEST_P(QueueClientTest, SendsEachOfABatchByItself) {
  std::vector<NewMessage> batch;
  for (int i = 0; i < 60; ++i) {
    batch.push_back({.id = "m-" + std::to_string(i % 58), .data = "x"});
  }
  batch[30].id.clear();
  const auto results = client().send(batch);
  ASSERT_THAT(results, SizeIs(60));
  std::size_t sent = 0;
  for (const auto& result : results) {
    sent += result ? 1 : 0;
  }
  EXPECT_EQ(sent, 57U);
  EXPECT_EQ(error_name(results[30]), "IDNotProvidedError");
  EXPECT_EQ(client().queue_stats()->total_messages_in_queue, 57U);
  EXPECT_THAT(client().send(std::span<const NewMessage>()), IsEmpty());
}

TEST_P(QueueClientTest, SendsTheFirstOfOneIdInABatch) {
  const std::vector<NewMessage> batch{
      {.id = "A", .data = "1"}, {.id = "B", .data = "2"}, {.id = "A", .data = "3"}, {.id = "A", .data = "4"}};
  const auto results = client().send(batch);
  EXPECT_EQ(results[0].value_or("none"), "A");
  EXPECT_EQ(results[1].value_or("none"), "B");
  EXPECT_EQ(error_name(results[2]), "IDDuplicatedError");
  EXPECT_EQ(results[3].value_or("none"), "none");
  EXPECT_EQ(get("A").data, "1");
}

// More than any request may hold; each by itself is allowed.
TEST_P(QueueClientTest, SendsABatchOfTheLargestMessages) {
  std::vector<NewMessage> batch;
  for (int i = 0; i < 26; ++i) {
    // Control characters are the widest on their way.
    batch.push_back({.id = "m-" + std::to_string(i), .data = std::string(200'000, i % 2 == 0 ? 'x' : '\x01')});
  }
  for (const auto& result : client().send(batch)) {
    ASSERT_TRUE(result) << result.error().message();
  }
  EXPECT_EQ(client().queue_stats()->total_messages_in_queue, 26U);
  EXPECT_EQ(get("m-25").data, batch[25].data);
}

TEST_P(QueueClientTest, KeepsEveryByteOfDataAndAttributes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
  }
  ASSERT_TRUE(client().send({.id = "binary",
                             .data = bytes,
                             .content_type = "application/octet-stream",
                             .attributes = {{"k", "v"}, {"", "empty"}},
                             .group = "g"}));
  ASSERT_TRUE(client().send({.id = "other", .data = bytes, .content_type = "image/png"}));
  ASSERT_TRUE(client().send({.id = "number", .data = "12345678901234567890.125", .content_type = "application/json"}));
  EXPECT_EQ(get("binary").data, bytes);
  EXPECT_EQ(get("binary").content_type, kOctetStream);
  EXPECT_EQ(get("binary").attributes, (Attributes{{"k", "v"}, {"", "empty"}}));
  EXPECT_EQ(get("binary").group, "g");
  EXPECT_EQ(get("other").data, bytes);
  EXPECT_EQ(get("other").content_type, "image/png");
  EXPECT_EQ(get("number").data, "12345678901234567890.125");
}

TEST_P(QueueClientTest, ASameIdIsTakenFromOneOfManySenders) {
  std::atomic<int> sent = 0;
  std::atomic<int> duplicates = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 25; ++i) {
          const auto result = client().send({.id = "m-" + std::to_string(i), .data = std::to_string(t)});
          sent += result ? 1 : 0;
          duplicates += error_name(result) == "IDDuplicatedError" ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(sent, 25);
  EXPECT_EQ(duplicates, 75);
}

TEST_P(QueueClientTest, ReceivesManyAtOnceOldestFirst) {
  for (int i = 0; i < 5; ++i) {
    seed_ready("A-" + std::to_string(i), i * 1s);
  }
  at(10s);
  const auto first = client().receive(3);
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_THAT(*first, SizeIs(3));
  EXPECT_EQ((*first)[0].message.id, "A-0");
  EXPECT_EQ((*first)[2].message.id, "A-2");
  EXPECT_THAT(*client().receive(0), IsEmpty());
  EXPECT_THAT(*client().receive(10), SizeIs(2));
  EXPECT_THAT(*client().receive(10), IsEmpty());
}

TEST_P(QueueClientTest, ReceivesFromTheDlqByItself) {
  seed_ready("alive");
  seed_dlq("dead");
  at(1s);
  EXPECT_EQ(receive_one({.queue_type = QueueType::dlq}).message.id, "dead");
  EXPECT_EQ(error_name(client().receive({.queue_type = QueueType::dlq})), "EmptyQueueError");
  const ReceivedMessage alive = receive_one({.visibility_timeout = -1s});
  EXPECT_EQ(alive.message.id, "alive");
  EXPECT_EQ(alive.message.invisible_until_at, kT0 + 31s) << "zero and negative are 30 s";
}

TEST_P(QueueClientTest, AStaleReceiptChangesNothing) {
  seed_ready("A-101");
  const ReceivedMessage first = receive_one({.visibility_timeout = 1s});
  at(2s);
  const ReceivedMessage second = receive_one();
  EXPECT_EQ(second.message.receive_count, 2U);
  const char* lost = "ConditionalCheckFailedError";
  EXPECT_EQ(error_name(client().delete_message(first.receipt)), lost);
  EXPECT_EQ(error_name(client().delete_message("A-101", first.message.version)), lost);
  EXPECT_EQ(error_name(client().change_visibility(first.receipt, 1h)), lost);
  EXPECT_EQ(error_name(client().change_visibility(first.receipt, 0s)), lost);
  EXPECT_EQ(error_name(client().move_to_dlq(first.receipt)), lost);
  EXPECT_EQ(get("A-101").version, second.message.version);
  EXPECT_TRUE(client().delete_message(second.receipt));
  EXPECT_FALSE(client().get("A-101")->has_value());
}

TEST_P(QueueClientTest, AVisibilityThatIsExtendedHasANewReceipt) {
  seed_ready("A-101");
  const ReceivedMessage received = receive_one({.visibility_timeout = 10s});
  at(5s);
  const auto extended = client().change_visibility(received.receipt, 1h);
  ASSERT_TRUE(extended) << extended.error().message();
  EXPECT_EQ(get("A-101").invisible_until_at, kT0 + 5s + 1h);
  EXPECT_EQ(error_name(client().delete_message(received.receipt)), "ConditionalCheckFailedError");
  EXPECT_TRUE(client().delete_message(*extended));
}

TEST_P(QueueClientTest, TheLongestVisibilityTellsTheRightTimes) {
  seed_ready("A-101");
  at(5s);
  const ReceivedMessage received = receive_one({.visibility_timeout = Duration::max()});
  EXPECT_EQ(received.message.received_at, kT0 + 5s);
  EXPECT_EQ(received.message.updated_at, kT0 + 5s);
  EXPECT_EQ(get("A-101").received_at, kT0 + 5s);
  EXPECT_EQ(get("A-101").invisible_until_at, received.message.invisible_until_at);
  at(24h * 365 * 50);
  EXPECT_EQ(error_name(client().receive()), "EmptyQueueError");
  EXPECT_TRUE(client().change_visibility("A-101", Duration::max()));
  EXPECT_TRUE(client().send({.id = "later", .data = "x", .delay = Duration::max()}));
  EXPECT_EQ(error_name(client().receive()), "EmptyQueueError");
  EXPECT_TRUE(client().send({.id = "now", .data = "x", .delay = Duration::min()}));
  EXPECT_EQ(receive_one().message.id, "now");
}

TEST_P(QueueClientTest, AsksForAnyNumberAtOnce) {
  seed_ready("A-101");
  EXPECT_THAT(client().list({.size = std::numeric_limits<int>::max()})->messages, SizeIs(1));
  EXPECT_THAT(*client().receive(SIZE_MAX), SizeIs(1));
}

TEST_P(QueueClientTest, ATimeoutOfAnyLengthIsOne) {
  QueueClient patient = client_with({.timeout = Duration::max()});
  EXPECT_TRUE(patient.send({.id = "A-101", .data = "x"}));
  const auto received = patient.receive();
  ASSERT_TRUE(received) << received.error().message();
  EXPECT_TRUE(patient.delete_message(received->receipt));
  QueueClient hasty = client_with({.timeout = Duration::min()});
  const auto late = hasty.send({.id = "A-202", .data = "x"});
  ASSERT_EQ(error_name(late), "DynamoDBAPIError");
  EXPECT_TRUE(late.error().transient());
}

TEST_P(QueueClientTest, AMessageGivenUpIsDueAtOnce) {
  seed_ready("A-101");
  const ReceivedMessage received = receive_one();
  ASSERT_TRUE(client().change_visibility(received.receipt, -5s));
  EXPECT_EQ(receive_one().message.receive_count, 2U);
}

TEST_P(QueueClientTest, DeletesManyReceiptsOfBothHalves) {
  seed_ready("A-1");
  seed_ready("A-2", 1s);
  seed_dlq("D-1");
  at(5s);
  const auto standard = client().receive(2);
  ASSERT_THAT(*standard, SizeIs(2));
  const ReceivedMessage dead = receive_one({.queue_type = QueueType::dlq});
  Receipt stale = (*standard)[1].receipt;
  stale.version += 7;
  const std::vector<Receipt> receipts{dead.receipt, (*standard)[0].receipt, Receipt{}, stale};
  const auto results = client().delete_messages(receipts);
  ASSERT_THAT(results, SizeIs(4));
  EXPECT_TRUE(results[0]);
  EXPECT_TRUE(results[1]);
  EXPECT_EQ(error_name(results[2]), "IDNotProvidedError");
  EXPECT_EQ(error_name(results[3]), "ConditionalCheckFailedError");
  EXPECT_FALSE(client().get("D-1")->has_value());
  EXPECT_TRUE(client().get("A-2")->has_value());
}

TEST_P(QueueClientTest, DeletesByVersionOnlyThatVersion) {
  seed_ready("A-101");
  EXPECT_EQ(error_name(client().delete_message("A-101", 2)), "ConditionalCheckFailedError");
  EXPECT_EQ(error_name(client().delete_message("B-101", 1)), "IDNotFoundError");
  EXPECT_TRUE(client().delete_message("A-101", 1));
  EXPECT_FALSE(client().get("A-101")->has_value());
}

TEST_P(QueueClientTest, ADeadLetterCarriesItsReason) {
  seed_ready("A-101");
  seed_ready("B-202", 1s);
  at(5s);
  const ReceivedMessage received = receive_one();
  ASSERT_TRUE(client().move_to_dlq(received.receipt, "no such customer"));
  const auto by_id = client().move_to_dlq("B-202", "no such customer");
  ASSERT_TRUE(by_id) << by_id.error().message();
  for (const std::string id : {"A-101", "B-202"}) {
    const Message message = get(id);
    ASSERT_TRUE(message.failure) << id;
    EXPECT_EQ(message.failure->error, "no such customer");
    EXPECT_EQ(message.failure->failed_at, kT0 + 5s);
    EXPECT_EQ(message.queue_type, QueueType::dlq);
  }
  const auto stats = client().dlq_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  ASSERT_THAT(stats->errors, SizeIs(1));
  EXPECT_EQ(stats->errors[0].error, "no such customer");
  EXPECT_EQ(stats->errors[0].count, 2U);
}

TEST_P(QueueClientTest, RedriveRefusesWhatHasJustBeenReceivedInTheDlq) {
  seed_dlq("A-101");
  at(1s);
  receive_one({.queue_type = QueueType::dlq});
  EXPECT_EQ(error_name(client().redrive("A-101")), "InvalidStateTransitionError");
  at(1min);
  EXPECT_TRUE(client().redrive("A-101"));
}

TEST_P(QueueClientTest, FifoIsHeldByARetryAndByADelayAtTheHead) {
  QueueClient fifo = client_with({.use_fifo = true});
  seed_ready("A-1");
  seed_ready("A-2", 1s);
  at(10s);
  const auto head = fifo.receive();
  ASSERT_TRUE(head) << head.error().message();
  ASSERT_TRUE(fifo.change_visibility("A-1", 1min));
  EXPECT_EQ(error_name(fifo.receive()), "EmptyQueueError") << "the head waits for its retry, and so does the queue";
  EXPECT_TRUE(client().receive()) << "a client without the option is not held back";
  EXPECT_THAT(*fifo.receive(10), IsEmpty());
  at(2min);
  const auto again = fifo.receive();
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->message.id, "A-1");
}

TEST_P(QueueClientTest, DelayedOnesAreCountedAsProcessingAndByThemselves) {
  seed_ready("A-1");
  ASSERT_TRUE(client().send({.id = "later", .data = "x", .delay = 1h}));
  const auto stats = client().queue_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_EQ(stats->total_messages_in_queue, 2U);
  EXPECT_EQ(stats->total_messages_in_queue_ready, 1U);
  EXPECT_EQ(stats->total_messages_in_queue_processing, 1U);
  EXPECT_EQ(stats->total_messages_in_queue_delayed, 1U);
  EXPECT_THAT(stats->first_100_ids_in_queue_processing, ElementsAre("later"));
}

TEST_P(QueueClientTest, StatsShowAHundredIdsAndCountThemAll) {
  std::vector<NewMessage> batch;
  for (int i = 0; i < 300; ++i) {
    batch.push_back({.id = "m-" + std::to_string(i), .data = "x"});
  }
  client().send(batch);
  const auto stats = client().queue_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_THAT(stats->first_100_ids_in_queue, SizeIs(100));
  EXPECT_EQ(stats->total_messages_in_queue, 300U);
}

TEST_P(QueueClientTest, ListGoesThroughBothHalvesPageByPage) {
  for (int i = 0; i < 7; ++i) {
    seed_ready("A-" + std::to_string(i), i * 1s);
    seed_dlq("D-" + std::to_string(i), i * 1s);
  }
  std::vector<std::string> ids;
  ListOptions options{.size = 3};
  int pages = 0;
  do {
    const auto page = client().list(options);
    ASSERT_TRUE(page) << page.error().message();
    for (const Message& message : page->messages) {
      ids.push_back(message.id);
    }
    options.cursor = page->next;
    ASSERT_LT(++pages, 10);
  } while (!options.cursor.empty());
  EXPECT_THAT(ids, ::testing::UnorderedElementsAre("A-0", "A-1", "A-2", "A-3", "A-4", "A-5", "A-6", "D-0", "D-1", "D-2",
                                                   "D-3", "D-4", "D-5", "D-6"));
  EXPECT_THAT(client().list({.size = 100, .queue_type = QueueType::dlq})->messages, SizeIs(7));
}

TEST_P(QueueClientTest, ReplaceWritesWhatGetGave) {
  ASSERT_TRUE(client().send({.id = "A-101", .data = "x", .attributes = {{"k", "v"}}, .group = "g"}));
  ASSERT_TRUE(client().move_to_dlq("A-101", "why"));
  const Message before = get("A-101");
  ASSERT_TRUE(client().delete_message("A-101"));
  ASSERT_TRUE(client().replace(before));
  const Message after = get("A-101");
  EXPECT_EQ(after.version, before.version);
  EXPECT_EQ(after.sent_at, before.sent_at);
  EXPECT_EQ(after.attributes, before.attributes);
  EXPECT_EQ(after.group, before.group);
  EXPECT_EQ(after.failure->error, "why");
  EXPECT_EQ(after.failure->failed_at, before.failure->failed_at);
}

SLUICE_ON_BOTH_STORES(QueueClientTest);

// What an operation costs where requests are paid for. Those by id read the message again for the caller, which is one
// more than DynamoMQ's; those by receipt are one request, which it has none of.
TEST(QueueClientCost, IsCountedInRequests) {
  if (test::shared_emulator() == nullptr) {
    GTEST_SKIP() << test::Emulator::absence();
  }
  const SystemClock clock;
  test::EmulatedHost host(clock, "cost", 1);
  const std::string table = test::fresh_table_name("cost");
  test::make_table(host.client(), table, clock);
  QueueClient client = make_client(host.desk().queues(), clock, host.random(), table);
  // Of a call that must succeed.
  const auto requests = [&](const auto& call) {
    host.usage().reset();
    const auto result = call();
    EXPECT_TRUE(result) << (result ? "" : result.error().message());
    return host.usage().requests();
  };
  EXPECT_EQ(requests([&] { return client.send({.id = "A-1", .data = "x"}); }), 1U) << "theirs: 2";
  EXPECT_EQ(requests([&] { return client.get("A-1"); }), 1U);
  EXPECT_LE(requests([&] { return client.change_visibility("A-1", 0s); }), 3U) << "theirs: 2";
  EXPECT_LE(requests([&] { return client.move_to_dlq("A-1"); }), 3U) << "theirs: 2";
  EXPECT_LE(requests([&] { return client.redrive("A-1"); }), 3U) << "theirs: 2";
  Receipt receipt;
  EXPECT_LE(requests([&] {
              auto received = client.receive();
              receipt = received ? received->receipt : Receipt{};
              return received;
            }),
            2U)
      << "theirs: 2";
  EXPECT_EQ(requests([&] {
              auto extended = client.change_visibility(receipt, 1min);
              receipt = extended ? *extended : Receipt{};
              return extended;
            }),
            1U);
  EXPECT_EQ(requests([&] { return client.delete_message(receipt); }), 1U) << "theirs: 1, unconditional";
}

}  // namespace
}  // namespace sluice::client
