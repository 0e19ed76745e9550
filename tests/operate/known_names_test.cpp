#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/operate/fleet_report.hpp"
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

KnownNames some_names() {
  KnownNames names;
  names.add_job("mailer", "mails");
  names.add_job("orders", "orders");
  names.add_job("audit", "audit");
  names.add_job("copies", "audit");
  names.add_queue("returns");
  return names;
}

std::string meant(const Result<fleet::Directive>& found) {
  return found ? std::string(to_string(found->target)) + " " + found->name : found.error().message();
}

TEST(KnownNames, TellJobsFromQueues) {
  const KnownNames names = some_names();
  EXPECT_EQ(meant(names.thing(Wish::pause, "mailer")), "job mailer");
  EXPECT_EQ(meant(names.thing(Wish::pause, "mails")), "queue mails");
  EXPECT_EQ(meant(names.thing(Wish::pause, "returns")), "queue returns");
  EXPECT_EQ(names.queue_of_job("mailer"), "mails");
}

TEST(KnownNames, TakeAJobAndItsOwnQueueForOne) {
  EXPECT_EQ(meant(some_names().thing(Wish::pause, "orders")), "queue orders");
}

TEST(KnownNames, AskWhichIsMeantWhereItMakesADifference) {
  const auto found = some_names().thing(Wish::pause, "audit");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), ErrorCode::conflict);
  EXPECT_THAT(found.error().message(), HasSubstr("write --job audit or --queue audit"));
  EXPECT_EQ(meant(some_names().job(Wish::pause, "audit")), "job audit");
  EXPECT_EQ(meant(some_names().queue(Wish::pause, "audit")), "queue audit");
  KnownNames elsewhere;
  elsewhere.add_job("a", "b");
  elsewhere.add_job("b", "c");
  EXPECT_EQ(elsewhere.thing(Wish::pause, "b").error().code(), ErrorCode::conflict);
}

TEST(KnownNames, NameTheOneThatWasProbablyMeant) {
  EXPECT_EQ(meant(some_names().thing(Wish::pause, "maler")),
            "there is no job or queue \"maler\"; did you mean \"mailer\"?");
  EXPECT_EQ(meant(some_names().job(Wish::scale, "nothing-like-it")),
            "there is no job \"nothing-like-it\"; there are audit, copies, mailer, orders");
  EXPECT_EQ(meant(KnownNames().queue(Wish::pause, "x")), "there is no queue \"x\"; none is known here");
  EXPECT_EQ(some_names().thing(Wish::pause, "maler").error().code(), ErrorCode::not_found);
}

TEST(KnownNames, LearnFromHostsAndFromWhatIsSteered) {
  KnownNames names;
  fleet::FleetView view;
  view.hosts.push_back(known_host("web", 7, {job_record("resize", "images")}));
  view.hosts.push_back(known_host("web", 8, {job_record("resize", "thumbs")}));
  names.add(view);
  EXPECT_EQ(meant(names.thing(Wish::pause, "resize")), "job resize");
  EXPECT_EQ(meant(names.thing(Wish::pause, "thumbs")), "queue thumbs");
  EXPECT_EQ(names.queue_of_job("resize"), "") << "it works on two";
  for (const char* const word : {"web", "web:7", "web-7"}) {
    EXPECT_EQ(meant(names.host(Wish::drain, word)), std::string("host ") + word);
  }
  EXPECT_THAT(meant(names.host(Wish::drain, "wbe")), HasSubstr("did you mean \"web\"?"));
  EXPECT_THAT(names.hosts(), ElementsAre("web:7", "web:8"));

  fleet::SteeringView steering;
  steering.given = {given(Wish::pause, Target::job, "gone"), given(Wish::pause, Target::queue, "old")};
  names.add(steering);
  EXPECT_EQ(meant(names.thing(Wish::pause, "gone")), "job gone") << "it can still be resumed";
  EXPECT_EQ(meant(names.thing(Wish::pause, "old")), "queue old");
}

TEST(JobSummary, AddsUpWhatHostsTellAndWhatFilesSay) {
  fleet::FleetView view;
  auto slow = job_record("resize", "images", 16);
  slow.file_concurrency = 8;
  slow.running = 3;
  slow.stuck = 1;
  slow.done = 10;
  slow.paused = true;
  slow.pace.done = 1.5;
  slow.pace.mean = std::chrono::seconds(2);
  auto quick = job_record("resize", "images", 4);
  quick.done = 5;
  quick.pace.done = 2.5;
  quick.pace.mean = std::chrono::seconds(1);
  quick.plugin_version = "1.3.0";
  view.hosts = {known_host("a", 1, {slow}), known_host("b", 2, {quick})};
  auto dead = known_host("c", 3, {quick});
  dead.pulse = fleet::Pulse::silent;
  view.hosts.push_back(dead);
  fleet::SteeringView steering;
  steering.given = {given(Wish::scale, Target::job, "resize", "16"), given(Wish::pause, Target::queue, "images"),
                    given(Wish::pause, Target::job, "other"), given(Wish::log_level, Target::all, "", "debug"),
                    given(Wish::drain, Target::host, "resize")};
  const JobSummary used{.name = "resize", .queue = "images", .handler = "h", .file_workers = 8, .in_files = true};
  const JobSummary unused{.name = "nobody", .queue = "x", .dead_letters = true, .handler = "h2"};
  const auto jobs = summarize_jobs({used, unused}, view, steering);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].name, "nobody");
  EXPECT_TRUE(jobs[0].hosts.empty());
  EXPECT_TRUE(jobs[0].dead_letters);
  EXPECT_FALSE(jobs[0].paused()) << "nobody runs it, paused or not";
  const JobSummary& resize = jobs[1];
  EXPECT_THAT(resize.hosts, ElementsAre("a:1", "b:2")) << "a silent host runs nothing";
  EXPECT_EQ(resize.workers, 20U);
  EXPECT_EQ(resize.file_workers, 8U);
  EXPECT_EQ(resize.running, 3U);
  EXPECT_EQ(resize.stuck, 1U);
  EXPECT_EQ(resize.done, 15U);
  EXPECT_DOUBLE_EQ(resize.pace.done, 4.0);
  EXPECT_EQ(resize.pace.mean, std::chrono::seconds(2)) << "the slowest host's";
  EXPECT_THAT(resize.plugins, ElementsAre("resize.so 1.2.0", "resize.so 1.3.0"));
  EXPECT_EQ(resize.paused_hosts, 1U);
  EXPECT_FALSE(resize.paused());
  ASSERT_EQ(resize.wishes.size(), 2U) << "what stands about it or its queue";
}

TEST(JobSummary, KeepsJobsOfOneNameOnTwoQueuesApart) {
  fleet::FleetView view;
  view.hosts = {known_host("a", 1, {job_record("j", "q1"), job_record("j", "q2")})};
  EXPECT_EQ(summarize_jobs({}, view, {}).size(), 2U);
}

TEST(JobSummary, HasNoMoreOfASharedLimitThanThereIs) {
  fleet::JobRecord job = job_record("mailer", "mails");
  job.rate_limit = "20/s";
  job.rate = 15;
  fleet::FleetView view;
  view.hosts = {known_host("a", 1, {job}), known_host("b", 2, {job})};
  const JobSummary file{.name = "mailer", .queue = "mails", .rate_limit = "20/s", .shared_rate = 20};
  EXPECT_EQ(summarize_jobs({file}, view, {}).at(0).rate, 20) << "their records are of different moments";
  view.hosts[1].record.jobs[0].rate_limit = "40/s";
  EXPECT_EQ(summarize_jobs({file}, view, {}).at(0).rate, 30) << "not what the file here says";
}

TEST(KnownNames, SuggestNoHostThatHasEnded) {
  fleet::FleetView view;
  view.hosts = {known_host("a", 1, {}), known_host("b", 2, {}), known_host("c", 3, {})};
  view.hosts[0].record.state = fleet::HostState::ended;
  view.hosts[1].silence = "its process is gone";
  view.hosts[0].pulse = view.hosts[1].pulse = view.hosts[2].pulse = fleet::Pulse::silent;
  KnownNames names;
  names.add(view);
  EXPECT_THAT(names.hosts(), ElementsAre("c:3")) << "which may live";
  EXPECT_EQ(meant(names.host(Wish::drain, "a:1")), "host a:1");
}

/// A host that has obeyed so much on its board.
fleet::KnownHost host_that_saw(const std::string& name, std::int64_t version) {
  fleet::KnownHost host = known_host(name, 1, {job_record("mailer", "mails")});
  host.record.seen = version;
  return host;
}

fleet::Obedience obedience(const std::vector<fleet::Given>& all, const fleet::FleetView& view) {
  return fleet::Fleet::obedience(all, view);
}

TEST(Obedience, IsWaitedForUntilEveryHostHasSeenIt) {
  const std::vector pause{given(Wish::pause, Target::job, "mailer")};
  fleet::FleetView view;
  view.sightings = {host_that_saw("a", 3), host_that_saw("b", 2)};
  EXPECT_THAT(obedience(pause, view).seen_by, ElementsAre("a:1"));
  EXPECT_THAT(obedience(pause, view).waited_for, ElementsAre("b:1"));
  EXPECT_FALSE(obedience(pause, view).done_by_somebody());
  view.sightings = {host_that_saw("a", 4), host_that_saw("b", 3)};
  EXPECT_THAT(obedience(pause, view).seen_by, ElementsAre("a:1", "b:1"));
  EXPECT_THAT(obedience(pause, view).waited_for, ElementsAre());
}

TEST(Obedience, SaysHowLongWhoHasNotObeyedHasBeenSilent) {
  fleet::FleetView view;
  view.sightings = {host_that_saw("a", 2), host_that_saw("b", 2)};
  view.sightings[1].pulse = fleet::Pulse::late;
  view.sightings[1].age = std::chrono::seconds(45);
  view.hosts = view.sightings;
  const auto found = obedience({given(Wish::pause, Target::job, "mailer")}, view);
  EXPECT_THAT(found.waited_for, ElementsAre("a:1", "b:1"));
  EXPECT_THAT(found.quiet, ElementsAre(std::pair(std::string("b:1"), Duration(std::chrono::seconds(45)))));
}

TEST(Obedience, HasNothingToWaitForWithoutHosts) {
  EXPECT_THAT(obedience({given(Wish::pause, Target::job, "mailer")}, {}).waited_for, ElementsAre());
}

TEST(Obedience, AnOrderIsDoneWhenSomebodySaysSo) {
  fleet::FleetView view;
  view.sightings = {host_that_saw("a", 3), host_that_saw("b", 3)};
  view.sightings[1].record.answers.push_back({"d1", true, "asked it to stop"});
  const auto found = obedience({given(Wish::cancel_running, Target::message, "A-1")}, view);
  EXPECT_THAT(found.waited_for, ElementsAre());
  EXPECT_TRUE(found.done_by_somebody());
  EXPECT_EQ(found.answers.size(), 1U);
}

TEST(Obedience, AHostThatReadsItOnTwoBoardsAnswersOnce) {
  auto here = given(Wish::reload, Target::host, "a");
  auto there = here;
  there.place = "another.db";
  there.directive.id = "d2";
  fleet::FleetView view;
  view.sightings = {host_that_saw("a", 3), host_that_saw("a", 3)};
  view.sightings[0].record.answers.push_back({"d1", false, "not here"});
  view.sightings[1].record.answers.push_back({"d2", true, "reloading"});
  view.sightings[1].place = "another.db";
  const auto found = obedience({here, there}, view);
  EXPECT_THAT(found.waited_for, ElementsAre());
  ASSERT_EQ(found.answers.size(), 1U);
  EXPECT_EQ(found.answers.at("a:1").text, "reloading");
}

}  // namespace
}  // namespace sluice::operate
