// Numbers 28 to 40 and 45 to 48 of DynamoMQ's own tests: stats, get, replace, list, status.
#include "tests/client/client_rig.hpp"

namespace sluice::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Stats : public ClientTest {};

TEST_P(Stats, N28_OfAnEmptyQueue) {
  const auto stats = client().queue_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_THAT(stats->first_100_ids_in_queue, IsEmpty());
  EXPECT_THAT(stats->first_100_ids_in_queue_processing, IsEmpty());
  EXPECT_EQ(stats->total_messages_in_queue, 0U);
  EXPECT_EQ(stats->total_messages_in_queue_processing, 0U);
  EXPECT_EQ(stats->total_messages_in_queue_ready, 0U);
}

TEST_P(Stats, N29_OfOneReady) {
  seed_ready("A-101");
  const auto stats = client().queue_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_THAT(stats->first_100_ids_in_queue, ElementsAre("A-101"));
  EXPECT_THAT(stats->first_100_ids_in_queue_processing, IsEmpty());
  EXPECT_EQ(stats->total_messages_in_queue, 1U);
  EXPECT_EQ(stats->total_messages_in_queue_processing, 0U);
  EXPECT_EQ(stats->total_messages_in_queue_ready, 1U);
}

TEST_P(Stats, N30_OfOneProcessing) {
  seed_processing("A-101");
  at(10s);
  const auto stats = client().queue_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_THAT(stats->first_100_ids_in_queue, ElementsAre("A-101"));
  EXPECT_THAT(stats->first_100_ids_in_queue_processing, ElementsAre("A-101"));
  EXPECT_EQ(stats->total_messages_in_queue, 1U);
  EXPECT_EQ(stats->total_messages_in_queue_processing, 1U);
  EXPECT_EQ(stats->total_messages_in_queue_ready, 0U);
}

TEST_P(Stats, N31_InTheOrderOfSending) {
  seed_ready("D-404", 3s);
  seed_ready("C-303", 2s);
  seed_processing("B-202", 1s);
  seed_processing("A-101");
  at(10s);
  const auto stats = client().queue_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_THAT(stats->first_100_ids_in_queue, ElementsAre("A-101", "B-202", "C-303", "D-404"));
  EXPECT_THAT(stats->first_100_ids_in_queue_processing, ElementsAre("A-101", "B-202"));
  EXPECT_EQ(stats->total_messages_in_queue, 4U);
  EXPECT_EQ(stats->total_messages_in_queue_processing, 2U);
  EXPECT_EQ(stats->total_messages_in_queue_ready, 2U);
}

TEST_P(Stats, N32_OfADlqWithNothingInIt) {
  seed_ready("A-101");
  seed_processing("B-202");
  const auto stats = client().dlq_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_THAT(stats->first_100_ids_in_queue, IsEmpty());
  EXPECT_EQ(stats->total_messages_in_dlq, 0U);
}

TEST_P(Stats, N33_OfThreeDeadLetters) {
  seed_ready("A-101");
  seed_dlq("D-404", 2s);
  seed_dlq("C-303", 1s);
  seed_dlq("B-202");
  at(10s);
  const auto stats = client().dlq_stats();
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_THAT(stats->first_100_ids_in_queue, ElementsAre("B-202", "C-303", "D-404"));
  EXPECT_EQ(stats->total_messages_in_dlq, 3U);
}

SLUICE_ON_BOTH_STORES(Stats);

class Get : public ClientTest {};

TEST_P(Get, N34_OfWhatIsAbsentIsNothing) {
  const auto found = client().get("A-101");
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_FALSE(found->has_value());
}

TEST_P(Get, N35_GivesTheWholeRecord) {
  auto stored = record("A-101", 0s);
  stored.version = 7;
  stored.message.attempt = 3;
  stored.received_at = kT0 + 1s;
  stored.invisible_until = kT0 + 31s;
  stored.updated_at = kT0 + 1s;
  stored.message.sent_at = kT0 + 500ms;
  stored.half = queue::Half::dlq;
  stored.message.attributes = {{"tenant", "acme"}};
  stored.message.group = "g";
  stored.failure = {.error = "no", .handler = "till", .host = "worker-a", .attempts = 2, .failed_at = kT0 + 2s};
  seed(stored);
  const Message message = get("A-101");
  EXPECT_EQ(message.id, "A-101");
  EXPECT_EQ(message.data, "{\"n\":1}");
  EXPECT_EQ(message.content_type, kJson);
  EXPECT_EQ(message.version, 7);
  EXPECT_EQ(message.receive_count, 3U);
  EXPECT_EQ(message.received_at, kT0 + 1s);
  EXPECT_EQ(message.invisible_until_at, kT0 + 31s);
  EXPECT_EQ(message.created_at, kT0);
  EXPECT_EQ(message.updated_at, kT0 + 1s);
  EXPECT_EQ(message.sent_at, kT0 + 500ms);
  EXPECT_EQ(message.queue_type, QueueType::dlq);
  EXPECT_EQ(message.attributes, (Attributes{{"tenant", "acme"}}));
  EXPECT_EQ(message.group, "g");
  ASSERT_TRUE(message.failure);
  EXPECT_EQ(message.failure->error, "no");
  EXPECT_EQ(message.failure->handler, "till");
  EXPECT_EQ(message.failure->host, "worker-a");
  EXPECT_EQ(message.failure->attempts, 2U);
  EXPECT_EQ(message.failure->failed_at, kT0 + 2s);
}

SLUICE_ON_BOTH_STORES(Get);

class Replace : public ClientTest {};

// Deviates: one write. Theirs deletes first, and a crash in between loses the message.
TEST_P(Replace, N36_OfAnExistingId) {
  seed_ready("A-101");
  at(10s);
  Message message = get("A-101");
  message.data = "{\"n\":2}";
  message.version = 5;
  message.queue_type = QueueType::dlq;
  const auto replaced = client().replace(message);
  ASSERT_TRUE(replaced) << replaced.error().message();
  const Message after = get("A-101");
  EXPECT_EQ(after.data, "{\"n\":2}");
  EXPECT_EQ(after.version, 5);
  EXPECT_EQ(after.queue_type, QueueType::dlq);
  EXPECT_EQ(after.created_at, kT0);
  EXPECT_EQ(client().queue_stats()->total_messages_in_queue, 0U);
  EXPECT_EQ(client().dlq_stats()->total_messages_in_dlq, 1U);
}

TEST_P(Replace, N37_OfANewId) {
  seed_ready("A-101");
  Message message = get("A-101");
  message.id = "B-202";
  ASSERT_TRUE(client().replace(message));
  EXPECT_EQ(get("B-202").data, "{\"n\":1}");
  EXPECT_EQ(client().queue_stats()->total_messages_in_queue, 2U);
}

SLUICE_ON_BOTH_STORES(Replace);

class List : public ClientTest {
 protected:
  // Updated in the opposite order of sending, two of them dead letters.
  void seed_ten() {
    for (int i = 0; i < 10; ++i) {
      auto stored = record("A-" + std::to_string(i), i * 1s);
      stored.updated_at = kT0 + (100 - i) * 1s;
      stored.half = i < 2 ? queue::Half::dlq : queue::Half::standard;
      seed(std::move(stored));
    }
  }
};

TEST_P(List, N38_OfAnEmptyTable) {
  const auto list = client().list();
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_THAT(list->messages, IsEmpty());
  EXPECT_THAT(list->next, IsEmpty());
}

// Deviates: sorted by time, where theirs sorts the text of the time; the same for what we write.
TEST_P(List, N39_IsSortedByUpdatedAt) {
  seed_ten();
  at(200s);
  const auto list = client().list({.size = 10});
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->messages.size(), 10U);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(list->messages[static_cast<std::size_t>(i)].id, "A-" + std::to_string(9 - i));
  }
}

// Deviates: there is more to be had by the cursor; theirs ends with the first page.
TEST_P(List, N40_IsOfTenUnlessSaidOtherwise) {
  seed_ten();
  seed_ready("B-1", 20s);
  at(200s);
  const auto list = client().list();
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->messages.size(), 10U);
  const auto rest = client().list({.cursor = list->next});
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_EQ(rest->messages.size(), 1U);
  EXPECT_THAT(rest->next, IsEmpty());
  EXPECT_EQ(client().list({.size = 0})->messages.size(), 10U);
  EXPECT_EQ(client().list({.size = -1})->messages.size(), 10U);
}

SLUICE_ON_BOTH_STORES(List);

Status status_at(std::optional<Time> invisible_until, Time now) {
  Message message;
  message.invisible_until_at = invisible_until;
  return message.status(now);
}

TEST(ConformanceStatus, N45_WithoutATimeIsReady) { EXPECT_EQ(status_at(std::nullopt, kT0), Status::ready); }
TEST(ConformanceStatus, N46_BeforeIsProcessing) { EXPECT_EQ(status_at(kT0 + 1s, kT0), Status::processing); }
TEST(ConformanceStatus, N47_AfterIsReady) { EXPECT_EQ(status_at(kT0, kT0 + 1s), Status::ready); }
TEST(ConformanceStatus, N48_EqualIsProcessing) {
  EXPECT_EQ(status_at(kT0, kT0), Status::processing);
  EXPECT_EQ(status_at(kT0, kT0 + 1ns), Status::ready);
}

}  // namespace
}  // namespace sluice::client
