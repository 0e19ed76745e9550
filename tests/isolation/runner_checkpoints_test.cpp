// Progress that a handler stores out of a Runner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tests/isolation/fixture_spec.hpp"

namespace sluice::isolation {
namespace {

using plugin::Outcome;
using plugin::OutcomeStatus;
using queue::SettleResult;
using queue::SettleStatus;
using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The bytes of what was stored.
std::vector<std::string> bytes_of(const std::vector<plugin::NotedCheckpoints::Noted>& noted) {
  std::vector<std::string> all;
  std::transform(noted.begin(), noted.end(), std::back_inserter(all), [](const auto& one) { return one.bytes; });
  return all;
}

class RunnerCheckpointsTest : public testing::Test {
 protected:
  RunnerCheckpointsTest() {
    EXPECT_TRUE(spawner_.start());
    RunnerSpec spec = fixture_spec("checkpoints");
    spec.effects = {SLUICE_STORE_SQLITE, false, &random_};
    auto created = RunnerInstance::create(std::move(spec), spawner_, {});
    EXPECT_TRUE(created) << created.error().message();
    instance_ = std::move(*created);
  }
  Outcome handle(const std::string& steps, const std::string& last = "") {
    queue::Message message;
    message.id = "m-1";
    message.body = steps;
    message.checkpoint = last;
    attempt_.arm(clock_.steady_now() + 60s);
    attempt_.set_checkpoints(&store_);
    return instance_->handle({message, "queue", 5, attempt_});
  }

  const SystemClock clock_;
  SeededRandom random_;
  RunnerSpawner spawner_;
  plugin::Attempt attempt_{clock_};
  plugin::NotedCheckpoints store_;
  std::unique_ptr<plugin::HandlerInstance> instance_;
};

TEST_F(RunnerCheckpointsTest, ComeToTheHostAndBack) {
  const Outcome outcome = handle("x\nstore a\ncommit b\nstage c", "1 x");
  ASSERT_EQ(outcome.status, OutcomeStatus::done) << outcome.reason;
  EXPECT_THAT(bytes_of(store_.noted()), ElementsAre("2 a", "3 b"));
  EXPECT_EQ(store_.noted().at(0).effects, nullptr);
  ASSERT_NE(store_.noted().at(1).effects, nullptr);
  EXPECT_EQ(store_.noted().at(1).effects->messages.at(0).message.body, "b");
  EXPECT_EQ(store_.noted().at(1).effects->writes.size(), 1U);
  ASSERT_NE(outcome.effects, nullptr);
  EXPECT_EQ(outcome.effects->messages.at(0).message.body, "c") << "what is left is committed with the end";
}

TEST_F(RunnerCheckpointsTest, TheLongestOneFits) {
  const std::string longest(queue::kMostCheckpointBytes - 2, 'x');
  ASSERT_EQ(handle("store " + longest).status, OutcomeStatus::done);
  EXPECT_EQ(store_.noted().at(0).bytes.size(), queue::kMostCheckpointBytes);
  EXPECT_EQ(handle("x\nstore b", store_.noted().at(0).bytes).status, OutcomeStatus::done);
  EXPECT_EQ(store_.noted().at(1).bytes, "2 b");
  EXPECT_THAT(handle("huge").reason, HasSubstr("at most 65536 bytes"));
}

TEST_F(RunnerCheckpointsTest, TheHostsAnswerComesAsItIs) {
  store_.answer = {SettleStatus::refused, Error(ErrorCode::conflict, std::string(5000, 'y')), true};
  const Outcome outcome = handle("commit a");
  EXPECT_EQ(outcome.status, OutcomeStatus::reject);
  EXPECT_THAT(outcome.reason, HasSubstr("the checkpoint is refused: yyyy"));
  store_.answer = {SettleStatus::failed, Error(ErrorCode::unknown_outcome, "no answer")};
  EXPECT_THAT(handle("try a").reason, HasSubstr("whether its effects hold is seen by the next attempt"));
  store_.answer = {SettleStatus::lost, {}};
  EXPECT_THAT(handle("store a").reason, HasSubstr("no longer ours"));
  store_.answer = {};
  EXPECT_EQ(handle("store a").status, OutcomeStatus::done);
}

TEST_F(RunnerCheckpointsTest, OutliveTheProcess) {
  EXPECT_EQ(handle("store a\nabort").status, OutcomeStatus::crashed);
  EXPECT_THAT(bytes_of(store_.noted()), ElementsAre("1 a"));
  EXPECT_EQ(handle("store a\nstore b", "1 a").status, OutcomeStatus::done);
  EXPECT_THAT(bytes_of(store_.noted()), ElementsAre("1 a", "2 b"));
}

}  // namespace
}  // namespace sluice::isolation
