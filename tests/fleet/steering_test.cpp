#include "host/fleet/steering.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/fleet/fleet.hpp"

namespace sluice::fleet {
namespace {

using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Directive directive(Wish wish, Target target, const std::string& name, const std::string& value = {}) {
  return {.id = "d", .wish = wish, .target = target, .name = name, .value = value, .by = "ann@ops", .at = WallTime(9s)};
}

TEST(Steering, ComesBackAsItWasWritten) {
  Steering steering;
  steering.directives = {directive(Wish::pause, Target::queue, "mails"),
                         directive(Wish::scale, Target::job, "mailer", "16"),
                         directive(Wish::log_level, Target::all, "", "debug"),
                         directive(Wish::drain, Target::host, "ops:1"),
                         directive(Wish::reload, Target::all, ""),
                         directive(Wish::cancel_running, Target::message, "m \"1\"")};
  steering.watched_until = WallTime(11s);
  const std::string text = write_steering(steering);
  const auto read = read_steering(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(write_steering(*read), text);
  ASSERT_EQ(read->directives.size(), 6U);
  EXPECT_EQ(read->directives.at(5).name, "m \"1\"");
  EXPECT_EQ(read->directives.at(1).text(), "scale job mailer to 16");
  EXPECT_EQ(read->directives.at(2).text(), "log-level of all hosts is debug");
  EXPECT_EQ(read->directives.at(3).text(), "drain host ops:1");
  EXPECT_EQ(read->watched_until, WallTime(11s));
}

TEST(Steering, NothingIsAnEmptyText) {
  EXPECT_EQ(write_steering({}), "");
  EXPECT_TRUE(read_steering("")->directives.empty());
}

TEST(Steering, PassesOverWishesThatItDoesNotKnow) {
  const auto read = read_steering(R"({"directives": [{"wish": "dance", "target": "all"}, {"wish": "pause",
      "target": "planet"}, 7, {"id": "x", "wish": "pause", "target": "job", "name": "j", "new": {}}], "more": 1})");
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->directives.size(), 1U);
  EXPECT_EQ(read->directives.at(0).name, "j");
}

TEST(Steering, GarbageIsCorrupt) {
  for (const std::string text : {"x", "[]", "{\"directives\": [}", "{}}"}) {
    const auto read = read_steering(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code(), ErrorCode::corrupt);
  }
}

TEST(Steering, SaysWhatNobodyCouldObey) {
  EXPECT_FALSE(flaw_of(directive(Wish::pause, Target::queue, "q")));
  EXPECT_FALSE(flaw_of(directive(Wish::scale, Target::job, "j", "1")));
  EXPECT_FALSE(flaw_of(directive(Wish::scale, Target::job, "j", "100000")));
  EXPECT_FALSE(flaw_of(directive(Wish::log_level, Target::host, "h", "trace")));
  EXPECT_FALSE(flaw_of(directive(Wish::reload, Target::all, "")));
  for (const std::string value : {"0", "200000", "100001", "-1", "16x", "", "99999999999"}) {
    const auto flaw = flaw_of(directive(Wish::scale, Target::job, "j", value));
    ASSERT_TRUE(flaw) << value;
    EXPECT_THAT(*flaw, HasSubstr("1 to 100000 workers"));
  }
  EXPECT_TRUE(flaw_of(directive(Wish::scale, Target::queue, "q", "3")));
  EXPECT_TRUE(flaw_of(directive(Wish::drain, Target::all, "")));
  EXPECT_TRUE(flaw_of(directive(Wish::cancel_running, Target::job, "j")));
  EXPECT_TRUE(flaw_of(directive(Wish::log_level, Target::all, "", "loud")));
  EXPECT_TRUE(flaw_of(directive(Wish::pause, Target::job, "")));
  EXPECT_TRUE(flaw_of(directive(Wish::pause, Target::job, std::string(5'000, 'x'))));
}

}  // namespace
}  // namespace sluice::fleet
