#include <gtest/gtest.h>

#include <memory>

#include "host/isolation/runner_memory.hpp"

namespace sluice::isolation {
namespace {

class EventRingTest : public testing::Test {
 protected:
  const std::unique_ptr<RunnerControl> control_ = std::make_unique<RunnerControl>();
  EventWriter writer_{*control_};
  EventReader reader_{*control_};
  EventHead head_{};
  std::string text_;
};

TEST_F(EventRingTest, EventsComeOutInOrderAcrossTheEndOfTheRing) {
  // Each takes a bit more than a kilobyte, so that a thousand go around several times, cut at ever other places.
  for (int i = 0; i < 1000; ++i) {
    const std::string text = std::to_string(i) + std::string(1000 + static_cast<std::size_t>(i) % 13, 'x');
    ASSERT_TRUE(writer_.write(RunnerEvent::attempt_log, static_cast<std::int16_t>(i % 5), i, text));
    ASSERT_EQ(reader_.read(head_, text_), EventReader::Found::event);
    EXPECT_EQ(head_.kind, RunnerEvent::attempt_log);
    EXPECT_EQ(head_.level, i % 5);
    EXPECT_EQ(head_.number, i);
    ASSERT_EQ(text_, text);
  }
  EXPECT_EQ(reader_.read(head_, text_), EventReader::Found::nothing);
}

TEST_F(EventRingTest, AFullRingTakesNothingUntilSomethingIsRead) {
  const std::string text(4096, 'x');
  std::size_t written = 0;
  while (writer_.write(RunnerEvent::host_log, 0, 0, text)) {
    ++written;
  }
  EXPECT_GT(written, 60U);
  ASSERT_EQ(reader_.read(head_, text_), EventReader::Found::event);
  EXPECT_TRUE(writer_.write(RunnerEvent::host_log, 0, 0, text));
}

TEST_F(EventRingTest, TextIsCutToItsLimit) {
  ASSERT_TRUE(writer_.write(RunnerEvent::host_log, 0, 0, std::string(kEventTextLimit + 10, 'x')));
  ASSERT_EQ(reader_.read(head_, text_), EventReader::Found::event);
  EXPECT_EQ(text_.size(), kEventTextLimit);
}

TEST_F(EventRingTest, ALengthThatCannotBeIsNonsense) {
  ASSERT_TRUE(writer_.write(RunnerEvent::host_log, 0, 0, "text"));
  control_->room[0] = control_->room[1] = control_->room[2] = '\x7f';
  EXPECT_EQ(reader_.read(head_, text_), EventReader::Found::nonsense);
}

TEST_F(EventRingTest, MoreThanTheRingHoldsIsNonsense) {
  control_->produced.store(RunnerControl::kRoom + 8);
  EXPECT_EQ(reader_.read(head_, text_), EventReader::Found::nonsense);
}

TEST_F(EventRingTest, AnEventThatIsNotAllThereIsNonsense) {
  ASSERT_TRUE(writer_.write(RunnerEvent::host_log, 0, 0, std::string(100, 'x')));
  control_->produced.store(32);
  EXPECT_EQ(reader_.read(head_, text_), EventReader::Found::nonsense);
}

// What a handler writes over may be what its Runner tells next.
TEST(RunnerWords, AByteThatIsNoTruthIsRefused) {
  queue::Effects effects;
  effects.key.emplace();
  std::string packed = pack_effects(effects);
  ASSERT_NE(unpack_effects(packed), nullptr);
  packed[0] = 2;
  EXPECT_EQ(unpack_effects(packed), nullptr) << "whether there is a key";
  std::string change = pack_changes({plugin::MetricChange{}}).front();
  ASSERT_TRUE(unpack_changes(change));
  change[sizeof(std::uint32_t)] = 2;
  EXPECT_FALSE(unpack_changes(change)) << "whether the series is told for the first time";
}

}  // namespace
}  // namespace sluice::isolation
