#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using Words = std::vector<std::string>;

struct Mistake {
  Words words;
  int exit_code;
  std::string line;  ///< all of standard error
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  for (const auto& word : mistake.words) {
    *out << word << ' ';
  }
}

/// Wrong command lines: each gets its exit code and one line that says what is wrong and the mend, and nothing on
/// standard output. Run where there is a good host file, so that nothing else can be wrong.
class WrongCommandLine : public testing::TestWithParam<Mistake> {};

TEST_P(WrongCommandLine, GetsOneLine) {
  const HostFolder folder;
  const Finished finished = folder.run(GetParam().words);
  EXPECT_EQ(finished.exit_code, GetParam().exit_code);
  EXPECT_EQ(finished.err, GetParam().line + "\n");
  EXPECT_EQ(finished.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Commands, WrongCommandLine,
    testing::Values(
        Mistake{{}, 64, "sluice: no command; `sluice help` lists them"},
        Mistake{{"chekc"}, 64, "sluice: unknown command \"chekc\"; did you mean `sluice check`?"},
        Mistake{{"frobnicate"}, 64, "sluice: unknown command \"frobnicate\"; `sluice help` lists them"},
        Mistake{{"help", "snd"}, 64, "sluice: unknown command \"snd\"; did you mean `sluice send`?"},
        Mistake{{"table"}, 64, "sluice: \"table\" needs a command after it; `sluice help table` lists them"},
        Mistake{{"table", "crate"}, 64, "sluice: unknown command \"table crate\"; did you mean `sluice table create`?"},
        Mistake{{"--config", "x", "run"},
                64,
                "sluice: an option stands where the command should: --config; write `sluice COMMAND --config ...`"},
        Mistake{{"che\x1b[31mck\n"}, 64, "sluice: unknown command \"che\\u001b[31mck\\n\"; `sluice help` lists them"},
        Mistake{{"help", "send", "now"}, 64, "sluice: unexpected word \"now\"; write `sluice help send`"},
        Mistake{{"plugin", "foo"}, 64, "sluice: unknown command \"plugin foo\"; `sluice help plugin` lists them"},
        Mistake{{"plugin", "inspekt"},
                64,
                "sluice: unknown command \"plugin inspekt\"; did you mean `sluice plugin inspect`?"},
        Mistake{{"tables"}, 64, "sluice: unknown command \"tables\"; did you mean `sluice table`?"},
        Mistake{{"lss"}, 64, "sluice: unknown command \"lss\"; did you mean `sluice ls`?"},
        Mistake{{"qstats"}, 64, "sluice: unknown command \"qstats\"; did you mean `sluice stats`?"},
        Mistake{{"completion", "tcsh"},
                64,
                "sluice: unknown command \"completion tcsh\"; did you mean `sluice completion bash`?"},
        Mistake{{"version", "now"},
                64,
                "sluice version: unexpected word \"now\"; `sluice help version` shows what it takes"}));

INSTANTIATE_TEST_SUITE_P(
    Options, WrongCommandLine,
    testing::Values(
        Mistake{
            {"send", "--quue", "q", "--data", "1"}, 64, "sluice send: unknown option --quue; did you mean --queue?"},
        Mistake{{"get", "--queue", "q"}, 64, "sluice get: which message? Write its id"},
        Mistake{{"ls"}, 64, "sluice ls: --queue is missing; write --queue QUEUE, one of orders, q"},
        Mistake{
            {"ls", "--queue", "q", "--limit", "0"}, 64, "sluice ls: --limit 0: write a whole number from 1 to 1000000"},
        Mistake{{"ls", "--queue", "q", "--limit", "5", "--all"},
                64,
                "sluice ls: --all and --limit exclude each other; give one"},
        Mistake{
            {"purge", "--queue", "q"},
            64,
            "sluice purge: this would remove every message of queue q and there is no terminal to ask on; add --yes to "
            "confirm, or --dry-run to see which"},
        Mistake{
            {"fail"},
            64,
            "sluice fail: say which: ID for one, --where, --older-than, --error or --error-like for some, or --all"},
        Mistake{{"get", "--queue", "q", "x", "y"}, 64, "sluice get: one message at a time; leave out y"},
        Mistake{{"fail", "--queue", "q", "x", "--all"},
                64,
                "sluice fail: an id and --all exclude each other; give one, and x is taken for an id"},
        Mistake{
            {"ls", "q", "orders"}, 64, "sluice ls: unexpected word \"orders\"; `sluice help ls` shows what it takes"},
        Mistake{{"ls", "q", "--queue", "orders"}, 64, "sluice ls: --queue is given twice; give it once"},
        Mistake{{"receive", "--queue", "q", "--visibility-timeout", "soon"},
                64,
                "sluice receive: --visibility-timeout soon is no duration; write 1500ms, 30s, 15m, 2h or 1d"},
        Mistake{
            {"qstat", "--intervall", "1s"}, 64, "sluice stats: unknown option --intervall; did you mean --interval?"},
        Mistake{{"table", "create", "--queue", "q", "--table", "t"},
                64,
                "sluice table create: --queue and --table both name the table; give one"},
        Mistake{{"stats", "--output", "xml"},
                64,
                "sluice stats: --output \"xml\" is neither json nor text; write one of these"},
        Mistake{{"send", "q", "--data", "1", "--json"},
                64,
                "sluice send: unknown option --json; `sluice help send` lists them"},
        Mistake{{"version", "--json", "--output", "text"},
                64,
                "sluice version: --json and --output exclude each other; give one"},
        Mistake{{"plugins", "--dir", "nowhere"}, 1, "sluice plugins: --dir nowhere: there is no such folder"},
        Mistake{{"plugins", "--dir", ".", "--config", "host.toml"},
                64,
                "sluice plugins: --dir and --config exclude each other; give one"},
        Mistake{
            {"move", "q", "orders", "--dry-run", "--endpoint", "http://127.0.0.1:2"},
            64,
            "sluice move: --endpoint says where a table is, and queues q and orders of host.toml both lie in files; "
            "leave it out"},
        Mistake{{"edit", "--queue", "q", "x", "--dry-run"},
                64,
                "sluice edit: an editor takes one ID alone; give --set or --unset with --dry-run"},
        Mistake{{"edit", "--queue", "q", "x", "--where", "receive_count > 3"},
                64,
                "sluice edit: an editor takes one ID alone; give --set or --unset with --where"},
        Mistake{
            {"ls", "--queue", "q", "--both", "--dlq"}, 64, "sluice ls: --dlq and --both exclude each other; give one"},
        Mistake{{"drain", ""}, 64, "sluice drain: HOST is empty; leave it out, or name something"},
        Mistake{{"log-level", "debug", "--host", ""},
                64,
                "sluice log-level: --host is empty; leave it out, or name something"},
        Mistake{{"running", ""}, 64, "sluice running: QUEUE-OR-JOB is empty; leave it out, or name something"},
        Mistake{{"delete", "q", "--all", "--resume", ""},
                64,
                "sluice delete: --resume is empty; leave it out, or name something"},
        Mistake{{"plugin", "validate", "x.so", "--job", ""},
                64,
                "sluice plugin validate: --job is empty; leave it out, or name something"},
        Mistake{{"run", "-"}, 64, "sluice run: unexpected word \"-\"; `sluice help run` shows what it takes"}));

INSTANTIATE_TEST_SUITE_P(
    Send, WrongCommandLine,
    testing::Values(
        Mistake{{"send", "--queue", "q"},
                64,
                "sluice send: nothing to send; give --data JSON, --text TEXT, --file FILE, or - for JSON lines on "
                "standard input"},
        Mistake{{"send", "--queue", "q", "--data", "1", "--text", "x"},
                64,
                "sluice send: --data and --text exclude each other; give one"},
        Mistake{{"send", "--queue", "q", "-", "--id", "x"}, 64, "sluice send: --id and - exclude each other; give one"},
        Mistake{{"send", "--queue", "q", "--data", "1", "--id", ""},
                64,
                "sluice send: --id is empty; leave it out, or name something"},
        Mistake{
            {"send", "--queue", "q", "--data", "1", "--keep-going"}, 64, "sluice send: --keep-going goes with - only"},
        Mistake{{"send", "--queue", "q", "--data", "1", "--priority", "urgent"},
                64,
                "sluice send: --priority \"urgent\": write one of critical, high, normal, low"},
        Mistake{{"send", "--queue", "q", "--data", "1", "--unique", "until-done"},
                64,
                "sluice send: --unique goes with --unique-key only"},
        Mistake{
            {"receive", "--queue", "q", "--wait", "1h"}, 64, "sluice receive: --wait 1h: write a time from 0s to 20s"},
        Mistake{{"send", "--queue", "q", "--data", "1", "--delay", "10"},
                64,
                "sluice send: --delay 10 is no duration; write 1500ms, 30s, 15m, 2h or 1d"},
        Mistake{{"send", "--queue", "q", "--data", "1", "--attr", "novalue"},
                64,
                "sluice send: --attr novalue: write --attr name=value"},
        Mistake{{"send", "--queue", "q", "--data", "hello"},
                64,
                "sluice send: --data is not JSON: a value is expected at character 1; quote it for the shell, --data "
                "'{\"n\": "
                "1}', or send plain text with --text"},
        Mistake{{"send", "--queue", "q", "--data", "1", "--id", "a\xff"},
                64,
                "sluice send: --id is not UTF-8; only a body may be any bytes"},
        Mistake{{"send", "--queue", "q", "--data", "1", "--attr", "a=b", "--attr", "a\xff=b"},
                64,
                "sluice send: --attr is not UTF-8; only a body may be any bytes"},
        Mistake{{"send", "--queue", "q", "--file", "-"},
                1,
                "sluice send: --file -: No such file or directory; for JSON lines on standard input write - alone, for "
                "all of it as one file --file /dev/stdin"},
        Mistake{
            {"send", "--queue", "q", "--file", "nowhere"}, 1, "sluice send: --file nowhere: No such file or directory"},
        Mistake{{"send", "--queue", "q", "--file", "."}, 1, "sluice send: --file .: Is a directory"}));

}  // namespace
}  // namespace sluice::test
