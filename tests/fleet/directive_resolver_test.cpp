#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/fleet/steering.hpp"

namespace sluice::fleet {
namespace {

using std::chrono_literals::operator""s;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Directive directive(const std::string& id, Wish wish, Target target, const std::string& name,
                    const std::string& value = {}, WallTime at = WallTime(1s)) {
  return {.id = id, .wish = wish, .target = target, .name = name, .value = value, .by = "ann", .at = at};
}

Steering steering(std::vector<Directive> directives) { return {.directives = std::move(directives)}; }

std::vector<JobRecord> mailer() {
  std::vector<JobRecord> jobs(1);
  jobs[0].name = "mailer";
  jobs[0].queue = "mails";
  return jobs;
}

class DirectiveResolverTest : public ::testing::Test {
 protected:
  DirectiveResolver resolver_{{.instance = "ops:7:abc", .name = "ops", .pid = 7}};
};

TEST_F(DirectiveResolverTest, WhatStandsAddsUpAndGoes) {
  resolver_.read("a", steering({directive("1", Wish::pause, Target::queue, "mails"),
                                directive("2", Wish::pause, Target::job, "mailer"),
                                directive("3", Wish::scale, Target::job, "mailer", "16"),
                                directive("4", Wish::log_level, Target::all, "", "debug")}));
  EXPECT_TRUE(resolver_.standing().pauses("other", "mails"));
  EXPECT_TRUE(resolver_.standing().pauses("mailer", "other"));
  EXPECT_FALSE(resolver_.standing().pauses("other", "other"));
  EXPECT_EQ(resolver_.standing().workers.at("mailer"), 16U);
  EXPECT_EQ(resolver_.standing().log_level, "debug");
  resolver_.read("b", steering({directive("5", Wish::pause, Target::queue, "orders")}));
  EXPECT_TRUE(resolver_.standing().pauses("x", "orders"));
  resolver_.read("a", {});
  EXPECT_FALSE(resolver_.standing().pauses("mailer", "mails"));
  EXPECT_TRUE(resolver_.standing().pauses("x", "orders")) << "of the other board";
  resolver_.read("b", {});
  EXPECT_EQ(resolver_.standing(), HostSteering());
}

TEST_F(DirectiveResolverTest, OfTwoBoardsTheLaterWishHolds) {
  resolver_.read("a", steering({directive("1", Wish::scale, Target::job, "mailer", "9", WallTime(5s))}));
  resolver_.read("b", steering({directive("2", Wish::scale, Target::job, "mailer", "4", WallTime(3s))}));
  EXPECT_EQ(resolver_.standing().workers.at("mailer"), 9U);
  resolver_.read("b", steering({directive("3", Wish::scale, Target::job, "mailer", "5", WallTime(8s))}));
  EXPECT_EQ(resolver_.standing().workers.at("mailer"), 5U);
}

TEST_F(DirectiveResolverTest, NobodyObeysWhatHasAFlawAndSaysWhy) {
  resolver_.read("a", steering({directive("1", Wish::scale, Target::job, "mailer", "0"),
                                directive("2", Wish::scale, Target::job, "mailer", "200000"),
                                directive("3", Wish::log_level, Target::all, "", "loud")}));
  EXPECT_EQ(resolver_.standing(), HostSteering());
  const auto answers = resolver_.answers("a", mailer());
  ASSERT_THAT(answers, SizeIs(3));
  for (const Answer& answer : answers) {
    EXPECT_FALSE(answer.done);
    EXPECT_FALSE(answer.text.empty());
  }
}

TEST_F(DirectiveResolverTest, AnswersOnlyWhatConcernsIt) {
  resolver_.read("a", steering({directive("1", Wish::pause, Target::queue, "mails"),
                                directive("2", Wish::pause, Target::job, "unknown"),
                                directive("3", Wish::log_level, Target::host, "ops", "debug"),
                                directive("4", Wish::log_level, Target::host, "other", "trace")}));
  const auto answers = resolver_.answers("a", mailer());
  ASSERT_THAT(answers, SizeIs(2));
  EXPECT_EQ(answers[0].directive, "1");
  EXPECT_TRUE(answers[0].done);
  EXPECT_EQ(answers[1].directive, "3");
  EXPECT_EQ(resolver_.standing().log_level, "debug");
  EXPECT_THAT(resolver_.answers("elsewhere", mailer()), IsEmpty());
}

TEST_F(DirectiveResolverTest, AnOrderIsObeyedOnceAndNotByWhoCameLater) {
  const auto old = directive("1", Wish::drain, Target::host, "ops");
  EXPECT_THAT(resolver_.read("a", steering({old})), IsEmpty()) << "it was given to a host of that name before this one";
  const auto fresh = directive("2", Wish::drain, Target::host, "ops:7");
  const auto orders = resolver_.read("a", steering({old, fresh}));
  ASSERT_THAT(orders, SizeIs(1));
  EXPECT_EQ(orders[0].id, "2");
  EXPECT_THAT(resolver_.read("a", steering({old, fresh})), IsEmpty());
  resolver_.answered("a", {"2", true, "draining"});
  ASSERT_THAT(resolver_.answers("a", {}), SizeIs(1));
  resolver_.read("a", {});
  EXPECT_THAT(resolver_.answers("a", {}), IsEmpty()) << "nobody asks any more";
}

TEST_F(DirectiveResolverTest, OrdersForOthersAreNoneForIt) {
  resolver_.read("a", {});
  EXPECT_THAT(resolver_.read("a", steering({directive("1", Wish::drain, Target::host, "dead"),
                                            directive("2", Wish::reload, Target::host, "op"),
                                            directive("3", Wish::drain, Target::all, "")})),
              IsEmpty());
  EXPECT_THAT(resolver_.read("a", steering({directive("4", Wish::reload, Target::all, ""),
                                            directive("5", Wish::reload, Target::host, "ops:7:abc"),
                                            directive("6", Wish::cancel_running, Target::message, "m")})),
              SizeIs(3));
}

}  // namespace
}  // namespace sluice::fleet
