#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>
#include <set>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::int64_t stored(const HostFolder& folder) {
  return boost::json::parse(folder.run({"stats", "--queue", "q"}).out).at("total").as_int64();
}

BinaryOptions in(const HostFolder& folder) {
  return {.input = {}, .folder = folder.path(), .environment = {}, .stdout_file = {}};
}

TEST(BulkSend, SendsOneMessageALine) {
  const HostFolder folder;
  std::string lines;
  for (int line = 0; line < 2345; ++line) {
    lines += "{\"line\": " + std::to_string(line) + "}\n";
  }
  const Finished sent = folder.run({"send", "--queue", "q", "-", "--attr", "batch=7"}, lines);
  EXPECT_EQ(sent.exit_code, 0);
  EXPECT_EQ(sent.err, "") << "no progress where there is no terminal";
  const auto ids = sent.out_lines();
  EXPECT_EQ(ids.size(), 2345U);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 2345U);
  EXPECT_EQ(stored(folder), 2345);
  const auto last = boost::json::parse(folder.run({"get", "--queue", "q", "--id", ids.back()}).out);
  EXPECT_EQ(last.at("data").at("line").as_int64(), 2344) << "ids come in the order of the lines";
  EXPECT_EQ(last.at("attributes").at("batch").as_string(), "7");
}

TEST(BulkSend, TakesBlankLinesCarriageReturnsAndAMissingLastBreak) {
  const HostFolder folder;
  const Finished sent = folder.run({"send", "--queue", "q", "-"}, "1\r\n\n  \n2\n3");
  EXPECT_EQ(sent.exit_code, 0) << sent.err;
  EXPECT_EQ(sent.out_lines().size(), 3U);
  EXPECT_EQ(folder.run({"send", "--queue", "q", "-"}, "").exit_code, 0);
}

TEST(BulkSend, StopsAtABadLineAndSaysHowFarItCame) {
  const HostFolder folder;
  const Finished sent = folder.run({"send", "--queue", "q", "-"}, "1\n2\n\n{broken\n5\n");
  EXPECT_EQ(sent.exit_code, 1);
  EXPECT_EQ(sent.out_lines().size(), 2U) << "what stood before the bad line is sent";
  const auto lines = sent.err_lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], StartsWith("sluice send: line 4: not JSON: "));
  EXPECT_THAT(lines[1], StartsWith("sluice send: 2 messages were sent; lines 4- are not stored; send the same input "
                                   "again with --resume "));
  EXPECT_EQ(stored(folder), 2);
}

TEST(BulkSend, KeepGoingPassesOverBadLines) {
  const HostFolder folder;
  const Finished sent = folder.run({"send", "--queue", "q", "-", "--keep-going"}, "1\nx\n2\n\"\xff\"\n3\n");
  EXPECT_EQ(sent.exit_code, 1);
  EXPECT_EQ(sent.out_lines().size(), 3U);
  const auto lines = sent.err_lines();
  ASSERT_EQ(lines.size(), 3U) << sent.err;
  EXPECT_THAT(lines[0], StartsWith("sluice send: line 2: not JSON"));
  EXPECT_THAT(lines[1], StartsWith("sluice send: line 4: not JSON"));
  EXPECT_THAT(lines[2], StartsWith("sluice send: 3 messages were sent, 2 lines were passed over; lines 2,4 are not "
                                   "stored; send the same input again with --resume "));
  EXPECT_EQ(stored(folder), 3);
}

/// Behind "--resume ", up to the line's end.
std::string token_of(const Finished& sent) {
  const auto at = sent.err.find("--resume ") + std::string("--resume ").size();
  return sent.err.substr(at, sent.err.find('\n', at) - at);
}

// A store refused two lines of a batch; only the first was named, and sending the rest doubled what was stored.
TEST(BulkSend, BlankLinesBehindTheLastBatchAreNotMissing) {
  const HostFolder folder;
  std::string lines = "{broken\n";
  for (int line = 0; line < 7'999; ++line) {  // a whole batch with it
    lines += "1\n";
  }
  const Finished sent = folder.run({"send", "--queue", "q", "-", "--keep-going"}, lines + "\n\n");
  EXPECT_EQ(sent.exit_code, 1);
  EXPECT_THAT(sent.err, HasSubstr("; line 1 is not stored; send the same input again"));
}

TEST(BulkSend, NamesEveryLineThatIsNotStoredAndARepeatSendsThoseAlone) {
  const HostFolder folder;
  std::string bad;
  std::string mended;
  for (int line = 1; line <= 100; ++line) {
    const bool large = line == 3 || line == 51;
    bad += (large ? std::string("{") : std::to_string(line)) + "\n";
    mended += std::to_string(line) + "\n";
  }
  const Finished sent = folder.run({"send", "--queue", "q", "-", "--keep-going"}, bad);
  EXPECT_EQ(sent.exit_code, 1);
  EXPECT_EQ(sent.out_lines().size(), 98U);
  EXPECT_THAT(sent.err, HasSubstr("lines 3,51 are not stored; "));
  const Finished again = folder.run({"send", "--queue", "q", "-", "--resume", token_of(sent)}, mended);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out_lines().size(), 2U);
  EXPECT_EQ(stored(folder), 100);
  const Finished once_more = folder.run({"send", "--queue", "q", "-", "--resume", token_of(sent)}, mended);
  EXPECT_EQ(once_more.exit_code, 0) << once_more.err;
  EXPECT_EQ(stored(folder), 100) << "a line has the same id each time";
  EXPECT_EQ(folder.run({"send", "--queue", "q", "-", "--resume", "51"}, mended).exit_code, 64);
  EXPECT_EQ(folder.run({"send", "--queue", "q", "--text", "x", "--resume", token_of(sent)}).exit_code, 64);
}

TEST(BulkSend, SendsWhatThereIsWhenTheInputPauses) {
  const HostFolder folder;
  RunningBinary sluice({"send", "--queue", "q", "-"}, in(folder));
  sluice.write("1\n2\n");
  EXPECT_EQ(sluice.read_line().size(), 36U);
  EXPECT_EQ(sluice.read_line().size(), 36U);
  EXPECT_EQ(stored(folder), 2) << "while the producer is still connected";
  sluice.write("3\n");
  EXPECT_EQ(sluice.read_line().size(), 36U);
  EXPECT_EQ(sluice.finish().exit_code, 0);
}

TEST(BulkSend, CtrlCStopsBetweenBatchesAndSaysHowMany) {
  for (const int number : {SIGINT, SIGTERM}) {
    const HostFolder folder;
    RunningBinary sluice({"send", "--queue", "q", "-"}, in(folder));
    sluice.write("1\n2\n3\n");
    for (int line = 0; line < 3; ++line) {
      EXPECT_EQ(sluice.read_line().size(), 36U);
    }
    sluice.signal(number);
    const Finished finished = sluice.finish();
    EXPECT_EQ(finished.exit_code, 130);
    EXPECT_THAT(finished.err, StartsWith("sluice send: interrupted; 3 messages were sent; lines 4- are not stored; "));
    EXPECT_EQ(stored(folder), 3);
  }
}

TEST(BulkSend, EndsQuietlyWhenNobodyReadsTheIds) {
  const HostFolder folder;
  std::string lines;
  constexpr int kLines = 300'000;
  for (int line = 0; line < kLines; ++line) {
    lines += "1\n";
  }
  BinaryOptions options = in(folder);
  options.input = lines;
  options.closed_output = true;
  const Finished finished = run_binary({"send", "--queue", "q", "-"}, options);
  EXPECT_EQ(finished.exit_code, 141);
  EXPECT_EQ(finished.err, "");
  EXPECT_LT(stored(folder), kLines) << "it stops, it does not send on unseen";
}

TEST(BulkSend, RefusesALineWithoutEnd) {
  const HostFolder folder;
  const Finished sent = folder.run({"send", "--queue", "q", "-"}, "1\n\"" + std::string(17 * 1024 * 1024, 'x'));
  EXPECT_EQ(sent.exit_code, 1);
  EXPECT_THAT(sent.err, StartsWith("sluice send: line 2: longer than 16 MiB, the most that a line may have; send a "
                                   "smaller message\nsluice send: 1 message was sent; lines 2- are not stored; "));
  EXPECT_EQ(stored(folder), 1);
}

// It ended the reading, and every line behind it was named as not stored.
TEST(BulkSend, KeepGoingPassesOverALineThatIsTooLong) {
  const HostFolder folder;
  const std::string input = "1\n\"" + std::string(17 * 1024 * 1024, 'x') + "\"\n3\n4\n";
  const Finished sent = folder.run({"send", "--queue", "q", "-", "--keep-going"}, input);
  EXPECT_EQ(sent.exit_code, 1);
  EXPECT_EQ(sent.out_lines().size(), 3U);
  const auto lines = sent.err_lines();
  ASSERT_EQ(lines.size(), 2U) << sent.err;
  EXPECT_THAT(lines[0], StartsWith("sluice send: line 2: longer than 16 MiB"));
  EXPECT_THAT(lines[1], StartsWith("sluice send: 3 messages were sent, 1 line was passed over; line 2 is not "
                                   "stored; send the same input again with --resume "));
  EXPECT_EQ(stored(folder), 3);
  const Finished again = folder.run({"send", "--queue", "q", "-", "--resume", token_of(sent)}, "1\n2\n3\n4\n");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out_lines().size(), 1U);
  EXPECT_EQ(stored(folder), 4);
}

}  // namespace
}  // namespace sluice::test
