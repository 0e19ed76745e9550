#include "host/operate/top_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/operate/fleet_rig.hpp"

namespace sluice::operate {
namespace {

using fleet::Target;
using fleet::Wish;
using test::given;
using test::job_record;
using test::kNoon;
using test::known_host;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = TopKey::Kind;

QueueCount count_of(std::uint64_t ready, WallTime at = kNoon) {
  QueueCount count;
  count.standard.ready = ready;
  count.counted_at = at;
  return count;
}

std::vector<std::string> shown(const TopModel& model) {
  std::vector<std::string> names;
  for (const TopQueue& queue : model.queues()) {
    names.push_back(queue.name);
  }
  return names;
}

std::optional<TopWish> type(TopModel& model, const std::string& text) {
  std::optional<TopWish> last;
  for (const char character : text) {
    last = model.press({character == '\n' ? Kind::enter : Kind::character, character});
  }
  return last;
}

TopModel three_queues() {
  TopModel model({"mails", "orders", "images"});
  model.see("mails", count_of(5), kNoon);
  model.see("orders", count_of(70), kNoon);
  model.see("images", count_of(0), kNoon);
  return model;
}

TEST(TopModel, SortsByEachColumnAndTheOtherWayRound) {
  TopModel model = three_queues();
  EXPECT_THAT(shown(model), ElementsAre("orders", "mails", "images")) << "most ready first";
  type(model, "r");
  EXPECT_THAT(shown(model), ElementsAre("images", "mails", "orders"));
  type(model, "rS");
  EXPECT_EQ(model.order(), TopOrder::name);
  EXPECT_THAT(shown(model), ElementsAre("images", "mails", "orders"));
  type(model, "S");
  EXPECT_EQ(model.order(), TopOrder::failed);
  type(model, "s");
  EXPECT_EQ(model.order(), TopOrder::name) << "it goes round";
}

TEST(TopModel, SelectionStaysWithItsQueueWhateverTheOrder) {
  TopModel model = three_queues();
  model.press({Kind::down});
  EXPECT_EQ(model.queues()[model.selected()].name, "mails");
  model.see("mails", count_of(500), kNoon);
  EXPECT_EQ(model.queues()[model.selected()].name, "mails");
  EXPECT_EQ(model.selected(), 0U);
  model.press({Kind::up});
  model.press({Kind::up});
  EXPECT_EQ(model.selected(), 0U);
  type(model, "jjjjjj");
  EXPECT_EQ(model.queues()[model.selected()].name, "images") << "no further than the last";
}

TEST(TopModel, FiltersAsItIsTyped) {
  TopModel model = three_queues();
  EXPECT_FALSE(type(model, "/mail"));
  EXPECT_EQ(model.mode(), TopMode::filter);
  EXPECT_THAT(shown(model), ElementsAre("mails"));
  type(model, "q");
  EXPECT_THAT(shown(model), ElementsAre()) << "q is a letter here";
  model.press({Kind::erase});
  type(model, "\n");
  EXPECT_EQ(model.mode(), TopMode::plain);
  EXPECT_THAT(shown(model), ElementsAre("mails")) << "it stays";
  model.press({Kind::escape});
  EXPECT_EQ(shown(model).size(), 3U);
  type(model, "/\xc3\xa4");
  model.press({Kind::erase});
  EXPECT_EQ(model.filter(), "") << "a whole character";
  type(model, std::string(1000, 'x'));
  EXPECT_LE(model.filter().size(), 100U);
}

TEST(TopModel, PausesOnlyWhatIsConfirmed) {
  TopModel model = three_queues();
  EXPECT_FALSE(type(model, "p"));
  EXPECT_EQ(model.mode(), TopMode::confirm);
  EXPECT_FALSE(type(model, "n"));
  EXPECT_EQ(model.message(), "left as it is");
  type(model, "p");
  model.see("mails", count_of(1'000'000), kNoon);
  const auto wish = type(model, "y");
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->kind, TopWish::Kind::pause);
  EXPECT_EQ(wish->queue, "orders") << "the one that was asked about, wherever it is sorted to now";
  fleet::SteeringView steering;
  steering.given = {given(Wish::pause, Target::queue, "orders")};
  model.see({}, steering);
  type(model, "p");
  EXPECT_EQ(type(model, "y")->kind, TopWish::Kind::resume);
}

TEST(TopModel, PauseOfNothingIsNothing) {
  TopModel model({});
  EXPECT_FALSE(type(model, "p"));
  EXPECT_EQ(model.mode(), TopMode::plain);
  type(model, "jkr/x\n");
  EXPECT_TRUE(shown(model).empty());
}

TEST(TopModel, EndsOnQAndLooksOnSpace) {
  TopModel model = three_queues();
  EXPECT_EQ(type(model, " ")->kind, TopWish::Kind::look);
  EXPECT_EQ(type(model, "q")->kind, TopWish::Kind::quit);
  type(model, "?");
  EXPECT_EQ(model.mode(), TopMode::help);
  EXPECT_FALSE(type(model, "q")) << "any key ends the help";
  EXPECT_EQ(model.mode(), TopMode::plain);
}

TEST(TopModel, TakesTheRateInFromTwoCountsAndWhatLeft) {
  TopModel model({"mails"});
  fleet::FleetView view;
  auto job = job_record("mailer", "mails");
  job.pace.done = 10;
  job.pace.failed = 0.5;
  job.pace.over = std::chrono::seconds(10);
  view.hosts = {known_host("a", 1, {job})};
  model.see(view, {});
  model.see("mails", count_of(100, kNoon), kNoon);
  EXPECT_FALSE(model.queues()[0].in) << "one count tells nothing";
  model.see("mails", count_of(104, kNoon + std::chrono::seconds(2)), kNoon);
  EXPECT_DOUBLE_EQ(model.queues()[0].in.value_or(-1), 12.0);
  EXPECT_DOUBLE_EQ(model.queues()[0].out.value_or(-1), 10.0);
  EXPECT_DOUBLE_EQ(model.queues()[0].failed.value_or(-1), 0.5);
  model.see("mails", count_of(0, kNoon + std::chrono::seconds(4)), kNoon);
  EXPECT_DOUBLE_EQ(model.queues()[0].in.value_or(-1), 0.0) << "a purge is no negative rate";
}

TEST(TopModel, WhatIsNotKnownYetIsNoZero) {
  TopModel model({"mails", "idle"});
  fleet::FleetView view;
  view.hosts = {known_host("a", 1, {job_record("mailer", "mails")})};
  model.see(view, {});
  for (const TopQueue& queue : model.queues()) {
    EXPECT_EQ(queue.out.has_value(), queue.name == "idle") << queue.name;
    EXPECT_EQ(queue.failed.has_value(), queue.name == "idle") << "nobody works there";
  }
}

TEST(TopModel, TakesNoRateFromACountUnderWay) {
  TopModel model({"mails"});
  QueueCount partial = count_of(1000, kNoon);
  partial.standard.at_least = true;
  model.see("mails", partial, kNoon);
  partial.standard.ready = 2000;
  partial.counted_at += std::chrono::seconds(2);
  model.see("mails", partial, kNoon);
  EXPECT_FALSE(model.queues()[0].in);
}

TEST(TopModel, OfOneQueueShowsItsHostsAndJobsAlone) {
  TopModel model({"mails", "orders"}, "mails");
  fleet::FleetView view;
  view.hosts = {known_host("a", 1, {job_record("resize", "images")}),
                known_host("b", 2, {job_record("mailer", "mails"), job_record("picker", "orders")})};
  model.see(view, {});
  EXPECT_THAT(shown(model), ElementsAre("mails"));
  EXPECT_EQ(model.fleet().hosts.size(), 1U);
  ASSERT_EQ(model.slowest_jobs().size(), 1U);
  EXPECT_EQ(model.slowest_jobs().front().name, "mailer");
}

TEST(TopModel, KnowsQueuesFromHostsAndWhatIsPausedThere) {
  TopModel model({"mails"});
  fleet::FleetView view;
  auto paused = job_record("resize", "images");
  paused.paused = true;
  view.hosts = {known_host("a", 1, {paused, job_record("mailer", "mails")})};
  model.see(view, {});
  EXPECT_EQ(model.queues().size(), 2U);
  const auto queues = model.queues();
  const TopQueue& images = queues[0].name == "images" ? queues[0] : queues[1];
  EXPECT_EQ(images.jobs, 1U);
  EXPECT_EQ(images.paused_jobs, 1U);
  EXPECT_FALSE(images.paused) << "the job is, not the queue";
}

TEST(TopModel, AQueueInTroubleKeepsItsLastFigures) {
  TopModel model = three_queues();
  model.see_trouble("orders", "the file is locked");
  EXPECT_THAT(model.queues()[0].trouble, HasSubstr("locked"));
  EXPECT_EQ(model.queues()[0].count->standard.ready, 70U);
  model.see("orders", count_of(71), kNoon);
  EXPECT_EQ(model.queues()[0].trouble, "");
}

TEST(TopModel, SlowestFirstAndStuckBeforeAll) {
  TopModel model({});
  fleet::FleetView view;
  auto slow = job_record("slow", "a");
  slow.pace.mean = std::chrono::seconds(9);
  auto stuck = job_record("stuck", "b");
  stuck.stuck = 1;
  view.hosts = {known_host("a", 1, {job_record("quick", "c"), slow, stuck})};
  model.see(view, {});
  std::vector<std::string> names;
  for (const JobSummary& job : model.slowest_jobs()) {
    names.push_back(job.name);
  }
  EXPECT_THAT(names, ElementsAre("stuck", "slow", "quick"));
}

}  // namespace
}  // namespace sluice::operate
