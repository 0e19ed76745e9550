// Progress that handlers store with messages of shards that their host owns: nothing of these was written when they
// were handed out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;
using queue::Delivery;
using queue::SettleStatus;

/// What the host is handed first, within the time that a hand-over takes.
Delivery first_of(OwnerWorld& world, OwnerHost& host) {
  std::vector<Delivery> claimed;
  EXPECT_TRUE(world.pass_until(
      [&] {
        claimed = host.claim(1);
        return !claimed.empty();
      },
      60s));
  return claimed.empty() ? Delivery() : std::move(claimed.front());
}

class OwnerCheckpoint : public ::testing::Test {
 protected:
  OwnerCheckpoint() {
    world_.pass(15s);
    world_.send(1);
  }

  /// It takes effect, and its answer gets lost.
  void store_without_answer(Delivery& delivery, const std::string& bytes) {
    const auto at = [](const char* wanted) {
      return [wanted](const std::string& operation, const std::string&) { return operation == wanted; };
    };
    world_.model.inject(model::Fault::commit_then_lose, at("BatchExecuteStatement"), 100);
    world_.model.inject(model::Fault::refuse, at("BatchGetItem"), 100);
    EXPECT_EQ(host_.checkpoint(delivery, bytes).error.code(), ErrorCode::unknown_outcome);
    world_.model.clear_faults();
  }

  OwnerWorld world_{{.shards = 1}};
  OwnerHost& host_ = world_.add("a/1");
};

TEST_F(OwnerCheckpoint, ComesBackWithTheMessageToItsOwner) {
  Delivery delivery = first_of(world_, host_);
  EXPECT_EQ(delivery.message.attempt, 1U);
  for (const char* bytes : {"1", "2", "3"}) {
    ASSERT_EQ(host_.checkpoint(delivery, bytes).status, SettleStatus::applied);
  }
  ASSERT_EQ(host_.settle(delivery, CompletionAction::retry).status, SettleStatus::applied);
  delivery = first_of(world_, host_);
  EXPECT_EQ(delivery.message.checkpoint, "3");
  EXPECT_EQ(delivery.message.attempt, 2U) << "a checkpoint counts no attempt";
  EXPECT_FALSE(delivery.suspect);
  ASSERT_EQ(host_.checkpoint(delivery, "").status, SettleStatus::applied);
  ASSERT_EQ(host_.settle(delivery, CompletionAction::release).status, SettleStatus::applied);
  delivery = first_of(world_, host_);
  EXPECT_EQ(delivery.message.checkpoint, "");
  ASSERT_EQ(host_.settle(delivery, CompletionAction::remove).status, SettleStatus::applied);
  EXPECT_TRUE(world_.messages().empty());
}

TEST_F(OwnerCheckpoint, OutlivesItsOwner) {
  Delivery delivery = first_of(world_, host_);
  ASSERT_EQ(host_.checkpoint(delivery, "half").status, SettleStatus::applied);
  host_.kill();
  OwnerHost& next = world_.add("b/1");
  Delivery again = first_of(world_, next);
  EXPECT_EQ(again.message.checkpoint, "half");
  EXPECT_TRUE(again.suspect);
  ASSERT_EQ(next.checkpoint(again, "more").status, SettleStatus::applied);
  ASSERT_EQ(next.settle(again, CompletionAction::dead_letter).status, SettleStatus::applied);
  const auto items = world_.messages();
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(queue::leased::decode_record(items[0]).message.checkpoint, "more");
}

TEST_F(OwnerCheckpoint, WhoOwnsTheShardNoMoreStoresNothing) {
  Delivery delivery = first_of(world_, host_);
  host_.wire().cut(true);
  world_.pass(60s);
  host_.wire().cut(false);
  EXPECT_EQ(host_.checkpoint(delivery, "late").status, SettleStatus::lost);
  host_.kill();
  OwnerHost& next = world_.add("b/1");
  EXPECT_EQ(first_of(world_, next).message.checkpoint, "");
}

// The owner hands messages out of its memory: it must not go on from a checkpoint of which it knows nothing.
TEST_F(OwnerCheckpoint, WithoutAnAnswerTheMessageIsReadAnew) {
  Delivery delivery = first_of(world_, host_);
  store_without_answer(delivery, "stored");
  ASSERT_EQ(host_.settle(delivery, CompletionAction::retry).status, SettleStatus::applied);
  delivery = first_of(world_, host_);
  EXPECT_EQ(delivery.message.checkpoint, "stored");
  ASSERT_EQ(host_.settle(delivery, CompletionAction::remove).status, SettleStatus::applied);
}

// What is read eventually consistently may be seconds old, and shows the version that the checkpoint has left.
TEST_F(OwnerCheckpoint, WithoutAnAnswerAndDoneTheMessageDoesNotComeBackByAnOldRead) {
  Delivery delivery = first_of(world_, host_);
  world_.pass(3s);
  host_.ring();
  EXPECT_TRUE(host_.claim(1).empty());  // for half a minute from now on nothing is swept
  store_without_answer(delivery, "stored");
  const auto left = world_.messages();
  ASSERT_EQ(left.size(), 1U);
  ASSERT_EQ(host_.settle(delivery, CompletionAction::remove).status, SettleStatus::applied);
  ASSERT_TRUE(world_.messages().empty());
  world_.put(left[0]);
  const auto comes_back = [&] { return !host_.claim(1).empty(); };
  EXPECT_FALSE(world_.pass_until(comes_back, 3s));
  EXPECT_TRUE(world_.pass_until(comes_back, 60s)) << "it is there all the same";
}

TEST_F(OwnerCheckpoint, TakesWhatTheRecordWeighs) {
  Delivery delivery = first_of(world_, host_);
  double before = world_.write_units();
  ASSERT_EQ(host_.checkpoint(delivery, "12/100").status, SettleStatus::applied);
  EXPECT_EQ(world_.write_units() - before, 1.0);
  before = world_.write_units();
  ASSERT_EQ(host_.checkpoint(delivery, std::string(3000, 'x')).status, SettleStatus::applied);
  EXPECT_EQ(world_.write_units() - before, 4.0);
}

}  // namespace
}  // namespace sluice::test
