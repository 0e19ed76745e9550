#include "host/cli/drop_in/drop_in.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>

#include "base/random.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "tests/cli/refusing_operator.hpp"
#include "tests/cli/run_binary.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/forwarding_queues.hpp"
#include "tests/support/meddling_operator.hpp"

namespace sluice::test {
namespace {

using cli::parse_drop_in;
using queue::Half;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

TEST(DropIn, IsKnownByTheNameItIsCalledBy) {
  for (const char* name : {"dynamomq", "/usr/bin/dynamomq", "./dynamomq"}) {
    EXPECT_TRUE(cli::is_drop_in(name)) << name;
  }
  for (const char* name : {"sluice", "dynamomq2", "/dynamomq/sluice", ""}) {
    EXPECT_FALSE(cli::is_drop_in(name)) << name;
  }
}

TEST(DropIn, HasDynamoMqsCommands) {
  Words names;
  for (const cli::Command& command : cli::drop_in_commands()) {
    names.emplace_back(command.name);
  }
  EXPECT_THAT(names, ElementsAre("completion", "delete", "dlq", "enqueue-test", "fail", "get", "help", "invalid", "ls",
                                 "purge", "qstat", "receive", "redrive", "reset"));
}

TEST(DropInWords, ReadFlagsBeforeAndBehindTheCommand) {
  const auto parsed = parse_drop_in({"--table-name", "t", "get", "--id=A=1", "--queueing-index-name", "i", "more"});
  EXPECT_EQ(parsed.error, "");
  ASSERT_NE(parsed.command, nullptr);
  EXPECT_EQ(parsed.command->name, "get");
  EXPECT_EQ(parsed.arguments.get("table"), "t");
  EXPECT_EQ(parsed.arguments.get("id"), "A=1");
  EXPECT_EQ(parsed.arguments.get("index"), "i");
  EXPECT_EQ(parse_drop_in({"get", "--id", "a", "--id", "b"}).arguments.get("id"), "b") << "the last counts";
  EXPECT_EQ(parse_drop_in({"get", "--id", "--help"}).arguments.get("id"), "--help") << "whatever follows is the value";
  EXPECT_TRUE(parse_drop_in({"get", "-h"}).wants_help);
  EXPECT_EQ(parse_drop_in({"ls", "--", "--id"}).error, "");
  EXPECT_TRUE(parse_drop_in({"purge", "--yes"}).arguments.has("yes"));
  EXPECT_TRUE(parse_drop_in({"purge", "--yes=true"}).arguments.has("yes"));
  EXPECT_FALSE(parse_drop_in({"purge", "--yes=false"}).arguments.has("yes"));
  EXPECT_TRUE(parse_drop_in({"purge", "--yes=T"}).arguments.has("yes"));
  EXPECT_FALSE(parse_drop_in({"purge", "--yes=0"}).arguments.has("yes"));
  EXPECT_EQ(parse_drop_in({}).command, nullptr);
  EXPECT_EQ(parse_drop_in({"--table-name", "ls"}).command, nullptr) << "a value is no command";
}

TEST(DropInWords, SayWhatIsWrongInDynamoMqsWords) {
  EXPECT_EQ(parse_drop_in({"ls", "--foo"}).error, "unknown flag: --foo");
  EXPECT_EQ(parse_drop_in({"--version"}).error, "unknown flag: --version");
  EXPECT_EQ(parse_drop_in({"ls", "--id", "x"}).error, "unknown flag: --id");
  EXPECT_EQ(parse_drop_in({"ls", "-x"}).error, "unknown shorthand flag: 'x' in -x");
  EXPECT_EQ(parse_drop_in({"get", "--id"}).error, "flag needs an argument: --id");
  EXPECT_EQ(parse_drop_in({"purge", "--yes=no"}).error, "invalid argument \"no\" for \"--yes\" flag");
  EXPECT_EQ(parse_drop_in({"x"}).error, "unknown command \"x\" for \"dynamomq\"");
  EXPECT_EQ(parse_drop_in({"qsta"}).error,
            "unknown command \"qsta\" for \"dynamomq\"\n\nDid you mean this?\n\tqstat\n");
}

struct DropInRun {
  HostFolder folder{std::string()};
  std::map<std::string, std::string> environment{{"AWS_CONFIG_FILE", "/nowhere"},
                                                 {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere"},
                                                 {"AWS_EC2_METADATA_DISABLED", "true"}};

  Finished operator()(const Words& words) const {
    return run_binary(words, {.input = {},
                              .folder = folder.path(),
                              .environment = environment,
                              .stdout_file = {},
                              .program = (std::filesystem::path(SLUICE_BINARY).parent_path() / "dynamomq").string()});
  }
};

/// Conformance 63: every command when no client can be made. Here no region is named anywhere.
TEST(DropIn, SaysOnBothStreamsThatNoClientCanBeMade) {
  const DropInRun run;
  for (const cli::Command& command : cli::drop_in_commands()) {
    if (command.name == "help" || command.name == "completion") {
      continue;
    }
    const Finished finished = run({std::string(command.name)});
    EXPECT_EQ(finished.exit_code, 1) << command.name;
    EXPECT_THAT(finished.out, StartsWith("ERROR: ")) << command.name;
    EXPECT_THAT(finished.err, StartsWith("Error: ")) << command.name;
    EXPECT_THAT(finished.err, HasSubstr("\nUsage:\n  dynamomq " + std::string(command.name) + " [flags]\n"));
  }
}

TEST(DropIn, HelpsOnStandardOutput) {
  const DropInRun run;
  for (const Words& words : std::vector<Words>{{"--help"}, {"-h"}, {"help"}}) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.exit_code, 0);
    EXPECT_EQ(finished.err, "");
    EXPECT_THAT(finished.out, HasSubstr("Available Commands:\n  completion"));
  }
  EXPECT_EQ(run({"get", "--help"}).out, run({"help", "get"}).out);
  const Finished unknown = run({"help", "nonsense"});
  EXPECT_EQ(unknown.exit_code, 0) << "as there";
  EXPECT_THAT(unknown.err, StartsWith("Unknown help topic [`nonsense`]\nUsage:\n  dynamomq [flags]\n"));
  EXPECT_EQ(unknown.out, "");
  EXPECT_THAT(run({"completion", "bash"}).out, HasSubstr("complete -F _dynamomq_complete dynamomq\n"));
  EXPECT_THAT(run({"completion", "powershell", "--no-descriptions"}).out, HasSubstr("-CommandName dynamomq -Script"));
  EXPECT_EQ(run({"--table-name", "t", "completion", "bash"}).out, run({"completion", "bash"}).out)
      << "the value of a flag is no word of the command";
  EXPECT_EQ(run({"help", "--table-name", "t", "get"}).out, run({"help", "get"}).out);
}

TEST(DropIn, PointsFromAnUnknownCommandToTheNearest) {
  const DropInRun run;
  const Finished finished = run({"recieve"});
  EXPECT_EQ(finished.exit_code, 1);
  const std::string text = "unknown command \"recieve\" for \"dynamomq\"\n\nDid you mean this?\n\treceive\n";
  EXPECT_EQ(finished.out, "ERROR: " + text + "\n");
  EXPECT_EQ(finished.err, "Error: " + text + "\nRun 'dynamomq --help' for usage.\n");
}

TEST(DropIn, PassesOverAHostFileThatNobodyNamed) {
  DropInRun run;
  run.folder.write("host.toml", "[store]\nkind = \"sqlite\"\npath = \"s.db\"\n[queues.orders]\n");
  EXPECT_EQ(run({"ls"}).exit_code, 1) << "a script means its table";
  EXPECT_EQ(run({"ls", "--config", "host.toml"}).out, "{\n  \"statuses\": null\n}\n");
  run.environment["SLUICE_CONFIG"] = "host.toml";
  EXPECT_EQ(run({"ls"}).out, "{\n  \"statuses\": null\n}\n");
}

/// Queues whose operator is one of the test's.
class OperatedQueues final : public ForwardingQueues {
 public:
  OperatedQueues(queue::Queues& beneath, queue::Operator& oper) : ForwardingQueues(beneath), oper_(oper) {}

  Result<std::unique_ptr<queue::Operator>> open_operator(const std::string&) override {
    return std::make_unique<ForwardingOperator>(oper_);
  }

 private:
  queue::Operator& oper_;
};

class Operations : public testing::Test {
 protected:
  Operations()
      : folder_(std::string()),
        sqlite_(*queue::open_sqlite_queues({.path = folder_.path() + "/s.db"}, clock_, random_)),
        desk_(*sqlite_),
        refusing_(desk_.oper("orders"), "A-202"),
        operations_(operations_by(refusing_)) {}

  /// `mend`: of every error.
  cli::DynamoMqOperations operations_by(queue::Operator& oper, const std::string& mend = {}) {
    auto& queues = queues_.emplace_back(*sqlite_, oper);
    auto& audited = audited_.emplace_back(*operate::AuditedOperator::open(queues, "orders", "ann", random_));
    return cli::DynamoMqOperations(
        {.queues = *sqlite_, .oper = *audited, .queue = "orders", .clock = clock_, .mend = [mend](const Error&) {
           return mend;
         }});
  }
  cli::DynamoMqOperations unrefused() { return operations_by(desk_.oper("orders")); }

  HostFolder folder_;
  SystemClock clock_;
  SeededRandom random_;
  std::unique_ptr<queue::Queues> sqlite_;
  Desk desk_;
  RefusingOperator refusing_;
  std::deque<OperatedQueues> queues_;
  std::vector<std::unique_ptr<operate::AuditedOperator>> audited_;
  cli::DynamoMqOperations operations_;
};

/// Conformance 65: a purge with one delete that fails is no error of the command; the answer names it.
TEST_F(Operations, PurgeNamesWhatCouldNotBeDeleted) {
  unrefused().enqueue_test();
  const auto outcome = operations_.purge([](std::uint64_t) { return true; });
  ASSERT_TRUE(outcome.has_value());
  EXPECT_THAT(outcome->successes, ElementsAre("A-101", "A-303", "A-404"));
  JsonWriter json;
  write_outcome(json, *outcome, true, true);
  EXPECT_EQ(json.take_line(),
            "{\"successes\":[\"A-101\",\"A-303\",\"A-404\"],"
            "\"failures\":[{\"ID\":\"A-202\",\"Error\":\"Failed DynamoDB API: refused by the test.\"}]}\n");
}

TEST_F(Operations, PurgeRemovesBothHalvesHoweverManyThereAre) {
  std::vector<queue::NewMessage> messages(1200);
  for (const auto& sent : desk_.send("orders", messages, Deadline::never())) {
    ASSERT_EQ(sent.status, queue::SendStatus::sent);
  }
  cli::DynamoMqOperations all = unrefused();
  ASSERT_TRUE(all.enqueue_test().failures.empty());
  ASSERT_TRUE(all.invalid("A-101").has_value());
  const auto outcome = all.purge([](std::uint64_t) { return true; });
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->successes.size(), 1204U) << "DynamoMQ stops at ten; mended";
  EXPECT_TRUE(outcome->failures.empty());
}

/// Each half for itself, and a message that a handler rejects meanwhile with the half that it went to.
TEST_F(Operations, PurgeMeetsWhatMovesBetweenTheHalves) {
  ASSERT_TRUE(unrefused().enqueue_test().failures.empty());
  int calls = 0;
  std::vector<Half> places;
  MeddlingOperator meddled(desk_.oper("orders"), [&] {
    if (++calls == 1) {
      ASSERT_TRUE(desk_.dead_letter("orders", "A-101", {}, Deadline::never()));
      ASSERT_TRUE(desk_.dead_letter("orders", "A-202", {}, Deadline::never()));
    } else if (calls == 2) {
      places.push_back(desk_.get("orders", "A-101", Deadline::never())->half);
      ASSERT_TRUE(desk_.redrive("orders", "A-202", Deadline::never()));
    }
  });
  const auto outcome = operations_by(meddled).purge([](std::uint64_t) { return true; });
  ASSERT_TRUE(outcome.has_value());
  EXPECT_THAT(places, ElementsAre(Half::dlq)) << "not taken from there on the way";
  EXPECT_THAT(outcome->successes, ElementsAre("A-303", "A-404", "A-101"));
  ASSERT_EQ(outcome->failures.size(), 1U);
  EXPECT_EQ(outcome->failures[0].id, "A-202");
  EXPECT_THAT(outcome->failures[0].error.message(), HasSubstr("moved to the standard half meanwhile"));
}

TEST_F(Operations, PurgeStopsBetweenTwoBatches) {
  std::vector<queue::NewMessage> messages(1200);
  static_cast<void>(desk_.send("orders", messages, Deadline::never()));
  const auto outcome = operations_.purge([](std::uint64_t) { return false; });
  ASSERT_TRUE(outcome.has_value());
  EXPECT_GT(outcome->successes.size(), 0U);
  EXPECT_LT(outcome->successes.size(), 1200U);
}

TEST_F(Operations, EnqueueTestSaysWhatItCouldNotReplace) {
  ASSERT_EQ(unrefused().enqueue_test().successes.size(), 4U);
  const auto outcome = operations_.enqueue_test();
  EXPECT_THAT(outcome.successes, ElementsAre("A-101", "A-303", "A-404"));
  ASSERT_EQ(outcome.failures.size(), 1U);
  EXPECT_EQ(outcome.failures[0].id, "A-202");
}

TEST_F(Operations, RedriveBringsBackWithTheCountAtZero) {
  ASSERT_FALSE(operations_.enqueue_test().successes.empty());
  EXPECT_EQ(operations_.redrive("A-101").error().message(),
            "operation mark as restored from DLQ failed for status READY: can only redrive messages from DLQ.");
  ASSERT_TRUE(operations_.receive().has_value());
  ASSERT_TRUE(operations_.invalid("A-101").has_value());
  const auto redriven = operations_.redrive("A-101");
  ASSERT_TRUE(redriven.has_value());
  EXPECT_EQ(redriven->message.attempt, 0U) << "DynamoMQ keeps the count; mended";
  EXPECT_EQ(redriven->half, queue::Half::standard);
  EXPECT_EQ(operations_.redrive("").error().message(), "ID was not provided.");
  EXPECT_EQ(operations_.redrive("nobody").error().message(), "Provided ID was not found in the Dynamo DB.");
}

/// Whoever pastes the command must not paste a full stop with it.
TEST_F(Operations, TheMendStandsBehindTheFullStop) {
  cli::DynamoMqOperations gone = operations_by(refusing_, "; make it with: sluice table create --table t");
  EXPECT_EQ(gone.remove("A-202").error().message(),
            "Failed DynamoDB API: refused by the test. Make it with: sluice table create --table t");
}

TEST(DynamoMqErrors, AreWordedAsThere) {
  EXPECT_EQ(cli::dynamomq_error(Error(ErrorCode::duplicate_id, "x")).message(), "Provided ID was duplicated.");
  EXPECT_EQ(cli::dynamomq_error(Error(ErrorCode::conflict, "x")).message(),
            "Condition on the 'version' attribute has failed: x.");
  EXPECT_EQ(cli::dynamomq_error(Error(ErrorCode::throttled, "slow down")).message(), "Failed DynamoDB API: slow down.");
}

}  // namespace
}  // namespace sluice::test
