// What the store asks DynamoDB for: counted, not timed. These are budgets.

#include "host/stores/table/item_values.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;

class StoreCost : public StoreOnEmulator {};

TEST_F(StoreCost, LifeOfAMessageStaysWithinItsBudget) {
  constexpr std::size_t kMessages = 1'200;
  host().usage().reset();
  for (std::size_t lot = 0; lot < kMessages / 100; ++lot) {
    send(100, 600, "lot" + std::to_string(lot) + "-");
  }
  std::size_t removed = 0;
  while (removed < kMessages) {
    const auto claims = claim(50);
    ASSERT_FALSE(claims.empty());
    removed += applied(settle(desk(), claims, CompletionAction::remove));
  }
  const auto capacity = host().usage().capacity();
  EXPECT_LE(capacity.write / kMessages, 6.0);
  EXPECT_LE(capacity.read / kMessages, 0.2);
  EXPECT_LE(static_cast<double>(host().usage().requests()) / kMessages, 0.2);
}

/// What docs/run/deploying.md says of messages that fail.
TEST_F(StoreCost, OfAMessageThatFailsIsWhatItsFailuresWeigh) {
  constexpr std::size_t kMessages = 25;
  send(kMessages, 100);
  std::vector<double> units;
  for (int attempt = 1; attempt <= 6; ++attempt) {
    host().usage().reset();
    auto claims = claim(kMessages);
    ASSERT_EQ(claims.size(), kMessages);
    std::vector<queue::Completion> completions;
    completions.reserve(claims.size());
    for (const queue::Delivery& delivery : claims) {
      completions.push_back(
          {.receipt = delivery.receipt,
           .action = attempt < 6 ? CompletionAction::retry : CompletionAction::dead_letter,
           .delay = 1s,
           .failure = {.error = "connection refused: payments.example:443, order 4711-" + std::to_string(attempt),
                       .handler = "charge-card",
                       .host = "worker-a.example",
                       .attempts = static_cast<std::uint32_t>(attempt),
                       .failed_at = clock().wall_now(),
                       .wait = 1s,
                       .took = 120ms}});
    }
    ASSERT_EQ(applied(desk().settle(standard(), completions, soon())), kMessages);
    units.push_back(host().usage().capacity().write / kMessages);
    clock().advance(2s);
  }
  // A claim and a failure write the record and its copy in the index; above 1 KB each of these costs two units. The
  // last one also takes the copy out of one half of the index and puts it into the other.
  EXPECT_THAT(units, testing::ElementsAre(4.0, 4.0, 4.0, 4.0, 8.0, 10.0));
}

TEST_F(StoreCost, OfACheckpointIsWhatTheRecordWeighs) {
  send(2, 100);
  const auto claims = claim(2);
  ASSERT_EQ(claims.size(), 2U);
  queue::Source& source = desk().source(standard());
  host().usage().reset();
  ASSERT_EQ(source.checkpoint(claims[0].receipt, "12/100", nullptr, soon()).status, queue::SettleStatus::applied);
  EXPECT_EQ(host().usage().capacity().write, 2.0) << "the record, and its copy in the index";
  host().usage().reset();
  ASSERT_EQ(source.checkpoint(claims[1].receipt, std::string(3'000, 'x'), nullptr, soon()).status,
            queue::SettleStatus::applied);
  EXPECT_EQ(host().usage().capacity().write, 8.0);
  EXPECT_EQ(host().usage().capacity().read, 0.0);
}

TEST_F(StoreCost, ACheckpointWakesNobodyWhoWaitsForTheNextOfASequence) {
  send(2, 100);
  const auto source = *desk().queues().open_source(standard());
  int woken = 0;
  source->start({.on_ready = [&woken] { ++woken; }});
  const auto claimed = source->claim({.max = 1, .visibility = 30s, .rules = {.order = queue::Order::queue}}, soon());
  ASSERT_TRUE(claimed) << claimed.error().message();
  ASSERT_EQ(claimed->deliveries.size(), 1U);
  queue::Receipt receipt = claimed->deliveries[0].receipt;
  const auto stored = source->checkpoint(receipt, "12/100", nullptr, soon());
  ASSERT_EQ(stored.status, queue::SettleStatus::applied) << stored.error.message();
  EXPECT_EQ(woken, 0) << "each look is a read of the index";
  receipt.version = stored.version;
  const queue::Completion done{.receipt = receipt};
  ASSERT_EQ(applied(source->settle(std::span(&done, 1), soon())), 1U);
  EXPECT_EQ(woken, 1);
}

TEST_F(StoreCost, AThousandMessagesThatAreWorkedOffSlowlyAreReadOnce) {
  constexpr std::size_t kMessages = 1'000;
  send(kMessages, 600);
  host().usage().reset();
  std::size_t removed = 0;
  while (removed < kMessages) {
    const auto claims = claim(8);
    ASSERT_FALSE(claims.empty());
    clock().advance(240ms);
    removed += applied(settle(desk(), claims, CompletionAction::remove));
  }
  std::printf("1,000 messages: %.3f RCU, %.3f requests a message\n", host().usage().capacity().read / kMessages,
              static_cast<double>(host().usage().requests()) / kMessages);
  EXPECT_LE(host().usage().capacity().read / kMessages, 0.2);
}

TEST_F(StoreCost, UnderABacklogWhatComesToLieBeforeItIsSeenWithinASecond) {
  constexpr std::size_t kMessages = 2'000;
  for (std::size_t lot = 0; lot < kMessages / 500; ++lot) {
    send(500, 600, "lot" + std::to_string(lot) + "-");
  }
  const auto other = make_host("worker-b", 2);
  std::size_t claimed = 0;
  const auto work = [&](std::size_t rounds, const std::string& awaited) {
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto claims = claim(16);
      claimed += claims.size();
      clock().advance(100ms);
      settle(desk(), claims, CompletionAction::remove);
      for (const auto& delivery : claims) {
        if (delivery.message.id == awaited) {
          return round;
        }
      }
    }
    return rounds;
  };
  host().usage().reset();
  EXPECT_EQ(work(12, "nobody"), 12U);
  dynamo::Item late = raw("lot3-499");
  late["id"] = "late";
  late["sent_at"] = format_timestamp(clock().wall_now() - 1h);
  put(late);
  EXPECT_LT(work(40, "late"), 10U) << "of a sender whose clock is behind";
  const queue::Change forward{
      .id = "lot3-7", .action = queue::ChangeAction::move_to_front, .version = {}, .after = {}, .failure = {}};
  ASSERT_EQ(other->desk().change("orders", {&forward, 1}, soon()).front().status, queue::ChangeStatus::applied);
  EXPECT_LT(work(40, "lot3-7"), 10U) << "moved there by another process";
  EXPECT_EQ(work(60, "nobody"), 60U);
  std::printf("with looks at the front: %.3f RCU a message\n",
              host().usage().capacity().read / static_cast<double>(claimed));
  EXPECT_LE(host().usage().capacity().read / static_cast<double>(claimed), 0.2);
}

TEST_F(StoreCost, ItemOf600BytesStaysUnderOneKilobyteInFlight) {
  queue::NewMessage message;
  message.body = std::string(600, 'x');
  message.attributes = {{"trace", "0af7651916cd43dd"}};
  const auto sent = desk().send("orders", std::span(&message, 1), soon());
  ASSERT_EQ(sent[0].status, queue::SendStatus::sent);
  ASSERT_EQ(claim(1).size(), 1U);
  EXPECT_LT(queue::table::item_bytes(raw(sent[0].id)), 1024U);
}

TEST_F(StoreCost, InFlightRecordsAtTheHeadAreNotReadForEveryClaim) {
  send(1'000, 600, "head");
  const auto other = make_host("worker-b", 2);
  std::size_t held = 0;
  while (held < 1'000) {
    held += claim(other->desk(), 250, 600s).size();
  }
  send(1'000, 600, "mine");
  ASSERT_EQ(claim(5).size(), 5U);  // the first pass goes over the head once
  host().usage().reset();
  std::size_t claimed = 0;
  while (claimed < 500) {
    const auto claims = claim(10);
    ASSERT_FALSE(claims.empty());
    claimed += claims.size();
    settle(desk(), claims, CompletionAction::remove);
    clock().advance(10ms);
  }
  EXPECT_LE(host().usage().capacity().read / static_cast<double>(claimed), 0.3);
}

TEST_F(StoreCost, EmptyPollCostsOneRequestAndHalfAUnit) {
  for (int poll = 0; poll < 130; ++poll) {
    host().usage().reset();
    EXPECT_TRUE(claim(100).empty());
    EXPECT_LE(host().usage().requests(), 1U) << "poll " << poll;
    EXPECT_LE(host().usage().capacity().read, 0.5);
    clock().advance(1s);
  }
}

TEST_F(StoreCost, PollOfAQueueWhoseMessagesAreAllInFlightIsCheap) {
  send(600, 600);
  const auto other = make_host("worker-b", 2);
  while (!claim(other->desk(), 250, 3600s).empty()) {
  }
  EXPECT_TRUE(claim(10).empty());  // the first pass
  host().usage().reset();
  for (int poll = 0; poll < 10; ++poll) {
    clock().advance(500ms);
    EXPECT_TRUE(claim(10).empty());
  }
  EXPECT_LE(host().usage().requests(), 15U) << "each second one look at the front besides";
  EXPECT_LE(host().usage().capacity().read, 15 * 0.5 + 5 * 80) << "the tail's margin, while it covers the last sent";
  clock().advance(3s);
  EXPECT_TRUE(claim(10).empty());
  host().usage().reset();
  EXPECT_TRUE(claim(10).empty());
  EXPECT_LE(host().usage().capacity().read, 0.5);
}

TEST_F(StoreCost, ManyDelayedMessagesAreNotReadForEveryPoll) {
  std::vector<queue::NewMessage> batch(500);
  for (auto& message : batch) {
    message.body = std::string(600, 'x');
    message.delay = 1h;
  }
  desk().send("orders", batch, soon());
  claim(10);
  claim(10);
  host().usage().reset();
  for (int poll = 0; poll < 20; ++poll) {
    clock().advance(100ms);
    EXPECT_TRUE(claim(10).empty());
  }
  EXPECT_LE(host().usage().capacity().read, 20 * 0.5 + 4) << "one look at what lies ahead, each minute, included";
}

TEST_F(StoreCost, OwnRetriesComeBackWithoutBeingRead) {
  send(300, 600);
  auto claims = claim(300);
  while (claims.size() < 300) {
    auto more = claim(300);
    ASSERT_FALSE(more.empty());
    std::move(more.begin(), more.end(), std::back_inserter(claims));
  }
  ASSERT_EQ(applied(settle(desk(), claims, CompletionAction::retry, 5s)), 300U);
  clock().advance(6s);
  host().usage().reset();
  EXPECT_EQ(claim(300).size(), 300U);
  EXPECT_LE(host().usage().capacity().read, 1.0);
}

}  // namespace
}  // namespace sluice::test
