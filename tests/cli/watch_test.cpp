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
  const auto hint = [](const std::string& wrong, const std::string& meant) {
    return "neither host.toml nor its jobs name a queue \"" + wrong + "\"; did you mean \"" + meant + "\"?\n";
  };
  EXPECT_EQ(folder.run({"ls", "--queue", "ordres"}).err, "sluice ls: " + hint("ordres", "orders"))
      << "a queue need not be named there";
  EXPECT_EQ(folder.run({"stats", "--queue", "return"}).err, "sluice stats: " + hint("return", "returns"));
  EXPECT_EQ(folder.run({"stats", "--queue", "orders"}).err, "");
  EXPECT_EQ(folder.run({"stats", "--queue", "something-else"}).err, "") << "nothing like it is known";
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
