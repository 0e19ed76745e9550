// The commands that show and steer hosts, through the real binary, where no host runs. With hosts:
// tests/e2e/fleet_test.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

/// A folder with two jobs, and no host.
class FleetCommands : public testing::Test {
 protected:
  FleetCommands() : folder_("[host]\nname = \"here\"\n[store]\npath = \"s.db\"\n[queues.returns]\n") {
    folder_.write("jobs.d/mailer.toml", "[job]\nqueue = \"mails\"\nhandler = \"mailer\"\nconcurrency = 4\n");
    folder_.write("jobs.d/picker.toml", "[job]\nqueue = \"orders\"\nhandler = \"picker\"\n");
  }

  boost::json::value json(Words words) const {
    words.insert(words.end(), {"--output", "json"});
    const Finished finished = folder_.run(words);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return boost::json::parse(finished.out);
  }
  std::string text(Words words) const {
    words.insert(words.end(), {"--output", "text"});
    const Finished finished = folder_.run(words);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out + finished.err;
  }
  /// The only line on standard error, of a command that fails with this code.
  std::string refusal(const Words& words, int code) const {
    const Finished finished = folder_.run(words);
    EXPECT_EQ(finished.exit_code, code) << finished.out << finished.err;
    EXPECT_EQ(finished.err_lines().size(), 1U) << finished.err;
    return finished.err;
  }

  HostFolder folder_;
};

TEST_F(FleetCommands, SayThatNobodyIsThere) {
  EXPECT_THAT(json({"hosts"}).as_array(), IsEmpty());
  EXPECT_THAT(json({"running"}).as_array(), IsEmpty());
  EXPECT_THAT(json({"audit"}).as_array(), IsEmpty());
  EXPECT_THAT(text({"hosts"}), HasSubstr("no host works on these queues"));
  EXPECT_THAT(text({"running"}), HasSubstr("no handler is at work"));
  EXPECT_THAT(text({"audit"}), HasSubstr("nobody has steered or changed anything"));
}

TEST_F(FleetCommands, AreRefusedBeforeTheyDoAnythingWhereNobodyKnowsHowToShowIt) {
  const Finished paused =
      run_binary({"pause", "mailer"},
                 {.input = {}, .folder = folder_.path(), .environment = {{"SLUICE_OUTPUT", "xml"}}, .stdout_file = {}});
  EXPECT_EQ(paused.exit_code, 64);
  EXPECT_THAT(paused.err, HasSubstr("SLUICE_OUTPUT=\"xml\" is neither json nor text"));
  EXPECT_THAT(json({"audit"}).as_array(), IsEmpty());
}

TEST_F(FleetCommands, EachWishThatIsTakenBackIsNamed) {
  folder_.write("jobs.d/second.toml", "[job]\nqueue = \"mails2\"\nhandler = \"mailer\"\n");
  text({"pause", "--queue", "mails2"});
  text({"pause", "--queue", "mails"});
  EXPECT_THAT(text({"resume", "--all"}), HasSubstr("taken back: pause queue mails2, pause queue mails;"));
}

TEST_F(FleetCommands, JobsOfFilesAreShownThoughNobodyRunsThem) {
  const auto jobs = json({"jobs"}).as_array();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].at("job").as_string(), "mailer");
  EXPECT_EQ(jobs[0].at("file_workers").as_int64(), 4);
  EXPECT_THAT(jobs[0].at("hosts").as_array(), IsEmpty());
  EXPECT_THAT(text({"jobs"}), AllOf(HasSubstr("no host"), HasSubstr("(file: 4)")));
}

// Others stood beside it.
TEST_F(FleetCommands, OfAQueueThatIsNamedItsJobsSchedulesAndCountsAloneAreShown) {
  for (const std::string job : {"mailer", "picker"}) {
    folder_.write("jobs.d/" + job + ".toml", "[job]\nqueue = \"" + std::string(job == "mailer" ? "mails" : "orders") +
                                                 "\"\nhandler = \"h\"\n[schedule.of_" + job + "]\nevery = \"1d\"\n");
  }
  EXPECT_THAT(text({"jobs", "mails"}), AllOf(HasSubstr("of_mailer"), Not(HasSubstr("of_picker"))));
  EXPECT_THAT(text({"top", "mails", "--once"}),
              AllOf(HasSubstr("mails"), Not(HasSubstr("orders")), Not(HasSubstr("returns"))));
  EXPECT_THAT(text({"top", "--once"}), AllOf(HasSubstr("mails"), HasSubstr("orders"), HasSubstr("returns")));
}

TEST_F(FleetCommands, AWishStandsBeforeAnyHostDoes) {
  EXPECT_THAT(text({"pause", "mailer"}), HasSubstr("pause job mailer; no host runs now, those that start obey it"));
  EXPECT_THAT(text({"scale", "picker", "16"}), HasSubstr("no host runs now"));
  EXPECT_THAT(text({"jobs"}), AllOf(HasSubstr("paused by "), HasSubstr("scaled to 16 by ")));
  const auto audit = json({"audit"}).as_array();
  ASSERT_EQ(audit.size(), 2U);
  EXPECT_THAT(std::string(audit[1].at("what").as_string()), HasSubstr("pause job mailer"));
  EXPECT_THAT(std::string(audit[1].at("who").as_string()), HasSubstr("@"));
  text({"resume", "mailer"});
  text({"scale", "picker", "--reset"});
  EXPECT_THAT(text({"jobs"}), Not(HasSubstr("paused by ")));
  EXPECT_THAT(refusal({"resume", "mailer"}, 1), HasSubstr("\"mailer\" is not paused"));
  EXPECT_THAT(refusal({"scale", "picker", "--reset"}, 1), HasSubstr("job picker is not scaled"));
  EXPECT_EQ(json({"audit", "--limit", "3"}).as_array().size(), 3U);
}

TEST_F(FleetCommands, TheTestMessagesAreOneDeed) {
  for (int time = 0; time < 2; ++time) {
    ASSERT_EQ(folder_.run({"enqueue-test", "--queue", "mails"}).exit_code, 0);
  }
  const auto audit = json({"audit", "--queue", "mails"}).as_array();
  ASSERT_EQ(audit.size(), 2U) << "and not one for each that was looked for, to be replaced";
  EXPECT_EQ(audit[0].at("what").as_string(), "enqueue-test of queue mails");
  EXPECT_EQ(boost::json::serialize(audit[0].at("changed")), "4");
}

TEST_F(FleetCommands, EveryChangeOfMessagesIsNotedWithItsReasonAndItsCounts) {
  for (const char* const id : {"A-1", "A-2", "A-3", "A-4"}) {
    ASSERT_EQ(folder_.run({"send", "--queue", "mails", "--id", id, "--data", "{\"n\": 1}"}).exit_code, 0);
  }
  json({"invalid", "--queue", "mails", "--all", "--yes", "--reason", "no such customer"});
  json({"redrive", "--queue", "mails", "--where", "id != \"A-4\"", "--reason", "he is there", "--yes"});
  json({"edit", "--queue", "mails", "A-1", "--set", "data.n=2", "--set", "attributes.tenant=acme", "--reason",
        "typing error"});
  json({"delete", "--queue", "mails", "A-1"});
  EXPECT_EQ(folder_.run({"delete", "--queue", "mails", "A-1"}).exit_code, 1);
  json({"purge", "--queue", "mails", "--limit", "1", "--yes"});
  json({"purge", "--queue", "mails", "--dry-run"});
  text({"pause", "--queue", "returns"});
  const auto audit = json({"audit", "--queue", "mails"}).as_array();
  ASSERT_EQ(audit.size(), 5U) << "neither what was gone already nor a dry run has changed anything";
  const auto told = [&audit](std::size_t index, const char* member) {
    const auto& value = audit[index].at(member);
    return value.is_string() ? std::string(value.as_string()) : boost::json::serialize(value);
  };
  EXPECT_EQ(told(0, "what"), "purge queue mails");
  EXPECT_EQ(told(0, "filter"), "--limit 1");
  EXPECT_EQ(told(0, "changed"), "1");
  EXPECT_EQ(told(1, "what"), "delete message A-1 of queue mails");
  EXPECT_EQ(told(2, "what"), "edit message A-1 of queue mails");
  EXPECT_EQ(told(2, "filter"), "--set data.n (1 byte) --set attributes.tenant=acme") << "a body may be secret";
  EXPECT_EQ(told(2, "reason"), "typing error");
  EXPECT_EQ(told(3, "what"), "redrive the dead-letter half of queue mails");
  EXPECT_EQ(told(3, "filter"), "--where 'id != \"A-4\"'");
  EXPECT_EQ(told(3, "changed"), "3");
  EXPECT_EQ(told(4, "what"), "invalid queue mails");
  EXPECT_EQ(told(4, "filter"), "--all");
  EXPECT_EQ(told(4, "changed"), "4");
  EXPECT_EQ(told(4, "state"), "done");
  EXPECT_THAT(text({"audit"}), AllOf(HasSubstr("pause queue returns"), HasSubstr("4 changed"),
                                     HasSubstr("invalid queue mails --all (no such customer)")));
  EXPECT_EQ(json({"audit", "--since", "1h"}).as_array().size(), 6U);
  EXPECT_THAT(json({"audit", "--since", "2200-01-01T00:00:00Z"}).as_array(), IsEmpty());
  EXPECT_THAT(refusal({"audit", "--since", "2026-01-31"}, 64),
              HasSubstr("--since 2026-01-31 is no time such as 2026-01-31T12:00:00Z, and no duration such as 2h"));
}

TEST_F(FleetCommands, TheAuditHasThePlan) {
  std::string lines;
  for (int i = 0; i < 502; ++i) {  // more than a page
    lines += "1\n";
  }
  ASSERT_EQ(folder_.run({"send", "mails", "-"}, lines).exit_code, 0);
  Words words{"edit", "mails", "--where", "data = 1", "--set", "data=22", "--limit", "501", "--yes"};
  const auto first = json(words);
  words.insert(words.end(), {"--rate", "10000/s", "--resume", std::string(first.at("resume").as_string())});
  json(words);
  json({"delay", "mails", "--all", "--for", "1h", "--yes"});
  const auto audit = json({"audit", "--queue", "mails"}).as_array();
  ASSERT_EQ(audit.size(), 3U);
  EXPECT_EQ(audit[2].at("filter").as_string(), "--where 'data = 1' --limit 501 --set data (2 bytes)");
  EXPECT_EQ(audit[1].at("filter").as_string(),
            "--where 'data = 1' --limit 501 --rate 10000/s --resume --set data (2 bytes)");
  EXPECT_EQ(audit[0].at("filter").as_string(), "--for 1h --all");
}

TEST_F(FleetCommands, AMoveIsFoundUnderBothOfItsQueues) {
  folder_.write("host.toml",
                "[store]\npath = \"s.db\"\n[stores.other]\nkind = \"sqlite\"\npath = \"o.db\"\n"
                "[queues.returns]\n[queues.quick]\nstore = \"other\"\n");
  text({"move", "returns", "quick", "--yes"});
  for (const char* const queue : {"returns", "quick"}) {
    const auto audit = json({"audit", queue}).as_array();
    ASSERT_EQ(audit.size(), 1U);
    EXPECT_THAT(std::string(audit[0].at("what").as_string()), HasSubstr("move queue returns to quick in "));
    EXPECT_EQ(audit[0].at("state").as_string(), "done");
  }
  // Who has the other file alone finds it as well.
  folder_.write("host.toml", "[store]\npath = \"o.db\"\n[queues.quick]\n");
  EXPECT_EQ(json({"audit", "quick"}).as_array().size(), 1U);
}

// It said "interrupted", where a bulk command says what has happened.
TEST_F(FleetCommands, AMoveWhoseReaderHasGoneSaysSo) {
  folder_.write("host.toml",
                "[store]\npath = \"s.db\"\n[stores.other]\nkind = \"sqlite\"\npath = \"o.db\"\n"
                "[queues.returns]\n[queues.quick]\nstore = \"other\"\n");
  std::string lines;
  for (int message = 0; message < 2000; ++message) {
    lines += std::to_string(message) + "\n";
  }
  ASSERT_EQ(folder_.run({"send", "--queue", "returns", "-"}, lines).exit_code, 0);
  const std::string records = folder_.run({"export", "--queue", "returns"}).out;
  ASSERT_EQ(folder_.run({"import", "--queue", "quick", "-"}, records).exit_code, 0);
  const Finished moved =
      run_binary({"move", "returns", "quick", "--yes", "--output", "text"},
                 {.input = {}, .folder = folder_.path(), .environment = {}, .stdout_file = {}, .closed_output = true});
  EXPECT_NE(moved.exit_code, 0);
  const auto audit = json({"audit", "returns"}).as_array();
  EXPECT_EQ(audit.at(0).at("state").as_string(), "stopped");
  EXPECT_EQ(audit.at(0).at("stopped_by").as_string(), "nobody reads its output");
}

TEST_F(FleetCommands, AJobOfOneQueueSaysWhoseKeysAreMeant) {
  EXPECT_THAT(text({"keys", "list", "--job", "mailer"}), HasSubstr("no idempotency keys in queue mails"));
  folder_.write("jobs.d/mailer.toml", "[job]\nqueues = [\"mails:2\", \"returns:1\"]\nhandler = \"mailer\"\n");
  EXPECT_THAT(refusal({"keys", "list", "--job", "mailer"}, 64), HasSubstr("--queue QUEUE, one of mails, returns"));
}

TEST_F(FleetCommands, WhoIsBehindSudoIsNamed) {
  const auto who_with = [this](const std::string& name) {
    const Finished paused =
        run_binary({"pause", "mailer"},
                   {.input = {}, .folder = folder_.path(), .environment = {{"SUDO_USER", name}}, .stdout_file = {}});
    EXPECT_EQ(paused.exit_code, 0) << paused.err;
    return std::string(json({"audit", "--limit", "1"}).as_array()[0].at("who").as_string());
  };
  EXPECT_THAT(who_with("ann"), AllOf(StartsWith("ann as "), HasSubstr("@")));
  for (const std::string& odd : {std::string(), std::string("ann@ops-9 as bo"), std::string("ann\nbo"),
                                 std::string(200, 'a'), std::string("\x1b[2J")}) {
    EXPECT_THAT(who_with(odd), Not(HasSubstr(" as "))) << odd;
  }
}

TEST_F(FleetCommands, AJobThatStandsWithItsQueueSaysSo) {
  text({"pause", "--queue", "mails"});
  EXPECT_THAT(text({"jobs"}), HasSubstr("queue paused by "));
  EXPECT_THAT(refusal({"resume", "mailer"}, 1), HasSubstr("its queue is; write `sluice resume --queue mails`"));
  text({"pause", "returns"});
  text({"resume", "--all"});
  EXPECT_THAT(refusal({"resume", "--all"}, 1), HasSubstr("nothing is paused"));
}

TEST_F(FleetCommands, CheckShowsWhatIsSteeredBesideTheFile) {
  folder_.write("jobs.d/mailer.toml", "[job]\nqueue = \"mails\"\nhandler = \"greet\"\n[job.options]\nport = 7\n");
  std::filesystem::remove(folder_.path() + "/jobs.d/picker.toml");
  std::filesystem::create_directory(folder_.path() + "/plugins");
  std::filesystem::copy(SLUICE_FIXTURE_PLUGIN, folder_.path() + "/plugins/fixture.so");
  folder_.run({"check"});
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/s.db")) << "to look is not to make it";
  text({"scale", "mailer", "3"});
  EXPECT_THAT(text({"check"}), HasSubstr("scaled to 3 by "));
}

TEST_F(FleetCommands, RefuseWhatNobodyKnows) {
  EXPECT_THAT(refusal({"pause", "maler"}, 64),
              HasSubstr("there is no job or queue \"maler\"; did you mean \"mailer\"?"));
  EXPECT_THAT(refusal({"resume", "maler"}, 64), HasSubstr("did you mean \"mailer\"?"));
  EXPECT_THAT(refusal({"scale", "pickr", "2"}, 64), HasSubstr("did you mean \"picker\"?"));
  EXPECT_THAT(refusal({"drain", "web"}, 1), HasSubstr("there is no host \"web\"; none is known here"));
  EXPECT_THAT(refusal({"reload", "web"}, 1), HasSubstr("there is no host \"web\""));
  EXPECT_THAT(refusal({"log-level", "debug", "web"}, 1), HasSubstr("there is no host \"web\""));
  EXPECT_THAT(refusal({"running", "pickr"}, 64), HasSubstr("did you mean \"picker\"?"));
  EXPECT_THAT(refusal({"running", "orders", "--job", "pickr"}, 64), HasSubstr("did you mean \"picker\"?"));
  EXPECT_THAT(refusal({"cancel-running", "A-1"}, 1), HasSubstr("no host is at work on message A-1"));
  EXPECT_THAT(refusal({"cancel-running", "oders", "A-1"}, 64), HasSubstr("did you mean \"orders\"?"));
  EXPECT_THAT(json({"audit"}).as_array().size(), 1U) << "only the order that was written: to cancel";
}

TEST_F(FleetCommands, RefuseWrongCommandLines) {
  EXPECT_THAT(refusal({"pause"}, 64), HasSubstr("nothing is named"));
  EXPECT_THAT(refusal({"pause", "mailer", "--job", "mailer"}, 64), HasSubstr("exclude each other"));
  EXPECT_THAT(refusal({"resume", "mailer", "--all"}, 64), HasSubstr("--all and QUEUE-OR-JOB exclude each other"));
  EXPECT_THAT(refusal({"scale", "mailer"}, 64), HasSubstr("how many?"));
  EXPECT_THAT(refusal({"scale", "mailer", "0"}, 64), HasSubstr("from 1 to 100000"));
  EXPECT_THAT(refusal({"scale", "mailer", "100001"}, 64), HasSubstr("from 1 to 100000"));
  EXPECT_THAT(refusal({"scale", "mailer", "2", "--reset"}, 64), HasSubstr("N and --reset exclude each other"));
  EXPECT_THAT(refusal({"scale"}, 64), HasSubstr("--job is missing; write `sluice scale JOB N` or --job JOB"));
  EXPECT_THAT(refusal({"log-level"}, 64), HasSubstr("which level?"));
  EXPECT_THAT(refusal({"log-level", "loud"}, 64), HasSubstr("loud"));
  EXPECT_THAT(refusal({"drain"}, 64), HasSubstr("which host?"));
  EXPECT_THAT(refusal({"drain", "web", "--timeout", "3s"}, 64), HasSubstr("--wait only"));
  EXPECT_THAT(refusal({"cancel-running"}, 64), HasSubstr("--id is missing"));
  EXPECT_THAT(refusal({"top", "--interval", "1ms"}, 64), HasSubstr("200ms to 1h"));
  EXPECT_THAT(refusal({"hosts", "web", "mail"}, 64), HasSubstr("unexpected word \"mail\""));
}

TEST_F(FleetCommands, AskWhichIsMeantWhereAJobAndAQueueShareAName) {
  folder_.write("jobs.d/orders.toml", "[job]\nqueue = \"mails\"\nhandler = \"h\"\n");
  EXPECT_THAT(refusal({"pause", "orders"}, 64), HasSubstr("write --job orders or --queue orders"));
  EXPECT_THAT(text({"pause", "--job", "orders"}), HasSubstr("pause job orders"));
}

TEST_F(FleetCommands, AHostFileThatNamesNoQueueSaysSo) {
  const HostFolder empty("[store]\npath = \"s.db\"\n");
  const Finished finished = empty.run({"hosts"});
  EXPECT_EQ(finished.exit_code, 78);
  EXPECT_THAT(finished.err, HasSubstr("name no queue"));
}

TEST_F(FleetCommands, TopIsOnePictureWithoutATerminal) {
  folder_.run({"send", "--queue", "mails", "-"}, "1\n2\n");
  const auto picture = json({"top"});
  EXPECT_EQ(picture.at("queues").as_array().size(), 3U);
  EXPECT_EQ(picture.at("queues").as_array()[0].at("queue").as_string(), "mails");
  EXPECT_EQ(picture.at("queues").as_array()[0].at("ready").as_int64(), 2);
  const std::string shown = text({"top", "--once"});
  EXPECT_THAT(shown, AllOf(HasSubstr("QUEUE"), HasSubstr("mails"), HasSubstr("no host"), Not(HasSubstr("\x1b"))));
}

TEST_F(FleetCommands, CompleteTheirWords) {
  const auto completed = [this](Words words) {
    words.insert(words.begin(), "__complete");
    return folder_.run(words).out;
  };
  EXPECT_EQ(completed({"pause", ""}), "mails\norders\nreturns\nmailer\npicker\n");
  EXPECT_EQ(completed({"scale", "pi"}), "picker\n");
  EXPECT_THAT(completed({"scale", "picker", "--re"}), HasSubstr("--reset"));
  EXPECT_EQ(completed({"log-level", "d"}), "debug\n");
  EXPECT_THAT(completed({"pause", "--"}), HasSubstr("--queue"));
}

}  // namespace
}  // namespace sluice::test
