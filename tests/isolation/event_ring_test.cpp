#include "host/isolation/runner_memory.hpp"

#include <gtest/gtest.h>

#include <memory>

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

}  // namespace
}  // namespace sluice::isolation
