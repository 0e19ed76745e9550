// Checkpoints in the test kit, as authors test with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sluice/testing.hpp"

namespace {

using sluice::testing::HandlerTest;
using ::testing::HasSubstr;

/// Copies its body, two bytes at a time.
class Copies {
 public:
  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    const std::string_view body = message.body();
    std::size_t at = context.last_checkpoint() ? std::stoul(std::string(*context.last_checkpoint())) : 0;
    for (; at < body.size(); at += 2) {
      if (body[at] == '!' && message.attempt() == 1) {
        throw std::runtime_error("not at the first time");
      }
      context.send("copies", body.substr(at, 2)).id(std::to_string(at));
      context.sql("INSERT INTO copies VALUES (?1)", body.substr(at, 2)).label(std::to_string(at)).otherwise_reject();
      context.checkpoint_with_effects(std::to_string(at + 2));
    }
    context.set_result("copied");
    context.send("done", "");
    return sluice::done();
  }
};

/// Stores what it is sent.
class Stores {
 public:
  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    context.checkpoint(message.body());
    return sluice::retry();
  }
};

TEST(TestedCheckpoints, AreShownWithWhatWasCommitted) {
  HandlerTest test(sluice::testing::handler<Copies>());
  const auto result = test.handle({.body = "abcde"});
  ASSERT_EQ(result.status, SLUICE_DONE) << result.reason;
  ASSERT_EQ(result.checkpoints.size(), 3U);
  EXPECT_EQ(result.checkpoints[1].bytes, "4");
  EXPECT_EQ(result.checkpoints[1].effects.message_to("copies").body, "cd");
  EXPECT_EQ(result.checkpoints[2].effects.writes.size(), 1U);
  EXPECT_EQ(result.effects.messages.size(), 1U) << "what is staged after the last one";
  EXPECT_EQ(result.effects.result, "copied");
}

TEST(TestedCheckpoints, TheNextAttemptSeesThem) {
  HandlerTest test(sluice::testing::handler<Copies>());
  const auto first = test.handle({.body = "ab!d"});
  EXPECT_EQ(first.status, SLUICE_FAULT);
  EXPECT_EQ(first.checkpoints.size(), 1U);
  const auto second = test.handle({.body = "ab!d", .attempt = 2});
  EXPECT_EQ(second.status, SLUICE_DONE);
  ASSERT_EQ(second.checkpoints.size(), 1U);
  EXPECT_EQ(second.checkpoints[0].effects.message_to("copies").body, "!d");
  EXPECT_EQ(test.handle({.body = "ab"}).checkpoints.size(), 1U) << "done: the next message has none";
  test.set_last_checkpoint("2");
  EXPECT_EQ(test.handle({.body = "abcd"}).checkpoints.size(), 1U);
}

TEST(TestedCheckpoints, AreRefusedAsTheHostDoes) {
  HandlerTest test(sluice::testing::handler<Stores>());
  EXPECT_EQ(test.handle({.body = std::string(65536, 'x')}).checkpoints.size(), 1U);
  EXPECT_THAT(test.handle({.body = std::string(65537, 'x')}).reason,
              HasSubstr("at most 65536 bytes, this one has 65537"));
  test.refuse_checkpoints("the store is full");
  EXPECT_EQ(test.handle({.body = "a"}).reason, "the store is full");
  test.refuse_checkpoints("");
  test.lose_lease();
  EXPECT_THAT(test.handle({.body = "a"}).reason, HasSubstr("no longer ours"));
  test.without_checkpoints();
  EXPECT_THAT(test.handle({.body = "a"}).reason, HasSubstr("this host has no sluice.checkpoint/1"));
}

TEST(TestedCheckpoints, ARefusedWriteStoresNothing) {
  HandlerTest test(sluice::testing::handler<Copies>());
  test.refuse("2", "there is such a row");
  const auto result = test.handle({.body = "abcd"});
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_THAT(result.reason, HasSubstr("write \"2\" was refused: there is such a row"));
  EXPECT_EQ(result.checkpoints.size(), 1U);
}

}  // namespace
