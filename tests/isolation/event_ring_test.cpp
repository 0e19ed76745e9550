#include <gtest/gtest.h>

#include <memory>

#include "host/isolation/runner_memory.hpp"

namespace sluice::isolation {
namespace {

class EventRingTest : public testing::Test {
 protected:
  const std::unique_ptr<RunnerControl> control_ = std::make_unique<RunnerControl>();
  EventRing ring_{*control_};
  EventHead head_{};
  std::string text_;
};

TEST_F(EventRingTest, EventsComeOutInOrderAcrossTheEndOfTheRing) {
  // Each takes a bit more than a kilobyte, so that a thousand go around several times, cut at ever other places.
  for (int i = 0; i < 1000; ++i) {
    const std::string text = std::to_string(i) + std::string(1000 + static_cast<std::size_t>(i) % 13, 'x');
    ASSERT_TRUE(ring_.write(RunnerEvent::attempt_log, static_cast<std::int16_t>(i % 5), i, text));
    ASSERT_EQ(ring_.read(head_, text_), EventRing::Found::event);
    EXPECT_EQ(head_.kind, RunnerEvent::attempt_log);
    EXPECT_EQ(head_.level, i % 5);
    EXPECT_EQ(head_.number, i);
    ASSERT_EQ(text_, text);
  }
  EXPECT_EQ(ring_.read(head_, text_), EventRing::Found::nothing);
}

TEST_F(EventRingTest, AFullRingTakesNothingUntilSomethingIsRead) {
  const std::string text(4096, 'x');
  std::size_t written = 0;
  while (ring_.write(RunnerEvent::host_log, 0, 0, text)) {
    ++written;
  }
  EXPECT_GT(written, 60U);
  ASSERT_EQ(ring_.read(head_, text_), EventRing::Found::event);
  EXPECT_TRUE(ring_.write(RunnerEvent::host_log, 0, 0, text));
}

TEST_F(EventRingTest, TextIsCutToItsLimit) {
  ASSERT_TRUE(ring_.write(RunnerEvent::host_log, 0, 0, std::string(kEventTextLimit + 10, 'x')));
  ASSERT_EQ(ring_.read(head_, text_), EventRing::Found::event);
  EXPECT_EQ(text_.size(), kEventTextLimit);
}

TEST_F(EventRingTest, ALengthThatCannotBeIsNonsense) {
  ASSERT_TRUE(ring_.write(RunnerEvent::host_log, 0, 0, "text"));
  control_->room[0] = control_->room[1] = control_->room[2] = '\x7f';
  EXPECT_EQ(ring_.read(head_, text_), EventRing::Found::nonsense);
}

TEST_F(EventRingTest, MoreThanTheRingHoldsIsNonsense) {
  control_->produced.store(RunnerControl::kRoom + 8);
  EXPECT_EQ(ring_.read(head_, text_), EventRing::Found::nonsense);
}

TEST_F(EventRingTest, AnEventThatIsNotAllThereIsNonsense) {
  ASSERT_TRUE(ring_.write(RunnerEvent::host_log, 0, 0, std::string(100, 'x')));
  control_->produced.store(32);
  EXPECT_EQ(ring_.read(head_, text_), EventRing::Found::nonsense);
}

// What a handler writes over may be what its Runner tells next.
TEST(RunnerWords, AByteThatIsNoTruthIsRefused) {
  queue::Effects effects;
  effects.key.emplace();
  std::string packed = pack_effects(effects);
  ASSERT_NE(unpack_effects(packed), nullptr);
  // Before it stand how many messages and writes there are.
  packed[2 * sizeof(std::uint64_t)] = 2;
  EXPECT_EQ(unpack_effects(packed), nullptr) << "whether there is a key";
  std::string change = pack_changes({plugin::MetricChange{}}).front();
  ASSERT_TRUE(unpack_changes(change));
  change[sizeof(std::uint32_t)] = 2;
  EXPECT_FALSE(unpack_changes(change)) << "whether the series is told for the first time";
}

TEST(RunnerWords, NoValueOfAnEnumerationIsTakenThatIsNone) {
  const auto taken = [](auto change) {
    queue::Effects effects;
    effects.messages.emplace_back();
    effects.writes.emplace_back();
    change(effects);
    return unpack_effects(pack_effects(effects)) != nullptr;
  };
  EXPECT_TRUE(taken([](queue::Effects& effects) { effects.messages[0].message.priority = queue::Priority::low; }));
  EXPECT_FALSE(taken([](queue::Effects& effects) { effects.messages[0].message.priority = queue::Priority{4}; }));
  EXPECT_FALSE(
      taken([](queue::Effects& effects) { effects.messages[0].message.unique_until = queue::UniqueUntil{2}; }));
  EXPECT_FALSE(taken([](queue::Effects& effects) { effects.writes[0].on_refusal = queue::OnRefusal{2}; }));
  EXPECT_FALSE(taken([](queue::Effects& effects) {
    std::get<queue::ItemWrite>(effects.writes[0].write).action = queue::ItemAction{4};
  }));
  EXPECT_FALSE(taken([](queue::Effects& effects) { effects.messages[0].message.delay = Duration(-1); }));
}

TEST(RunnerWords, AMessageComesOutWithAllThatItsHandlerIsTold) {
  const queue::Message message{.id = "A-101",
                               .body = std::string("\0body", 5),
                               .content_type = "image/png",
                               .attributes = {{"colour", "red"}, {"", ""}},
                               .group = "customer-7",
                               .priority = queue::Priority::high,
                               .attempt = 3,
                               .sent_at = WallTime(Duration(-1)),
                               .checkpoint = "half"};
  const std::string first = "first";
  std::string bytes;
  for (const std::string* const result : {&first, static_cast<const std::string*>(nullptr)}) {
    const MessageFacts facts{"orders", 5, result};
    std::string one(packed_size(message, facts), '\0');
    EXPECT_EQ(pack_message(message, facts, one.data()), one.data() + one.size());
    bytes += one;
  }
  std::string_view left = bytes;
  WireMessage wire;
  ASSERT_TRUE(unpack_message(left, wire));
  ASSERT_NE(wire.first_result, nullptr);
  EXPECT_EQ(*wire.first_result, "first");
  ASSERT_TRUE(unpack_message(left, wire)) << "where there was another one";
  EXPECT_EQ(wire.first_result, nullptr);
  EXPECT_EQ(wire.queue, "orders");
  EXPECT_EQ(wire.max_attempts, 5U);
  EXPECT_EQ(wire.message.id, message.id);
  EXPECT_EQ(wire.message.body, message.body);
  EXPECT_EQ(wire.message.content_type, message.content_type);
  EXPECT_EQ(wire.message.attributes, message.attributes);
  EXPECT_EQ(wire.message.group, message.group);
  EXPECT_EQ(wire.message.priority, message.priority);
  EXPECT_EQ(wire.message.attempt, message.attempt);
  EXPECT_EQ(wire.message.sent_at, message.sent_at);
  EXPECT_EQ(wire.message.checkpoint, message.checkpoint);
  EXPECT_TRUE(left.empty());
  left = std::string_view(bytes).substr(0, bytes.size() / 2 - 1);
  EXPECT_FALSE(unpack_message(left, wire));
}

}  // namespace
}  // namespace sluice::isolation
