// `sluice try` and `sluice replay`, by the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

/// A host with a job of the plugin, and the plugin once more by its own name.
class DeskFolder : public HostFolder {
 public:
  DeskFolder() : HostFolder("[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.orders]\n[queues.receipts]\n") {
    std::filesystem::copy_file(SLUICE_DESK_PLUGIN, path() + "/plugins/desk.so");
    std::filesystem::copy_file(SLUICE_DESK_PLUGIN, path() + "/desk.so");
    write("jobs.d/acts.toml",
          "[job]\nqueue = \"orders\"\nhandler = \"desk\"\n[job.retry]\nmax_attempts = 2\njitter = \"none\"\n"
          "[job.options]\ntag = \"job's\"\n");
  }
  void send(const std::string& id, const std::string& text) const {
    const Finished sent = run({"send", "--queue", "orders", "--id", id, "--text", text});
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
  }
  Finished text(Words words) const {
    words.insert(words.end(), {"--output", "text"});
    return run(words);
  }
  boost::json::object json(const Words& words) const {
    const Finished shown = run(words);
    return shown.out.empty() ? boost::json::object{{"err", shown.err}} : boost::json::parse(shown.out).as_object();
  }
  boost::json::object message(const std::string& id) const { return json({"get", "--queue", "orders", id}); }
};

TEST(Try, ShowsBodyLogOutcomeTimeAndWhatComesNext) {
  const DeskFolder folder;
  const Finished shown = folder.text({"try", "desk", "--data", "hello", "--attribute", "a=b"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("handler desk of "));
  EXPECT_THAT(shown.out, HasSubstr(", as job acts runs it, attempt 1 of 2\n"));
  EXPECT_THAT(shown.out, HasSubstr("a = b"));
  EXPECT_THAT(shown.out, HasSubstr("\ninfo  job's 1.0.0 hello\n"));
  EXPECT_THAT(shown.out, HasSubstr("\noutcome: done\ntook: "));
  EXPECT_THAT(shown.out, HasSubstr("\na host's next step: the message is removed\n"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/sluice.db")) << "no queue is touched";
}

TEST(Try, GoesByTheJobsPolicy) {
  const DeskFolder folder;
  const auto first = folder.json({"try", "desk", "--data", "throw"});
  EXPECT_EQ(first.at("outcome").as_string(), "fault");
  EXPECT_EQ(first.at("reason").as_string(), "it broke");
  EXPECT_EQ(first.at("ending").as_string(), "retried");
  EXPECT_EQ(first.at("delay").as_string(), "1s") << "the job's back-off";
  EXPECT_TRUE(first.at("transaction").is_null());
  const auto last = folder.json({"try", "desk", "--data", "throw", "--attempt", "2"});
  EXPECT_EQ(last.at("ending").as_string(), "rejected");
  const auto named = folder.json({"try", "desk", "--data", "retry"});
  EXPECT_EQ(named.at("delay").as_string(), "7s") << "the handler's own";
  EXPECT_EQ(folder.run({"try", "desk", "--data", "reject"}).exit_code, 1) << "a script knows";
}

TEST(Try, ACrashIsAResult) {
  const DeskFolder folder;
  const auto crashed = folder.json({"try", "desk", "--data", "crash"});
  EXPECT_EQ(crashed.at("outcome").as_string(), "crashed");
  EXPECT_THAT(std::string(crashed.at("reason").as_string()), AllOf(HasSubstr("SIGSEGV"), HasSubstr("desk.so")));
  EXPECT_EQ(crashed.at("log").at(0).at("text").as_string(), "job's 1.0.0 crash") << "what it said before";
  const Finished shown = folder.text({"try", "desk", "--data", "crash"});
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_THAT(shown.out, testing::ContainsRegex("\noutcome: crashed: SIGSEGV [^\n]*\n  at [^\n]*\n")) << "and where";
}

TEST(Try, ShowsStagedEffects) {
  const DeskFolder folder;
  const Finished shown = folder.text({"try", "desk", "--data", "send"});
  EXPECT_THAT(shown.out,
              HasSubstr("one transaction in SQLite, 2 of at most 100 actions:\n   1  send to receipts: paid"));
  EXPECT_EQ(
      folder.json({"try", "desk", "--data", "send"}).at("transaction").at("messages").at(0).at("body").as_string(),
      "paid");
}

TEST(Try, TakesAPluginByItsFileWithoutAHostFile) {
  const DeskFolder folder;
  std::filesystem::remove(folder.path() + "/host.toml");
  const auto shown =
      folder.json({"try", "--plugin", "desk.so", "--option", "tag=mine", "--option", "times=2", "--data", "hello"});
  EXPECT_EQ(shown.at("log").as_array().size(), 2U);
  EXPECT_EQ(shown.at("log").at(1).at("text").as_string(), "mine 1.0.0 hello");
  EXPECT_TRUE(shown.at("job").is_null());
}

TEST(Try, APluginsOnlyHandlerIsMeantWhateverJobsThereAre) {
  const DeskFolder folder;
  folder.write("jobs.d/other.toml", "[job]\nqueue = \"q\"\nhandler = \"elsewhere\"\n");
  const auto shown = folder.json({"try", "--plugin", "desk.so", "--data", "hello"});
  EXPECT_EQ(shown.at("job").as_string(), "acts");
  EXPECT_EQ(shown.at("outcome").as_string(), "done");
}

TEST(Try, AnOptionWinsOverTheJobs) {
  const DeskFolder folder;
  const auto shown = folder.json({"try", "desk", "--option", "tag=mine", "--data", "{\"n\": 1}"});
  EXPECT_EQ(shown.at("log").at(0).at("text").as_string(), "mine 1.0.0 {\"n\": 1}");
  EXPECT_EQ(shown.at("message").at("content_type").as_string(), "application/json");
}

TEST(Try, TakesAMessageOfAQueueAsItIs) {
  const DeskFolder folder;
  folder.send("A-1", "reject");
  const Finished shown = folder.text({"try", "desk", "--id", "A-1", "--queue", "orders"});
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_THAT(shown.out, HasSubstr("outcome: reject: never\n"));
  EXPECT_THAT(shown.out, HasSubstr("it goes to the dead-letter half of its queue\n"));
  EXPECT_THAT(shown.out, HasSubstr("nothing in queue orders has changed\n"));
  EXPECT_EQ(folder.message("A-1").at("queue_type").as_string(), "STANDARD");
  EXPECT_EQ(folder.message("A-1").at("receive_count").to_number<int>(), 0);
}

TEST(Try, RunsInThisProcessForADebugger) {
  const DeskFolder folder;
  const auto shown = folder.json({"try", "desk", "--data", "hello", "--in-process"});
  EXPECT_EQ(shown.at("outcome").as_string(), "done");
  EXPECT_EQ(folder.run({"try", "desk", "--data", "crash", "--in-process"}).exit_code, 128 + SIGSEGV)
      << "its crash is the process's";
}

TEST(Try, SaysWhatIsWrongWithItsWords) {
  const DeskFolder folder;
  folder.write("text.so", "hello");
  const std::vector<std::pair<Words, std::string>> wrong{
      {{"try", "dsk", "--data", "x"}, "did you mean \"desk\"?"},
      {{"try", "desk"}, "which message? Give --data TEXT, --data-file FILE, or --id ID with --queue QUEUE"},
      {{"try", "desk", "--data", "x", "--id", "A"}, "--data and --id exclude each other; give one"},
      {{"try", "--data", "x"}, "which handler? Write `sluice try HANDLER`"},
      {{"try", "desk", "--id", "A"}, "which queue is message A in? Write --queue QUEUE"},
      {{"try", "desk", "--id", "A", "--queue", "orders"}, "no message \"A\" in queue \"orders\""},
      {{"try", "desk", "--id", "A", "--queue", "ordres"}, "did you mean \"orders\"?"},
      {{"try", "desk", "--data-file", "nowhere"}, "--data-file nowhere: No such file"},
      {{"try", "--plugin", "nowhere.so", "--data", "x"}, "there is no plugin nowhere.so; build it, or mend the name"},
      {{"try", "--plugin", "text.so", "--data", "x"}, "is not an ELF shared object"},
      {{"try", "--plugin", "jobs.d", "--data", "x"}, "--plugin jobs.d is no file; name the plugin's .so"},
      {{"try", "--plugin", "/dev/null", "--data", "x"}, "--plugin /dev/null is no file"},
      {{"try", "--plugin", "desk.so", "desk2", "--data", "x"}, "no plugin offers the handler \"desk2\""},
      {{"try", "desk", "--data", "x", "--option", "tag"}, "--option tag is no NAME=VALUE"},
      {{"try", "desk", "--data", "x", "--option", "tga=1"}, "tga"},
      {{"try", "desk", "--data", "x", "--option", "times=many"}, "--option times=many: "},
      {{"try", "desk", "--data", "x", "--option", "times='two'"}, "times"},
      {{"try", "desk", "--data", "x", "--option", "tag=refuse"}, "refuse is no tag"},
      {{"try", "desk", "--data", "x", "--job", "act"}, "no job is called \"act\"; did you mean \"acts\"?"},
      {{"try", "desk", "--data", "x", "--job", "no.toml"}, "--job no.toml: there is no such file"},
      {{"try", "desk", "--data", "x", "--attempt", "0"}, "--attempt"},
  };
  for (const auto& [words, said] : wrong) {
    const Finished refused = folder.run(words);
    EXPECT_NE(refused.exit_code, 0) << said;
    EXPECT_THAT(refused.err, HasSubstr(said));
    EXPECT_EQ(refused.out, "") << said;
  }
}

TEST(Try, NamesRequiredOptionsWithTheirHelp) {
  const DeskFolder folder;
  std::filesystem::remove(folder.path() + "/host.toml");
  const Finished refused = folder.run({"try", "--plugin", "desk.so", "--data", "x"});
  EXPECT_EQ(refused.exit_code, 64);
  EXPECT_EQ(
      refused.err,
      "sluice try: handler desk needs --option tag=VALUE, or --job jobs.d/acts.toml: What its lines begin with\n");
}

TEST(Try, GdbStopsInTheHandler) {
  const DeskFolder folder;
  std::filesystem::create_directory(folder.path() + "/bin");
  folder.write("bin/gdb", "#!/bin/sh\nfor word; do echo \"$word\"; done\n");
  std::filesystem::permissions(folder.path() + "/bin/gdb", std::filesystem::perms::owner_all);
  BinaryOptions options;
  options.folder = folder.path();
  options.environment = {{"PATH", folder.path() + "/bin:/usr/bin:/bin"}};
  const Finished started = run_binary({"try", "desk", "--data", "it's", "--gdb"}, options);
  ASSERT_EQ(started.exit_code, 0) << started.err;
  EXPECT_THAT(started.out, HasSubstr("\nbreak Act::handle\n-ex\nrun\n--args\n"));
  EXPECT_THAT(started.out, HasSubstr("\ntry\n--in-process\n--handler=desk\n--data=it's\n"));
  EXPECT_THAT(started.out, Not(HasSubstr("--gdb")));
  options.environment = {{"PATH", folder.path()}};
  const Finished missing = run_binary({"try", "desk", "--data", "x", "--gdb"}, options);
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("--gdb needs gdb, which is not installed here (`apt install gdb`)"));
}

TEST(Replay, RunsTheHandlerOfTheQueuesJob) {
  const DeskFolder folder;
  folder.send("A-1", "hello");
  const auto shown = folder.json({"replay", "A-1", "--queue", "orders"});
  EXPECT_EQ(shown.at("job").as_string(), "acts");
  EXPECT_EQ(shown.at("outcome").as_string(), "done");
  EXPECT_FALSE(shown.at("settled").as_bool());
  EXPECT_EQ(folder.message("A-1").at("receive_count").to_number<int>(), 0);
}

TEST(Replay, SettlesTheOutcomeWithItsEffects) {
  const DeskFolder folder;
  folder.send("A-0", "hello");
  folder.send("A-1", "send");
  const Finished settled = folder.text({"replay", "A-1", "--queue", "orders", "--settle"});
  ASSERT_EQ(settled.exit_code, 0) << settled.err;
  EXPECT_THAT(settled.out, HasSubstr("\nsettled: the message is removed\n"));
  EXPECT_EQ(folder.run({"get", "--queue", "orders", "A-1"}).exit_code, 1) << "it is gone";
  EXPECT_THAT(folder.run({"peek", "--queue", "receipts", "--json"}).out, HasSubstr("paid")) << "with its effects";
  EXPECT_EQ(folder.message("A-0").at("receive_count").to_number<int>(), 0) << "another one is as it was";
}

TEST(Replay, SettlesWhatHasToBeTriedAgain) {
  const DeskFolder folder;
  folder.send("A-1", "retry");
  EXPECT_EQ(folder.run({"replay", "A-1", "--queue", "orders", "--settle"}).exit_code, 1);
  EXPECT_EQ(folder.message("A-1").at("receive_count").to_number<int>(), 1);
  EXPECT_EQ(folder.message("A-1").at("failure").at("error").as_string(), "not now");
  // It waits for its next attempt, and is claimed all the same; that was the last one.
  EXPECT_EQ(folder.run({"replay", "A-1", "--queue", "orders", "--settle"}).exit_code, 1);
  EXPECT_EQ(folder.message("A-1").at("queue_type").as_string(), "DLQ");
}

TEST(Replay, TakesADeadLetterAndSettlesItThere) {
  const DeskFolder folder;
  folder.send("A-1", "hello");
  EXPECT_THAT(folder.run({"replay", "A-1", "--queue", "orders", "--dlq"}).err, HasSubstr("lies in the standard half"));
  folder.send("A-2", "reject");
  ASSERT_EQ(folder.run({"invalid", "--queue", "orders", "A-1", "A-2", "--yes"}).exit_code, 0);
  EXPECT_EQ(folder.json({"replay", "A-1", "--queue", "orders", "--dlq"}).at("outcome").as_string(), "done");
  EXPECT_EQ(folder.json({"replay", "A-2", "--queue", "orders", "--dlq"}).at("ending").as_string(),
            folder.json({"replay", "A-2", "--queue", "orders", "--dlq", "--settle"}).at("ending").as_string())
      << "what --settle does is what was foretold";
  EXPECT_THAT(folder.run({"replay", "A-2", "--queue", "orders", "--dlq", "--output", "text"}).out,
              HasSubstr("it stays a dead letter, and is tried again after"))
      << "beyond the attempts that the job grants";
  EXPECT_EQ(folder.run({"replay", "A-1", "--queue", "orders", "--dlq", "--settle"}).exit_code, 0);
  EXPECT_EQ(folder.run({"get", "--queue", "orders", "A-1"}).exit_code, 1);
}

TEST(Replay, RefusesWhatAnotherHasAtWork) {
  const DeskFolder folder;
  folder.send("A-1", "hello");
  ASSERT_EQ(folder.run({"receive", "--queue", "orders"}).exit_code, 0);
  const Finished refused = folder.run({"replay", "A-1", "--queue", "orders", "--settle"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("message A-1 of queue orders is at work, by another host or by who received it"));
  EXPECT_EQ(refused.out, "") << "the handler has not run";
  EXPECT_EQ(folder.run({"replay", "A-1", "--queue", "orders"}).exit_code, 0) << "without --settle nobody is asked";
}

TEST(Replay, TakesALineOfAnExport) {
  const DeskFolder folder;
  folder.send("A-1", "hello");
  folder.send("A-2", "reject");
  folder.write("dump", folder.run({"export", "--queue", "orders"}).out);
  EXPECT_EQ(folder.json({"replay", "--file", "dump", "--queue", "orders", "--line", "2"}).at("outcome").as_string(),
            "reject");
  EXPECT_EQ(folder.json({"replay", "A-2", "--file", "dump", "--handler", "desk"}).at("outcome").as_string(), "reject");
  EXPECT_EQ(folder.json({"replay", "--file", "dump", "--queue", "orders"}).at("outcome").as_string(), "done");
  folder.write("bad", "{\"id\": 7}\n");
  const std::vector<std::pair<Words, std::string>> wrong{
      {{"replay", "--file", "dump", "--queue", "orders", "--line", "3"}, "--file dump has 2 lines, and no line 3"},
      {{"replay", "A-9", "--file", "dump", "--queue", "orders"}, "--file dump has 2 lines, and none is message A-9"},
      {{"replay", "nobody", "--file", "dump", "--queue", "orders", "--line", "2"},
       "--file dump has 2 lines, and line 2 is not message nobody"},
      {{"replay", "--file", "dump", "--queue", "orders", "--line", "x"}, "--line"},
      {{"replay", "--file", "bad", "--queue", "orders"}, "--file bad, line 1: "},
      {{"replay", "--file", "nowhere", "--queue", "orders"}, "--file nowhere: No such file"},
      {{"replay", "--file", "dump"}, "through which handler?"},
      {{"replay", "--file", "dump", "--queue", "orders", "--settle"}, "--settle and --file exclude each other"},
      {{"replay", "--file", "dump", "--queue", "q"}, "no job works on queue q; name a handler with --handler"},
      {{"replay", "--queue", "orders"}, "which message? Write its ID with --queue QUEUE, or --file FILE"},
      {{"replay", "A-1", "--queue", "orders", "--line", "1"}, "--line goes with --file only"},
  };
  for (const auto& [words, said] : wrong) {
    const Finished refused = folder.run(words);
    EXPECT_NE(refused.exit_code, 0) << said;
    EXPECT_THAT(refused.err, HasSubstr(said));
  }
}

// It refused lines of an export that `import` takes: one of a large body, and an empty one.
TEST(Replay, TakesWhatImportTakes) {
  const DeskFolder folder;
  folder.send("A-1", "hello");
  folder.send("A-2", "reject");
  const Words lines = folder.run({"export", "--queue", "orders"}).out_lines();
  ASSERT_EQ(lines.size(), 2U);
  std::string large = lines.front();
  large.replace(large.find("hello"), 5, std::string(16UL * 1024 * 1024, 'x'));
  folder.write("dump", "\n" + large + "\n \n" + lines.back() + "\n");
  const auto replayed = [&folder](Words words) {
    words.insert(words.begin(), {"replay", "--file", "dump", "--queue", "orders"});
    return folder.json(words);
  };
  EXPECT_EQ(replayed({"A-1"})["outcome"], "done");
  EXPECT_EQ(replayed({"A-2"})["outcome"], "reject");
  EXPECT_EQ(replayed({"--line", "4"})["outcome"], "reject") << "empty lines count";
  EXPECT_THAT(folder.run({"replay", "--file", "dump", "--queue", "orders", "--line", "3"}).err,
              HasSubstr("and line 3 is empty"));
}

}  // namespace
}  // namespace sluice::test
