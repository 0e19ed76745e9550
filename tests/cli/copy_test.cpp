#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>
#include <functional>
#include <thread>

#include "tests/cli/run_binary.hpp"
#include "tests/support/emulator.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::map<std::string, std::string> kAws{{"AWS_ACCESS_KEY_ID", "test"},
                                              {"AWS_SECRET_ACCESS_KEY", "test"},
                                              {"AWS_REGION", "eu-west-1"},
                                              {"AWS_EC2_METADATA_DISABLED", "true"}};

std::string records(const HostFolder& folder, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) {
    lines += "{\"n\":" + std::to_string(i) + "}\n";
  }
  EXPECT_EQ(folder.run({"send", "--queue", "orders", "-"}, lines).exit_code, 0);
  return folder.run({"export", "--queue", "orders"}).out;
}

boost::json::value summary(const Finished& finished) { return boost::json::parse(finished.out); }

TEST(Export, IsTakenByImportWordForWord) {
  const HostFolder from;
  const HostFolder to;
  const std::string lines = records(from, 700);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 700);
  const Finished imported = to.run({"import", "--queue", "orders", "-"}, lines);
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(summary(imported).at("imported").as_int64(), 700);
  EXPECT_EQ(to.run({"export", "--queue", "orders"}).out, lines);
  const Finished again = to.run({"import", "--queue", "orders", "--output", "text", "-"}, lines);
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_EQ(again.out, "0 imported, 700 there already, 0 refused, of 700 lines\n");
}

TEST(Export, WritesTheHalvesThatAreNamed) {
  const HostFolder folder;
  records(folder, 3);
  const auto first = boost::json::parse(folder.run({"export", "--queue", "orders", "--limit", "1"}).out);
  ASSERT_EQ(folder.run({"invalid", "--queue", "orders", "--id", std::string(first.at("id").as_string())}).exit_code, 0);
  EXPECT_EQ(folder.run({"export", "--queue", "orders"}).out_lines().size(), 2U);
  EXPECT_EQ(folder.run({"export", "--queue", "orders", "--dlq"}).out_lines().size(), 1U);
  EXPECT_EQ(folder.run({"export", "--queue", "orders", "--both"}).out_lines().size(), 3U);
  EXPECT_EQ(folder.run({"export", "--queue", "orders", "--both", "--dlq"}).exit_code, 64);
}

TEST(Export, WritesWhatTheFilterMeans) {
  const HostFolder folder;
  records(folder, 10);
  const Finished found = folder.run({"export", "--queue", "orders", "--where", "data.n >= 8"});
  EXPECT_EQ(found.out_lines().size(), 2U) << found.err;
  const Finished wrong = folder.run({"export", "--queue", "orders", "--where", "data.n >="});
  EXPECT_EQ(wrong.exit_code, 64);
  EXPECT_THAT(wrong.err, HasSubstr("column"));
}

TEST(Export, EndsQuietlyWhenNobodyReads) {
  const HostFolder folder;
  records(folder, 500);
  const Finished finished =
      run_binary({"export", "--queue", "orders"},
                 {.input = {}, .folder = folder.path(), .environment = {}, .stdout_file = {}, .closed_output = true});
  EXPECT_EQ(finished.exit_code, 141);
  EXPECT_EQ(finished.err, "");
}

TEST(Export, OfAnEmptyQueueIsNothing) {
  const HostFolder folder;
  const Finished finished = folder.run({"export", "--queue", "orders", "--both"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "");
}

TEST(Import, ABrokenLineStopsAndIsNamedAndARerunCompletes) {
  const HostFolder from;
  const HostFolder to;
  const std::string lines = records(from, 4);
  const std::size_t middle = lines.find('\n', lines.find('\n') + 1) + 1;
  const std::string broken = lines.substr(0, middle) + "{\"id\": \n" + lines.substr(middle);
  const Finished stopped = to.run({"import", "--queue", "orders", "-"}, broken);
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_EQ(stopped.err_lines().size(), 1U) << stopped.err;
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("line 3: column 8: "), HasSubstr("--on-error continue")));
  EXPECT_EQ(summary(stopped).at("imported").as_int64(), 2) << "what stands before it is in";
  const Finished rest = to.run({"import", "--queue", "orders", "--on-error", "continue", "-"}, broken);
  EXPECT_EQ(rest.exit_code, 1) << "a line was refused";
  EXPECT_THAT(rest.err, AllOf(HasSubstr("line 3: "), HasSubstr("1 of 5 lines were not imported")));
  EXPECT_EQ(summary(rest).at("imported").as_int64(), 2);
  EXPECT_EQ(summary(rest).at("existing").as_int64(), 2);
  EXPECT_EQ(to.run({"export", "--queue", "orders"}).out, lines);
}

// It ended there, whatever it was told.
TEST(Import, PassesOverALineThatIsTooLong) {
  const HostFolder from;
  const HostFolder to;
  const std::string lines = records(from, 2);
  const std::size_t middle = lines.find('\n') + 1;
  to.write("dump", lines.substr(0, middle) + std::string(128UL * 1024 * 1024 + 1, 'x') + "\n" + lines.substr(middle));
  const Finished stopped = to.run({"import", "--queue", "orders", "--file", "dump"});
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_THAT(stopped.err, AllOf(HasSubstr("line 2: longer than 128 MiB"), HasSubstr("--on-error continue")));
  EXPECT_EQ(summary(stopped).at("imported").as_int64(), 1);
  const Finished rest = to.run({"import", "--queue", "orders", "--on-error", "continue", "--file", "dump"});
  EXPECT_EQ(rest.exit_code, 1) << "a line was refused";
  EXPECT_THAT(rest.err, AllOf(HasSubstr("line 2: longer than 128 MiB"), HasSubstr("1 of 3 lines were not imported")));
  EXPECT_EQ(summary(rest).at("refused").as_int64(), 1);
  EXPECT_EQ(to.run({"export", "--queue", "orders"}).out, lines);
}

TEST(Import, TellsNewMessagesFromRecords) {
  const HostFolder folder;
  const Finished wrong = folder.run({"import", "--queue", "orders", "-"}, "{\"order\": 7}\n");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("line 1: "), HasSubstr("sluice send")));
}

TEST(Import, ReadsAFile) {
  const HostFolder folder;
  const HostFolder to;
  to.write("orders.jsonl", records(folder, 2));
  EXPECT_EQ(summary(to.run({"import", "--queue", "orders", "--file", "orders.jsonl"})).at("imported").as_int64(), 2);
  const Finished missing = to.run({"import", "--queue", "orders", "--file", "no.jsonl"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("--file no.jsonl: No such file"));
  const Finished folder_given = to.run({"import", "--queue", "orders", "--file", "."});
  EXPECT_EQ(folder_given.exit_code, 1);
  EXPECT_THAT(folder_given.err, HasSubstr("directory"));
  EXPECT_EQ(to.run({"import", "--queue", "orders"}).exit_code, 64);
  EXPECT_EQ(to.run({"import", "--queue", "orders", "--file", "x", "-"}).exit_code, 64);
  EXPECT_EQ(to.run({"import", "--queue", "orders", "--on-error", "skip", "-"}).exit_code, 64);
}

TEST(Import, InterruptedSaysWhereItIsAndKeepsWhatItRead) {
  const HostFolder from;
  const HostFolder to;
  const std::string lines = records(from, 600);
  RunningBinary import({"import", "--queue", "orders", "-"},
                       {.input = {}, .folder = to.path(), .environment = {}, .stdout_file = {}});
  import.write(lines);
  // The first batch of 500 is in the store once the rest has been read; then it waits for more.
  while (to.run({"export", "--queue", "orders"}).out_lines().size() < 500) {
  }
  import.signal(SIGINT);
  const Finished finished = import.finish();
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("interrupted after line "), HasSubstr("goes on")));
  const Finished rest = to.run({"import", "--queue", "orders", "-"}, lines);
  EXPECT_EQ(rest.exit_code, 0);
  EXPECT_EQ(to.run({"export", "--queue", "orders"}).out, lines);
}

TEST(Import, TakesALineThatIsLongerThanAMessageToSend) {
  const HostFolder from;
  const HostFolder to;
  from.write("big.txt", std::string(8 * 1024 * 1024, '\x01'));
  ASSERT_EQ(from.run({"send", "--queue", "orders", "--file", "big.txt"}).exit_code, 0);
  const std::string line = from.run({"export", "--queue", "orders"}).out;
  EXPECT_GT(line.size(), 48U * 1024 * 1024);
  const Finished imported = to.run({"import", "--queue", "orders", "-"}, line);
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(to.run({"export", "--queue", "orders"}).out, line);
}

/// Reads what a tail tells until it has told this of that message.
boost::json::value await_event(RunningBinary& tail, std::string_view event, std::string_view id) {
  for (std::string line = tail.read_line(); !line.empty(); line = tail.read_line()) {
    auto told = boost::json::parse(line);
    if (told.at("event").as_string() == event && told.at("id").as_string() == id) {
      return told;
    }
  }
  return boost::json::object();
}

/// A tail tells nothing of what is there when it begins: sends until it has begun.
void await_first_look(RunningBinary& tail, const std::function<void(const std::string& id)>& send) {
  std::jthread sender([&send](const std::stop_token& stop) {
    for (int count = 0; !stop.stop_requested(); ++count) {
      send("first-" + std::to_string(count));
    }
  });
  EXPECT_THAT(tail.read_line(), HasSubstr("\"event\":\"arrived\""));
}

TEST(Tail, ShowsArrivalsAndOutcomes) {
  const HostFolder folder;
  const auto send = [&](const std::string& id) {
    EXPECT_EQ(folder.run({"send", "--queue", "orders", "--id", id, "--data", "1"}).exit_code, 0);
  };
  RunningBinary tail({"tail", "--queue", "orders", "--interval", "50ms"},
                     {.input = {}, .folder = folder.path(), .environment = {}, .stdout_file = {}});
  await_first_look(tail, send);
  send("A");
  EXPECT_TRUE(await_event(tail, "arrived", "A").as_object().contains("at"));
  ASSERT_EQ(folder.run({"invalid", "--queue", "orders", "--id", "A"}).exit_code, 0);
  EXPECT_EQ(await_event(tail, "dead_lettered", "A").at("queue_type").as_string(), "DLQ");
  ASSERT_EQ(folder.run({"purge", "--queue", "orders", "--dlq", "--yes"}).exit_code, 0);
  EXPECT_EQ(await_event(tail, "gone", "A").at("queue_type").as_string(), "DLQ");
  tail.signal(SIGINT);
  const Finished finished = tail.finish();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.err, "");
}

TEST(Tail, RefusesIntervalsAndLimitsThatMakeNoSense) {
  const HostFolder folder;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"--interval", "1ms"}, {"--interval", "often"}, {"--interval", "25h"}, {"--limit", "0"}}) {
    std::vector<std::string> all{"tail", "--queue", "orders"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(folder.run(all).exit_code, 64) << words[0] << ' ' << words[1];
  }
}

TEST(Tail, EndsQuietlyWhenNobodyReadsEvenThoughNothingHappens) {
  const HostFolder folder;
  const Finished finished =
      run_binary({"tail", "--queue", "orders"},
                 {.input = {}, .folder = folder.path(), .environment = {}, .stdout_file = {}, .closed_output = true});
  EXPECT_EQ(finished.exit_code, 141);
  EXPECT_EQ(finished.err, "");
}

class CopyToTable : public testing::Test {
 protected:
  void SetUp() override {
    emulator_ = Emulator::start();
    if (!emulator_) {
      GTEST_SKIP() << Emulator::absence();
    }
  }
  Finished on_table(const std::vector<std::string>& words, const std::string& input = {}) {
    const HostFolder empty("");
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--table", "orders", "--endpoint", emulator_->endpoint()});
    return run_binary(all, {.input = input, .folder = empty.path(), .environment = kAws, .stdout_file = {}});
  }

  std::unique_ptr<Emulator> emulator_;
};

TEST_F(CopyToTable, GoesThereAndBackAndSaysWhatItCost) {
  const HostFolder folder;
  const HostFolder back;
  const std::string lines = records(folder, 60);
  ASSERT_EQ(on_table({"table", "create"}).exit_code, 0);
  const Finished imported = on_table({"import", "-"}, lines);
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(summary(imported).at("imported").as_int64(), 60);
  // One more where the lines came in two pieces.
  EXPECT_THAT(imported.err, AnyOf(HasSubstr("DynamoDB: 7 requests"), HasSubstr("DynamoDB: 8 requests")));
  const Finished exported = on_table({"export"});
  EXPECT_EQ(exported.out_lines().size(), 60U);
  EXPECT_THAT(exported.err, AllOf(HasSubstr("exported 60 records; DynamoDB: "), HasSubstr("RCU")));
  EXPECT_EQ(back.run({"import", "--queue", "orders", "-"}, exported.out).exit_code, 0);
  EXPECT_EQ(back.run({"export", "--queue", "orders", "--where", "data.n = 59"}).out_lines().size(), 1U);
}

TEST_F(CopyToTable, AMissingTableEndsTheImportAtItsLine) {
  const HostFolder folder;
  const Finished finished = on_table({"import", "-"}, records(folder, 3));
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("stopped at line 1"), HasSubstr("sluice table create")));
}

TEST_F(CopyToTable, TailSaysWhatALookCosts) {
  ASSERT_EQ(on_table({"table", "create"}).exit_code, 0);
  const HostFolder empty("");
  RunningBinary tail({"tail", "--table", "orders", "--endpoint", emulator_->endpoint(), "--interval", "50ms"},
                     {.input = {}, .folder = empty.path(), .environment = kAws, .stdout_file = {}});
  await_first_look(tail, [this](const std::string& id) {
    EXPECT_EQ(on_table({"send", "--id", id, "--data", "1"}).exit_code, 0);
  });
  tail.signal(SIGTERM);
  const Finished finished = tail.finish();
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("one look costs 2 requests"), HasSubstr("a look)")));
}

}  // namespace
}  // namespace sluice::test
