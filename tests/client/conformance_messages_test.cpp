// Numbers 12 to 27 of DynamoMQ's own tests: what becomes of a message. A comment marks where ours deviates on purpose;
// docs/start/conformance.md has the list and the reasons.
#include "tests/client/client_rig.hpp"

namespace sluice::client {
namespace {

using ::testing::HasSubstr;

class Send : public ClientTest {};

TEST_P(Send, N12_WritesAFreshRecord) {
  const auto sent = client().send({.id = "A-101", .data = "{\"n\":1}", .content_type = "application/json"});
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_EQ(*sent, "A-101");
  const Message message = get("A-101");
  EXPECT_EQ(message.version, 1);
  EXPECT_EQ(message.receive_count, 0U);
  EXPECT_EQ(message.queue_type, QueueType::standard);
  EXPECT_EQ(message.created_at, kT0);
  EXPECT_EQ(message.updated_at, kT0);
  EXPECT_EQ(message.sent_at, kT0);
  EXPECT_FALSE(message.received_at);
  EXPECT_FALSE(message.invisible_until_at);
  EXPECT_EQ(message.data, "{\"n\":1}");
}

// Deviates: the delay holds. DynamoMQ's delayed messages are received at once; ours are hidden until their time, for
// its Go programs too, which is what `invisible_until_at` says.
TEST_P(Send, N13_DelayMovesSentAtOnly) {
  ASSERT_TRUE(client().send({.id = "A-101", .data = "x", .delay = 10s}));
  const Message message = get("A-101");
  EXPECT_EQ(message.created_at, kT0);
  EXPECT_EQ(message.updated_at, kT0);
  EXPECT_EQ(message.sent_at, kT0 + 10s);
  EXPECT_EQ(message.receive_count, 0U);
  EXPECT_FALSE(message.received_at);
  EXPECT_EQ(message.status(kT0 + 9s), Status::processing);
  at(9s);
  EXPECT_EQ(error_name(client().receive()), "EmptyQueueError");
  at(11s);
  EXPECT_TRUE(client().receive());
}

SLUICE_ON_BOTH_STORES(Send);

class Receive : public ClientTest {};

TEST_P(Receive, N14_NothingReadyIsAnEmptyQueue) {
  seed_processing("A-101");
  seed_dlq("B-202");
  at(10s);
  const auto received = client().receive();
  ASSERT_EQ(error_name(received), "EmptyQueueError");
  EXPECT_EQ(received.error().message(), "Cannot proceed, queue is empty.");
}

TEST_P(Receive, N15_TakesWhatIsReady) {
  seed_ready("B-202");
  at(10s);
  const auto received = client().receive();
  ASSERT_TRUE(received) << received.error().message();
  EXPECT_EQ(received->message.id, "B-202");
  for (const Message& message : {received->message, get("B-202")}) {
    EXPECT_EQ(message.version, 2);
    EXPECT_EQ(message.receive_count, 1U);
    EXPECT_EQ(message.updated_at, kT0 + 10s);
    EXPECT_EQ(message.received_at, kT0 + 10s);
    EXPECT_EQ(message.invisible_until_at, kT0 + 40s);
    EXPECT_EQ(message.sent_at, kT0);
  }
}

// Their seed is a ready record, so that their test does not show what its name says; here it has really expired.
TEST_P(Receive, N16_TakesWhatItsReceiverHasLetExpire) {
  seed_processing("B-202");
  at(10min + 1s);
  const auto received = client().receive();
  ASSERT_TRUE(received) << received.error().message();
  EXPECT_EQ(received->message.id, "B-202");
  EXPECT_EQ(received->message.version, 2);
  EXPECT_EQ(received->message.received_at, kT0 + 10min + 1s);
}

TEST_P(Receive, N17_LeavesWhatIsStillProcessing) {
  seed_processing("B-202");
  at(29s);
  EXPECT_EQ(error_name(client().receive()), "EmptyQueueError");
  at(30s);
  EXPECT_EQ(error_name(client().receive()), "EmptyQueueError") << "at the very instant it is still processing";
  at(30s + 1ns);
  EXPECT_TRUE(client().receive());
}

TEST_P(Receive, N18_OldestFirst) {
  seed_ready("A-101", 3s);
  seed_ready("A-202", 2s);
  seed_ready("A-303", 1s);
  at(10s);
  EXPECT_EQ(client().receive()->message.id, "A-303");
  EXPECT_EQ(client().receive()->message.id, "A-202");
  EXPECT_EQ(client().receive()->message.id, "A-101");
}

TEST_P(Receive, N19_FifoWaitsForTheFirstToBeDeleted) {
  seed_ready("A-101", 3s);
  seed_ready("A-202", 2s);
  seed_ready("A-303", 1s);
  at(10s);
  QueueClient fifo = client_with({.use_fifo = true});
  for (const std::string id : {"A-303", "A-202", "A-101"}) {
    const auto received = fifo.receive();
    ASSERT_TRUE(received) << received.error().message();
    EXPECT_EQ(received->message.id, id);
    EXPECT_EQ(error_name(fifo.receive()), "EmptyQueueError") << "while " << id << " is in flight";
    ASSERT_TRUE(fifo.delete_message(id));
  }
  EXPECT_EQ(error_name(fifo.receive()), "EmptyQueueError");
}

SLUICE_ON_BOTH_STORES(Receive);

class ChangeVisibility : public ClientTest {};

TEST_P(ChangeVisibility, N20_NegativeMakesItVisible) {
  seed_processing("A-101");
  at(10s);
  const auto changed = client().change_visibility("A-101", -1s);
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(changed->version, 2);
  EXPECT_EQ(changed->updated_at, kT0 + 10s);
  EXPECT_EQ(changed->received_at, kT0);
  EXPECT_EQ(changed->sent_at, kT0);
  // Deviates: zero and negative both mean "at once". Theirs writes a time in the past, or with zero the present, at
  // which the message is still hidden; what we write is not in the future and hides nothing.
  EXPECT_EQ(changed->status(kT0 + 10s), Status::ready);
  EXPECT_TRUE(client().receive());
}

TEST_P(ChangeVisibility, N20_ZeroMakesItVisibleAtOnce) {
  seed_processing("A-101");
  at(10s);
  ASSERT_TRUE(client().change_visibility("A-101", 0s));
  EXPECT_TRUE(client().receive());
}

TEST_P(ChangeVisibility, N20_PositiveHidesItWhateverItsState) {
  seed_ready("A-101");
  at(10s);
  const auto changed = client().change_visibility("A-101", 20s);
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(changed->invisible_until_at, kT0 + 30s);
  EXPECT_EQ(changed->receive_count, 0U);
  EXPECT_EQ(error_name(client().receive()), "EmptyQueueError");
}

SLUICE_ON_BOTH_STORES(ChangeVisibility);

class Delete : public ClientTest {};

TEST_P(Delete, N21_UnknownIdIsNoError) {
  seed_ready("A-101");
  EXPECT_TRUE(client().delete_message("B-101"));
  EXPECT_TRUE(client().get("A-101")->has_value());
}

TEST_P(Delete, N22_RemovesAKnownId) {
  seed_ready("A-101");
  EXPECT_TRUE(client().delete_message("A-101"));
  EXPECT_FALSE(client().get("A-101")->has_value());
}

SLUICE_ON_BOTH_STORES(Delete);

class MoveToDlq : public ClientTest {};

TEST_P(MoveToDlq, N23_InTheDlqAlreadyIsLeftAlone) {
  seed_dlq("A-101");
  at(10s);
  const auto moved = client().move_to_dlq("A-101");
  ASSERT_TRUE(moved) << moved.error().message();
  EXPECT_EQ(moved->version, 1);
  EXPECT_EQ(moved->updated_at, kT0);
  EXPECT_EQ(moved->queue_type, QueueType::dlq);
}

TEST_P(MoveToDlq, N24_MovesAsNewlySent) {
  seed_ready("A-101");
  at(10s);
  const auto moved = client().move_to_dlq("A-101");
  ASSERT_TRUE(moved) << moved.error().message();
  EXPECT_EQ(moved->version, 2);
  EXPECT_EQ(moved->queue_type, QueueType::dlq);
  EXPECT_EQ(moved->receive_count, 0U);
  EXPECT_EQ(moved->created_at, kT0);
  EXPECT_EQ(moved->updated_at, kT0 + 10s);
  EXPECT_EQ(moved->sent_at, kT0 + 10s);
  EXPECT_FALSE(moved->received_at);
  EXPECT_FALSE(moved->invisible_until_at);
}

SLUICE_ON_BOTH_STORES(MoveToDlq);

class Redrive : public ClientTest {};

TEST_P(Redrive, N25_MovesBackAsNewlySent) {
  seed_dlq("A-101");
  at(10s);
  const auto redriven = client().redrive("A-101");
  ASSERT_TRUE(redriven) << redriven.error().message();
  EXPECT_EQ(redriven->queue_type, QueueType::standard);
  EXPECT_EQ(redriven->version, 2);
  EXPECT_EQ(redriven->updated_at, kT0 + 10s);
  EXPECT_EQ(redriven->sent_at, kT0 + 10s);
  EXPECT_FALSE(redriven->received_at);
  EXPECT_FALSE(redriven->invisible_until_at);
}

// Deviates: DynamoMQ leaves receive_count and received_at as they were in the DLQ, so that a redriven message may be
// given up at its first failure.
TEST_P(Redrive, N25_ForgetsReceivesInTheDlq) {
  seed_dlq("A-101");
  for (int i = 1; i <= 3; ++i) {
    at(i * 1min);
    ASSERT_TRUE(client().receive({.queue_type = QueueType::dlq, .visibility_timeout = 1s}));
  }
  at(10min);
  const auto redriven = client().redrive("A-101");
  ASSERT_TRUE(redriven) << redriven.error().message();
  EXPECT_EQ(redriven->receive_count, 0U);
  EXPECT_FALSE(redriven->received_at);
}

TEST_P(Redrive, N26_OutsideTheDlqIsRefused) {
  seed_ready("A-101");
  const auto redriven = client().redrive("A-101");
  ASSERT_EQ(error_name(redriven), "InvalidStateTransitionError");
  EXPECT_EQ(redriven.error().message(),
            "operation mark as restored from DLQ failed for status READY: can only redrive messages from DLQ.");
  EXPECT_EQ(redriven.error().current(), Status::ready);
  EXPECT_EQ(get("A-101").version, 1);
}

TEST_P(Redrive, N27_InFlightInTheDlqIsRefused) {
  seed_dlq_processing("A-101");
  at(10s);
  const auto redriven = client().redrive("A-101");
  ASSERT_EQ(error_name(redriven), "InvalidStateTransitionError");
  EXPECT_EQ(redriven.error().message(),
            "operation mark as restored from DLQ failed for status PROCESSING: can only redrive messages from READY.");
  EXPECT_EQ(get("A-101").queue_type, QueueType::dlq);
}

SLUICE_ON_BOTH_STORES(Redrive);

}  // namespace
}  // namespace sluice::client
