// "sluice.checkpoint/1", as a handler meets it in the host.
#include "base/random.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using queue::SettleResult;
using queue::SettleStatus;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The bytes of what was stored.
std::vector<std::string> bytes_of(const std::vector<NotedCheckpoints::Noted>& noted) {
  std::vector<std::string> all;
  std::transform(noted.begin(), noted.end(), std::back_inserter(all), [](const auto& one) { return one.bytes; });
  return all;
}

class CheckpointsTest : public ::testing::Test {
 protected:
  CheckpointsTest() {
    auto created = HandlerInstance::create({log_.log(), {SLUICE_STORE_SQLITE, false, &random_, &clock_}},
                                           fixture_handler("checkpoints"), "orders", {});
    EXPECT_TRUE(created) << created.error().message();
    instance_ = std::move(*created);
  }
  Outcome handle(const std::string& steps, const std::string& last = "") {
    attempt_.arm(SteadyTime::max());
    attempt_.set_checkpoints(&store_);
    queue::Message message;
    message.id = "m-1";
    message.body = steps;
    message.checkpoint = last;
    return instance_->handle({message, "queue", 5, attempt_});
  }
  bool logged(const std::string& text) const {
    const auto lines = log_.lines();
    return std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return line.text == text; });
  }

  SeededRandom random_{1};
  FakeClock clock_;
  Attempt attempt_{clock_};
  LogRecord log_;
  NotedCheckpoints store_;
  std::unique_ptr<HandlerInstance> instance_;
};

TEST_F(CheckpointsTest, AreStoredAndSeen) {
  EXPECT_EQ(handle("store a\nstore b").status, OutcomeStatus::done);
  EXPECT_THAT(bytes_of(store_.noted()), ElementsAre("1 a", "2 b"));
  EXPECT_EQ(store_.noted().at(0).effects, nullptr);
  EXPECT_TRUE(logged("last "));
  EXPECT_TRUE(logged("now 2 b"));
  EXPECT_EQ(handle("store a\nstore b\nstore c", "2 b").status, OutcomeStatus::done);
  EXPECT_TRUE(logged("last 2 b"));
  EXPECT_EQ(store_.noted().back().bytes, "3 c");
  EXPECT_EQ(store_.noted().size(), 3U);
}

TEST_F(CheckpointsTest, CommitWhatIsStagedSoFarAndNoMore) {
  const Outcome outcome = handle("commit a\nstage b\nstore x\nresult r\ncommit c\nstage d");
  ASSERT_EQ(outcome.status, OutcomeStatus::done) << outcome.reason;
  ASSERT_EQ(store_.noted().size(), 3U);
  ASSERT_NE(store_.noted().at(0).effects, nullptr);
  EXPECT_EQ(store_.noted().at(0).effects->messages.size(), 1U);
  EXPECT_EQ(store_.noted().at(0).effects->writes.size(), 1U);
  EXPECT_EQ(store_.noted().at(1).effects, nullptr) << "a plain one leaves what is staged";
  EXPECT_EQ(store_.noted().at(2).effects->messages.size(), 2U);
  EXPECT_FALSE(store_.noted().at(2).effects->key) << "the result is told once the message is done";
  ASSERT_NE(outcome.effects, nullptr);
  EXPECT_EQ(outcome.effects->messages.size(), 1U);
  EXPECT_EQ(outcome.effects->messages[0].message.body, "d");
  ASSERT_TRUE(outcome.effects->key);
  EXPECT_EQ(outcome.effects->key->result, "r");
}

TEST_F(CheckpointsTest, TheLimitsOfATransactionCountForEach) {
  std::string steps;
  for (int i = 0; i < 120; ++i) {
    steps += "stage x\n" + std::string(i % 40 == 39 ? "commit y\n" : "");
  }
  EXPECT_EQ(handle(steps).status, OutcomeStatus::done);
  EXPECT_EQ(store_.noted().size(), 3U);
}

TEST_F(CheckpointsTest, OverTheLimitNobodyIsAsked) {
  const Outcome outcome = handle("huge");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_THAT(outcome.reason, HasSubstr("a checkpoint has at most 65536 bytes, this one has 65537"));
  EXPECT_THAT(bytes_of(store_.noted()), ElementsAre());
}

TEST_F(CheckpointsTest, AnEmptyOneTakesItAway) {
  EXPECT_EQ(handle("x\nempty", "1 x").status, OutcomeStatus::done);
  EXPECT_THAT(bytes_of(store_.noted()), ElementsAre(""));
}

TEST_F(CheckpointsTest, AFailureIsAnExceptionThatSaysWhy) {
  store_.answer = {SettleStatus::lost, {}};
  EXPECT_THAT(handle("store a").reason, HasSubstr("the message is no longer ours"));
  store_.answer = {SettleStatus::refused, Error(ErrorCode::invalid, "queue \"outbox\": its messages come from")};
  EXPECT_EQ(handle("store a").reason, "the checkpoint is refused: queue \"outbox\": its messages come from");
  store_.answer = {SettleStatus::failed, Error(ErrorCode::throttled, "slow down")};
  const Outcome outcome = handle("store a");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_EQ(outcome.reason, "the checkpoint may not be stored: slow down");
}

TEST_F(CheckpointsTest, AfterADefiniteFailureWhatIsStagedStaysStaged) {
  store_.answer = {SettleStatus::failed, Error(ErrorCode::throttled, "slow down")};
  const Outcome outcome = handle("try a");
  ASSERT_EQ(outcome.status, OutcomeStatus::done) << outcome.reason;
  ASSERT_NE(outcome.effects, nullptr);
  EXPECT_EQ(outcome.effects->messages.size(), 1U);
  EXPECT_EQ(handle("try a\ndrop").effects, nullptr);
}

TEST_F(CheckpointsTest, AfterAnUnknownOneNothingMoreIsCommitted) {
  store_.answer = {SettleStatus::failed, Error(ErrorCode::unknown_outcome, "no answer")};
  const Outcome outcome = handle("try a\ndrop\ntry b");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_THAT(outcome.reason, HasSubstr("no answer; whether its effects hold is seen by the next attempt"));
  EXPECT_EQ(store_.noted().size(), 1U) << "nor asked for again";
  store_.answer = {};
  EXPECT_EQ(handle("commit a").status, OutcomeStatus::done) << "the next attempt begins anew";
  store_.answer = {SettleStatus::failed, Error(ErrorCode::unknown_outcome, "no answer")};
  EXPECT_EQ(handle("store a").status, OutcomeStatus::fault);
}

TEST_F(CheckpointsTest, AfterAnUnknownOneWhatTheStoreHasIsNotWrittenOver) {
  store_.answer = {SettleStatus::failed, Error(ErrorCode::unknown_outcome, "no answer")};
  const Outcome outcome = handle("try a\nstore b");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_THAT(outcome.reason, HasSubstr("no answer; whether its effects hold is seen by the next attempt"));
  EXPECT_THAT(bytes_of(store_.noted()), ElementsAre("1 a")) << "by what it has left the next attempt goes";
}

TEST_F(CheckpointsTest, ARefusedEffectRejectsWhereItsWriteSaysSo) {
  store_.answer = {SettleStatus::refused, Error(ErrorCode::conflict, "write 1 was refused"), true};
  const Outcome outcome = handle("commit a");
  EXPECT_EQ(outcome.status, OutcomeStatus::reject);
  EXPECT_THAT(outcome.reason, HasSubstr("write 1 was refused"));
  store_.answer.reject = false;
  EXPECT_EQ(handle("commit a").status, OutcomeStatus::fault);
}

TEST_F(CheckpointsTest, WithoutAStoreItSaysSo) {
  queue::Message message;
  message.body = "store a";
  attempt_.arm(SteadyTime::max());
  EXPECT_EQ(instance_->handle({message, "queue", 5, attempt_}).reason, "nothing stores a checkpoint here");
}

}  // namespace
}  // namespace sluice::plugin
