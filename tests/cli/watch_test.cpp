#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

BinaryOptions in(const HostFolder& folder) {
  return {.input = {}, .folder = folder.path(), .environment = {}, .stdout_file = {}};
}

TEST(Watch, PrintsALineOfJsonEachTimeUntilCtrlC) {
  const HostFolder folder;
  RunningBinary watch({"stats", "--queue", "orders", "--watch", "--interval", "100ms"}, in(folder));
  EXPECT_EQ(boost::json::parse(watch.read_line()).at("total").as_int64(), 0);
  folder.run({"send", "--queue", "orders", "--data", "1"});
  std::int64_t total = 0;
  while (total == 0) {
    total = boost::json::parse(watch.read_line()).at("total").as_int64();
  }
  EXPECT_EQ(total, 1) << "it sees what another process sent";
  watch.signal(SIGINT);
  const Finished finished = watch.finish();
  EXPECT_EQ(finished.exit_code, 0) << "Ctrl-C is its regular end";
  EXPECT_EQ(finished.err, "");
}

TEST(Watch, PrintsOneHeadlineAsText) {
  const HostFolder folder;
  RunningBinary watch({"stats", "--queue", "orders", "--watch", "--interval", "100ms", "--output", "text"}, in(folder));
  EXPECT_THAT(watch.read_line(), StartsWith("QUEUE "));
  EXPECT_THAT(watch.read_line(), StartsWith("orders "));
  EXPECT_THAT(watch.read_line(), StartsWith("orders "));
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.finish().exit_code, 0);
}

TEST(Watch, EndsWhenNobodyReads) {
  const HostFolder folder;
  BinaryOptions options = in(folder);
  options.closed_output = true;
  const Finished finished = run_binary({"stats", "--queue", "orders", "--watch", "--interval", "100ms"}, options);
  EXPECT_EQ(finished.exit_code, 141);
  EXPECT_EQ(finished.err, "");
}

TEST(Watch, SaysWhatIsWrongAtOnce) {
  const HostFolder folder;
  EXPECT_THAT(folder.run({"stats", "--queue", "q", "--watch", "--interval", "0s"}).err, HasSubstr("from 100ms to 1d"));
  EXPECT_THAT(folder.run({"stats", "--queue", "q", "--interval", "5s"}).err, HasSubstr("--watch only"));
}

TEST(OutputChoice, ComesFromTheOptionElseFromTheVariable) {
  const HostFolder folder;
  folder.run({"send", "--queue", "orders", "--id", "A-1", "--data", "1"});
  BinaryOptions options = in(folder);
  options.environment["SLUICE_OUTPUT"] = "text";
  EXPECT_THAT(run_binary({"ls", "--queue", "orders"}, options).out, StartsWith("ID "));
  EXPECT_THAT(run_binary({"ls", "--queue", "orders", "--output", "json"}, options).out, StartsWith("{\n"));
  options.environment["SLUICE_OUTPUT"] = "xml";
  const Finished wrong = run_binary({"ls", "--queue", "orders"}, options);
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_EQ(wrong.err, "sluice ls: SLUICE_OUTPUT=\"xml\" is neither json nor text; write one of these\n");
  EXPECT_EQ(folder.run({"ls", "--queue", "orders", "--output", "yaml"}).err,
            "sluice ls: --output \"yaml\" is neither json nor text; write one of these\n");
}

TEST(OutputChoice, HoldsForAWholeShell) {
  const HostFolder folder;
  folder.run({"send", "--queue", "orders", "--id", "A-1", "--data", "1"});
  BinaryOptions options = in(folder);
  options.environment["SLUICE_OUTPUT"] = "text";
  options.input = "ls\n";
  EXPECT_THAT(run_binary({"shell", "orders"}, options).out, StartsWith("ID "));
  EXPECT_THAT(run_binary({"shell", "orders", "--json"}, options).out, StartsWith("{\n"));
}

TEST(OutputChoice, IsTextFirstWhereTheTextIsForPeople) {
  const HostFolder folder;
  BinaryOptions options = in(folder);
  for (const char* command : {"version", "check"}) {
    options.environment.erase("SLUICE_OUTPUT");
    EXPECT_THAT(run_binary({command}, options).out, Not(StartsWith("{")));
    EXPECT_THAT(run_binary({command, "--output", "json"}, options).out, StartsWith("{\n"));
    options.environment["SLUICE_OUTPUT"] = "json";
    EXPECT_THAT(run_binary({command}, options).out, StartsWith("{\n"));
    options.environment["SLUICE_OUTPUT"] = "text";
    EXPECT_THAT(run_binary({command, "--json"}, options).out, StartsWith("{\n"));
  }
}

TEST(OutputChoice, IsJsonInAPipeEverywhereElse) {
  const HostFolder folder;
  for (const char* command : {"plugins", "crashes", "stats", "queues"}) {
    EXPECT_THAT(folder.run({command}).out, testing::MatchesRegex("[\\[{](.|\n)*")) << command;
    EXPECT_THAT(folder.run({command, "--output", "text"}).out, Not(StartsWith("{"))) << command;
  }
}

TEST(QueueChoice, NamesTheOneThatWasProbablyMeant) {
  const HostFolder folder("[store]\npath = \"s.db\"\n[queues.orders]\n");
  folder.write("jobs.d/a.toml", "[job]\nqueue = \"returns\"\nhandler = \"h\"\n");
  const auto refusal = [](const std::string& wrong, const std::string& meant) {
    return "no job, host file or earlier message knows a queue \"" + wrong + "\"" + meant +
           " `sluice queues` lists them, and send, import and enqueue-test make one with --create\n";
  };
  EXPECT_EQ(folder.run({"ls", "--queue", "ordres"}).err,
            "sluice ls: " + refusal("ordres", "; did you mean \"orders\"?"));
  EXPECT_EQ(folder.run({"stats", "--queue", "return"}).err,
            "sluice stats: " + refusal("return", "; did you mean \"returns\"?"));
  EXPECT_EQ(folder.run({"stats", "--queue", "orders"}).err, "");
  EXPECT_EQ(folder.run({"stats", "--queue", "something-else"}).err, "sluice stats: " + refusal("something-else", ";"));
}

// The word was taken for an id, and --queue said to be missing; tables were those of queues that nobody knows.
TEST(QueueChoice, NamesTheOneThatWasMeantByTheWordBeforeIds) {
  const HostFolder folder("[store]\npath = \"s.db\"\n[queues.orders]\n[queues.mails]\n");
  const std::vector<std::vector<std::string>> all{{"fail", "ordres", "A"},
                                                  {"get", "ordres", "A"},
                                                  {"redrive", "ordres", "--all"},
                                                  {"purge", "ordres", "--yes"},
                                                  {"keys forget", "ordres", "k", "--job", "j"},
                                                  {"table check", "--queue", "ordres"},
                                                  {"table create", "--queue", "ordres"}};
  for (const std::vector<std::string>& words : all) {
    std::vector<std::string> typed = words;
    if (const auto space = words.front().find(' '); space != std::string::npos) {
      typed.front() = words.front().substr(0, space);
      typed.insert(typed.begin() + 1, words.front().substr(space + 1));
    }
    const Finished refused = folder.run(typed);
    EXPECT_EQ(refused.exit_code, 64) << words.front();
    EXPECT_THAT(refused.err, HasSubstr("knows a queue \"ordres\"; did you mean \"orders\"?")) << words.front();
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"delete", "A-101", "A-102"}, {"purge", "A-101", "--yes"}}) {
    const Finished refused = folder.run(words);
    EXPECT_EQ(refused.exit_code, 64) << words.front();
    EXPECT_EQ(refused.err, "sluice " + words.front() +
                               ": no job, host file or earlier message knows a queue \"A-101\"; the first word names "
                               "the queue where files know other than one; `sluice queues` lists them\n");
  }
  EXPECT_EQ(folder.run({"get", "ordres", "--help"}).exit_code, 0);
}

// It was taken for an id, and the other words were done to the only queue that there is.
TEST(QueueChoice, AWordThatIsNeitherAQueueNorAMessageChangesNothing) {
  const HostFolder folder("[store]\npath = \"s.db\"\n[queues.solo]\n");
  folder.run({"send", "--id", "A-1", "--data", "1"});
  const std::string before = folder.run({"get", "A-1"}).out;
  const std::string several =
      "no message \"payments\" in queue \"solo\", and no job, host file or earlier message "
      "knows a queue \"payments\"";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"delete"},
                                                {"purge", "--yes"},
                                                {"cancel"},
                                                {"redrive"},
                                                {"invalid"},
                                                {"reset"},
                                                {"fail"},
                                                {"move-to-front"},
                                                {"delay", "--for", "1h"},
                                                {"edit", "--set", "data=2"},
                                                {"delete", "--dry-run"}}) {
    std::vector<std::string> typed = words;
    typed.insert(typed.begin() + 1, {"payments", "A-1"});
    const Finished refused = folder.run(typed);
    EXPECT_EQ(refused.exit_code, 64) << words.front();
    EXPECT_THAT(refused.err, HasSubstr(several)) << words.front();
    EXPECT_EQ(refused.out, "") << words.front();
    EXPECT_EQ(folder.run({"get", "A-1"}).out, before) << words.front();
  }
  const Finished alone = folder.run({"purge", "sollo", "--yes"});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_THAT(alone.err, HasSubstr("no message \"sollo\" in queue \"solo\", and no job, host file or earlier message "
                                   "knows a queue \"sollo\"; did you mean \"solo\"?"));
  const Finished all = folder.run({"delete", "mails", "--all", "--yes"});
  EXPECT_EQ(all.exit_code, 64);
  EXPECT_THAT(all.err, HasSubstr("mails is taken for an id, as nobody knows a queue of that name"));
  EXPECT_EQ(folder.run({"get", "A-1"}).out, before);
  EXPECT_EQ(folder.run({"delay", "A-1", "A-2", "--for", "1h", "--output", "text"}).out_lines().back(),
            "1 delayed, 0 skipped, 1 failed")
      << "the first is a message, so that all are ids";
}

TEST(QueueChoice, NorDoesItInAShellThatRemembersAQueue) {
  const HostFolder folder("[store]\npath = \"s.db\"\n[queues.solo]\n");
  folder.run({"send", "--id", "A-1", "--data", "1"});
  folder.run({"send", "solo", "--id", "A-2", "--data", "1"});
  const Finished refused = folder.run({"shell"}, "delete payments A-1\nuse solo\ndelete paymnts A-1\n");
  EXPECT_THAT(refused.err, HasSubstr("no message \"payments\" in queue \"solo\""));
  EXPECT_THAT(refused.err, HasSubstr("no message \"paymnts\" in queue \"solo\""));
  EXPECT_EQ(folder.run({"get", "A-1"}).exit_code, 0);
  folder.run({"shell"}, "send newq --create --id A-1 --data 2\ndelete newq A-1\n");
  EXPECT_EQ(folder.run({"get", "solo", "A-1"}).exit_code, 0) << "newq's was meant";
  EXPECT_NE(folder.run({"get", "newq", "A-1"}).exit_code, 0);
  folder.run({"shell"}, "use solo\ndelete A-1 A-2\n");
  EXPECT_NE(folder.run({"get", "solo", "A-1"}).exit_code, 0);
  EXPECT_NE(folder.run({"get", "solo", "A-2"}).exit_code, 0);
}

// The job that names it was passed over, and the queue said to be nobody's.
TEST(QueueChoice, TellsOfTheJobFileThatIsWrong) {
  const HostFolder folder("[store]\npath = \"s.db\"\n");
  folder.write("jobs.d/a.toml", "[job]\nqueue = \"returns\"\nhandler =\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"ls", "returns"}, {"pause", "returns"}, {"hosts"}}) {
    const Finished refused = folder.run(words);
    EXPECT_EQ(refused.exit_code, 78) << words.front();
    EXPECT_THAT(refused.err, HasSubstr("a.toml:3")) << words.front();
  }
}

// A mistyped queue printed nothing, with exit 0, or was made.
TEST(QueueChoice, IsRefusedByEveryCommandWhereNobodyKnowsIt) {
  const HostFolder folder("[store]\nkind = \"sqlite\"\npath = \"s.db\"\n[queues.mails]\n");
  folder.write("records", "");
  const std::vector<std::vector<std::string>> all{{"ls"},
                                                  {"peek"},
                                                  {"get", "A"},
                                                  {"receive"},
                                                  {"stats"},
                                                  {"dlq"},
                                                  {"export"},
                                                  {"import", "--file", "records"},
                                                  {"tail"},
                                                  {"purge", "--yes"},
                                                  {"fail", "A"},
                                                  {"invalid", "A"},
                                                  {"reset", "A"},
                                                  {"redrive", "--all", "--dry-run"},
                                                  {"delay", "A", "--for", "1m"},
                                                  {"move-to-front", "A"},
                                                  {"edit", "A", "--set", "data=1"},
                                                  {"cancel", "A"},
                                                  {"delete", "--all", "--dry-run"},
                                                  {"keys", "list", "--job", "j"},
                                                  {"send", "--text", "x"},
                                                  {"enqueue-test"},
                                                  {"hosts"},
                                                  {"jobs"},
                                                  {"running"},
                                                  {"cost"},
                                                  {"top", "--once"},
                                                  {"audit"},
                                                  {"replay", "A"}};
  for (std::vector<std::string> words : all) {
    words.insert(words.end(), {"--queue", "mials"});
    const Finished refused = folder.run(words);
    EXPECT_EQ(refused.exit_code, 64) << words.front();
    EXPECT_EQ(refused.out, "") << words.front();
    EXPECT_THAT(refused.err, HasSubstr("knows a queue \"mials\"; did you mean \"mails\"?")) << words.front();
    EXPECT_EQ(refused.err_lines().size(), 1U) << refused.err;
  }
  EXPECT_THAT(folder.run({"move", "--from", "mails", "--to", "mials", "--yes"}).err,
              HasSubstr("did you mean \"mails\"?"));
  EXPECT_THAT(folder.run({"ls", "--outbox", "shop"}).err, HasSubstr("knows a queue \"outbox:shop\""));
  EXPECT_EQ(folder.run({"stats", "--output", "text"}).out_lines().size(), 2U) << "none of them has made a queue";
}

TEST(QueueChoice, IsMadeByWhoSaysSo) {
  const HostFolder folder("[store]\nkind = \"sqlite\"\npath = \"s.db\"\n");
  EXPECT_EQ(folder.run({"enqueue-test", "--queue", "a", "--create"}).exit_code, 0);
  const Finished exported = folder.run({"export", "--queue", "a"});
  EXPECT_EQ(exported.out_lines().size(), 4U);
  EXPECT_EQ(folder.run({"import", "--queue", "b", "--create", "-"}, exported.out).exit_code, 0);
  EXPECT_EQ(folder.run({"ls", "--queue", "b"}).exit_code, 0);
}

TEST(QueueChoice, KnowsWhatASchedulesMessagesGoTo) {
  const HostFolder folder("[store]\nkind = \"sqlite\"\npath = \"s.db\"\n");
  folder.write("jobs.d/a.toml",
               "[job]\nqueue = \"orders\"\nhandler = \"h\"\n[schedule.nightly]\nevery = \"1d\"\nqueue = \"reports\"\n");
  EXPECT_EQ(folder.run({"stats", "--queue", "reports"}).exit_code, 0);
  EXPECT_THAT(folder.run({"queues", "--output", "text"}).out, HasSubstr("reports"));
}

TEST(Stats, ShowsWhatMessagesHaveMadeToo) {
  const HostFolder folder("[store]\nkind = \"sqlite\"\npath = \"s.db\"\n[queues.mails]\n");
  ASSERT_EQ(folder.run({"send", "--queue", "extra", "--create", "--data", "1"}).exit_code, 0);
  const std::string shown = folder.run({"stats", "--output", "text"}).out;
  EXPECT_THAT(shown, testing::AllOf(HasSubstr("extra"), HasSubstr("mails")));
  EXPECT_THAT(folder.run({"top", "--once", "--output", "text"}).out, HasSubstr("extra"));
}

TEST(QueueChoice, FallsOnTheOnlyOneThereIs) {
  const HostFolder folder("[store]\npath = \"s.db\"\n");
  EXPECT_EQ(folder.run({"ls"}).err, "sluice ls: --queue is missing; write --queue QUEUE\n");
  folder.write("jobs.d/a.toml", "[job]\nqueue = \"orders\"\nhandler = \"h\"\n");
  EXPECT_EQ(folder.run({"send", "--id", "A-1", "--data", "1"}).out, "A-1\n");
  EXPECT_EQ(folder.run({"get", "--queue", "orders", "--id", "A-1"}).exit_code, 0);
  folder.write("jobs.d/b.toml", "[job]\nqueue = \"mail\"\nhandler = \"h\"\n");
  EXPECT_EQ(folder.run({"ls"}).err, "sluice ls: --queue is missing; write --queue QUEUE, one of mail, orders\n");
  EXPECT_EQ(folder.run({"ls", "--queue", ""}).err,
            "sluice ls: --queue is empty; write --queue QUEUE, one of mail, orders\n");
}

}  // namespace
}  // namespace sluice::test
