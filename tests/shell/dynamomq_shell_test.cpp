#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>
#include <cstdio>

#include "host/cli/console.hpp"
#include "host/cli/drop_in/dynamomq_operations.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/shell/shell.hpp"
#include "tests/shell/shell_places.hpp"
#include "tests/support/emulator.hpp"

namespace sluice::test {
namespace {

namespace json = boost::json;
using cli::Shell;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kPlain = "\n>> Enter command: ";
constexpr const char* kFirst = "\nID <A-101> >> Enter command: ";

class DynamoMqShellTest : public ::testing::TestWithParam<ShellPlaceKind> {
 protected:
  void SetUp() override {
    place_ = GetParam().make();
    if (!place_) {
      GTEST_SKIP() << Emulator::absence();
    }
    auto session = cli::QueueSession::open(place_->arguments());
    ASSERT_TRUE(session.has_value());
    session_ = std::make_unique<cli::QueueSession>(std::move(*session));
    ASSERT_NE(std::freopen("/dev/null", "r", stdin), nullptr) << "nobody is there to be asked";
    shell_ = cli::dynamomq_shell(*session_, console_);
  }

  std::string type(const std::string& line) {
    testing::internal::CaptureStdout();
    const auto next = shell_->step(line);
    console_.flush();
    EXPECT_EQ(next, Shell::Next::go_on) << line;
    return testing::internal::GetCapturedStdout();
  }
  /// What follows a headline, read as JSON.
  json::value below(const std::string& headline, const std::string& text) {
    EXPECT_THAT(text, StartsWith(headline + "\n"));
    const auto start = headline.size() + 1;
    const auto end = text.find("\n}\n", start);
    return text.size() < start ? json::value() : json::parse(text.substr(start, end + 2 - start));
  }
  void send(const std::string& id, const std::string& body) {
    const queue::NewMessage message{.id = id, .body = body, .content_type = std::string(queue::kJson)};
    const auto sent = (*session_->open_sender())->send(std::span(&message, 1), session_->deadline());
    ASSERT_EQ(sent.front().status, queue::SendStatus::sent) << sent.front().error.message();
  }

  cli::DynamoMqOperations operations() { return cli::DynamoMqOperations(*session_); }

  std::unique_ptr<ShellPlace> place_;
  std::unique_ptr<cli::QueueSession> session_;
  cli::Console console_;
  std::unique_ptr<Shell> shell_;
};

class DynamoMqShellOnStores : public DynamoMqShellTest {};

TEST_P(DynamoMqShellOnStores, Welcomes) {
  const config::StoreConfig& store = session_->place().store();
  const std::string opened = place_->is_table() ? "AWS session is properly established!\nAWSRegion: eu-west-1"
                                                : "SQLite store is properly opened!\nAWSRegion: ";
  const std::string endpoint = place_->is_table() ? store.endpoint : "file:" + store.path;
  EXPECT_THAT(shell_->greeting(),
              HasSubstr("\n... " + opened + "\nTableName: " + session_->queue() + "\nEndpointURL: " + endpoint + "\n"));
  EXPECT_EQ(shell_->prompt(), kPlain);
  EXPECT_EQ(shell_->farewell(), "... Interactive is ending\n\n\n");
}

TEST_P(DynamoMqShellOnStores, Conformance64QuitEnds) {
  EXPECT_EQ(shell_->step("quit"), Shell::Next::end);
  EXPECT_EQ(shell_->step("  Q  "), Shell::Next::end);
}

TEST_P(DynamoMqShellOnStores, Conformance64UnknownAndBlankAreErrors) {
  for (const std::string line : {"unknown", "", "   ", "stats"}) {
    EXPECT_EQ(type(line), "ERROR: unrecognized command\n") << line;
  }
}

TEST_P(DynamoMqShellOnStores, Conformance64HelpOk) {
  const std::string help = type("help");
  EXPECT_THAT(help, StartsWith("... this is Interactive HELP!\n"));
  EXPECT_EQ(type("h"), help);
  EXPECT_EQ(type("?"), help);
  EXPECT_EQ(type("HELP me"), help);
}

TEST_P(DynamoMqShellOnStores, Conformance64WithoutSelectionIsAnError) {
  for (const std::string name : {"system", "data", "info", "reset", "redrive", "delete", "fail", "invalid"}) {
    EXPECT_EQ(type(name), "ERROR: `" + name + "` command can be only used in the Interactive mode. Call first `id\n");
  }
}

TEST_P(DynamoMqShellOnStores, Conformance64QstatOk) {
  EXPECT_EQ(type("qstat"),
            "Queue status:\n{\n"
            "  \"first_100_IDs_in_queue\": [],\n"
            "  \"first_100_IDs_in_queue_processing\": [],\n"
            "  \"total_messages_in_queue\": 0,\n"
            "  \"total_messages_in_queue_processing\": 0,\n"
            "  \"total_messages_in_queue_ready\": 0\n}\n");
  type("enqueue-test");
  type("receive");
  const json::value stats = below("Queue status:", type("qstat"));
  EXPECT_EQ(stats.at("total_messages_in_queue").as_int64(), 4);
  EXPECT_EQ(stats.at("total_messages_in_queue_processing").as_int64(), 1);
  EXPECT_EQ(stats.at("first_100_IDs_in_queue_processing"), (json::value{"A-101"}));
}

TEST_P(DynamoMqShellOnStores, Conformance64DlqOk) {
  EXPECT_EQ(type("dlq"), "DLQ status:\n{\n  \"first_100_IDs_in_queue\": [],\n  \"total_messages_in_DLQ\": 0\n}\n");
}

TEST_P(DynamoMqShellOnStores, Conformance64EnqueueTestOk) {
  const std::string sent = "Send a message with IDs:\n* ID: A-101\n* ID: A-202\n* ID: A-303\n* ID: A-404\n";
  EXPECT_EQ(type("enqueue-test"), sent);
  EXPECT_EQ(type("enqueue-test"), sent) << "they replace themselves";
  EXPECT_EQ(below("Queue status:", type("qstat")).at("total_messages_in_queue").as_int64(), 4);
}

// Mended: every entry has its own line.
TEST_P(DynamoMqShellOnStores, Conformance64LsOk) {
  EXPECT_EQ(type("ls"), "Queue is empty!\n");
  send("A-1", "1");
  send("A-2", "2");
  EXPECT_EQ(type("ls"), "List messages of first 10 IDs:\n* ID: A-1, status: READY\n* ID: A-2, status: READY\n");
  type("id A-1");
  type("receive");
  EXPECT_THAT(type("ls"), HasSubstr("* ID: A-1, status: PROCESSING\n"));
}

// Mended: all of them go, not ten.
TEST_P(DynamoMqShellOnStores, Conformance64PurgeOk) {
  EXPECT_EQ(type("purge"), "Message table is empty ... nothing to remove!\n");
  for (int message = 0; message < 12; ++message) {
    send("A-" + std::to_string(message), "1");
  }
  type("id A-3");
  type("invalid");
  const std::string purged = type("purge");
  EXPECT_THAT(purged, StartsWith("List messages of removed IDs:\n* ID: A-"));
  EXPECT_EQ(std::count(purged.begin(), purged.end(), '*'), 12);
  EXPECT_EQ(shell_->prompt(), kPlain) << "the selected message went too";
  EXPECT_EQ(type("ls"), "Queue is empty!\n");
}

// What it said of that went where the interruption had closed the output.
TEST_P(DynamoMqShellOnStores, PurgeThatIsInterruptedSaysHowFarItCame) {
  for (const std::string id : {"A-1", "A-2", "A-3"}) {
    send(id, "1");
  }
  type("id A-3");
  type("invalid");
  static const std::atomic<bool> interrupted = true;
  console_.drop_output_while(interrupted);
  testing::internal::CaptureStderr();
  EXPECT_EQ(type("purge"), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "stopped after 2 messages; purge again to go on\n");
  EXPECT_EQ(operations().list()->size(), 1U);
}

TEST_P(DynamoMqShellOnStores, Conformance64ReceiveOk) {
  EXPECT_EQ(type("receive"), "ERROR: Cannot proceed, queue is empty.\n");
  type("enqueue-test");
  const std::string text = type("receive");
  const json::value info = below("ReceiveMessage was successful ... record peeked is: [A-101]", text);
  EXPECT_EQ(info.at("status").as_string(), "PROCESSING");
  EXPECT_EQ(info.at("receive_count").as_int64(), 1);
  EXPECT_EQ(info.as_object().size(), 10U);
  EXPECT_EQ(info.as_object().begin()[1].key(), "status");
  EXPECT_THAT(text, HasSubstr("}\nQueue stats:\n{\n"));
  EXPECT_EQ(shell_->prompt(), kFirst);
}

TEST_P(DynamoMqShellOnStores, Conformance64IdOk) {
  EXPECT_EQ(type("id nobody"), "ERROR: message not found, ID: nobody\n");
  EXPECT_EQ(shell_->prompt(), kPlain);
  type("enqueue-test");
  const json::value record = below("Message's [A-101] record dump:", type("ID A-101 and more"));
  EXPECT_EQ(record.at("data").at("items").as_array().size(), 3U);
  EXPECT_EQ(record.as_object().size(), 10U);
  EXPECT_EQ(shell_->prompt(), kFirst);
  EXPECT_EQ(type("id nobody"), "ERROR: message not found, ID: nobody\n");
  EXPECT_EQ(shell_->prompt(), kFirst) << "a failed choice changes nothing";
  EXPECT_EQ(type("id"), "Going back to standard Interactive mode!\n");
  EXPECT_EQ(shell_->prompt(), kPlain);
}

TEST_P(DynamoMqShellOnStores, Conformance64SystemDataAndInfoOk) {
  send("A-101", R"({"b": 9007199254740993, "a": "<&>"})");
  type("id A-101");
  EXPECT_EQ(type("data"), "Data info:\n{\n  \"a\": \"\\u003c\\u0026\\u003e\",\n  \"b\": 9007199254740993\n}\n");
  const json::value system = below("ID's system info:", type("system"));
  EXPECT_EQ(system.at("status").as_string(), "READY");
  EXPECT_EQ(system.at("queue_type").as_string(), "STANDARD");
  EXPECT_FALSE(system.as_object().contains("data"));
  EXPECT_EQ(below("Record's dump:", type("info")).at("id").as_string(), "A-101");
}

TEST_P(DynamoMqShellOnStores, Conformance64ResetOk) {
  send("A-101", "1");
  type("receive");
  const json::value info = below("Reset system info:", type("reset"));
  EXPECT_EQ(info.at("status").as_string(), "READY");
  EXPECT_EQ(info.at("receive_count").as_int64(), 0);
  EXPECT_EQ(info.at("invisible_until_at").as_string(), "");
}

// Mended: the count starts anew, and the selected message shows it.
TEST_P(DynamoMqShellOnStores, Conformance64RedriveOk) {
  send("A-101", "1");
  type("receive");
  EXPECT_EQ(type("redrive"),
            "ERROR: operation mark as restored from DLQ failed for status PROCESSING: can only redrive messages from "
            "DLQ.\n");
  type("invalid");
  const json::value redriven = below("Ready system info:", type("redrive"));
  EXPECT_EQ(redriven.at("RedroveMessage").at("receive_count").as_int64(), 0);
  EXPECT_EQ(redriven.at("RedroveMessage").at("queue_type").as_string(), "STANDARD");
  EXPECT_EQ(below("ID's system info:", type("system")).at("queue_type").as_string(), "STANDARD");
}

// Mended: what is gone is not selected any more.
TEST_P(DynamoMqShellOnStores, Conformance64DeleteOk) {
  send("A-101", "1");
  type("id A-101");
  const std::string text = type("delete");
  EXPECT_THAT(text, StartsWith("Processing for ID [A-101] is deleted successfully! Remove from the queue!\n"
                               "Queue status:\n"));
  EXPECT_THAT(text, HasSubstr("\"total_messages_in_queue\": 0"));
  EXPECT_EQ(shell_->prompt(), kPlain);
}

TEST_P(DynamoMqShellOnStores, Conformance64FailOk) {
  send("A-101", "1");
  type("receive");
  EXPECT_THAT(type("fail"),
              StartsWith("Processing for ID [A-101] has failed! ReplaceMessage the record back to the queue!\n"
                         "Queue status:\n"));
  const json::value info = below("ID's system info:", type("system"));
  EXPECT_EQ(info.at("status").as_string(), "READY");
  EXPECT_EQ(info.at("receive_count").as_int64(), 1);
}

// Mended: the selected message is seen to be in the DLQ.
TEST_P(DynamoMqShellOnStores, Conformance64InvalidOk) {
  send("A-101", "1");
  type("id A-101");
  const std::string text = type("invalid");
  EXPECT_THAT(text, StartsWith("Processing for ID [A-101] has failed .. invalid data! Send record to DLQ!\n"
                               "Queue status:\n"));
  EXPECT_EQ(shell_->prompt(), kFirst);
  EXPECT_EQ(below("ID's system info:", type("system")).at("queue_type").as_string(), "DLQ");
  EXPECT_EQ(below("DLQ status:", type("dlq")).at("total_messages_in_DLQ").as_int64(), 1);
}

TEST_P(DynamoMqShellOnStores, Conformance64SelectedMessageThatIsGoneIsAnError) {
  for (const std::string name : {"reset", "redrive", "fail", "invalid"}) {
    send("A-101", "1");
    type("id A-101");
    ASSERT_TRUE(operations().remove("A-101").has_value());
    EXPECT_THAT(type(name), StartsWith("ERROR: ")) << name;
    EXPECT_EQ(shell_->prompt(), kPlain) << name;
  }
  send("A-101", "1");
  type("id A-101");
  ASSERT_TRUE(operations().remove("A-101").has_value());
  EXPECT_THAT(type("delete"), StartsWith("Processing for ID [A-101] is deleted successfully!"))
      << "as there: removing what is not there is a success";
}

TEST_P(DynamoMqShellOnStores, CompletesItsCommandsAndIds) {
  type("enqueue-test");
  EXPECT_THAT(shell_->complete("q").words, ElementsAre("qstat", "qstats", "quit"));
  EXPECT_THAT(shell_->complete("re").words, ElementsAre("receive", "redrive", "reset"));
  EXPECT_THAT(shell_->complete("id A-2").words, ElementsAre("A-202"));
  EXPECT_EQ(shell_->complete("id A-2").replaced, 3U);
  EXPECT_THAT(shell_->complete("qstat ").words, IsEmpty());
}

/// Ids are not quoted here, and end at the first space.
TEST_P(DynamoMqShellOnStores, OffersNoIdThatCannotBeTyped) {
  for (const std::string id : {"B-1", "B 2", "B\t3", "B\x1b[31m"}) {
    send(id, "1");
  }
  EXPECT_THAT(shell_->complete("id B").words, ElementsAre("B-1"));
}

TEST_P(DynamoMqShellOnStores, ShowsNothingThatSteersATerminal) {
  EXPECT_THAT(type("id \x1b[2J"), Not(HasSubstr("\x1b")));
}

INSTANTIATE_TEST_SUITE_P(Stores, DynamoMqShellOnStores, ::testing::Values(sqlite_place(), dynamo_place()),
                         [](const auto& kind) { return kind.param.name; });

class DynamoMqShellOnFailingStore : public DynamoMqShellTest {};

// Every command that asks the store; those that need a selection cannot get one here.
TEST_P(DynamoMqShellOnFailingStore, Conformance64StoreErrorsAreErrors) {
  for (const std::string line : {"qstat", "dlq", "purge", "ls", "receive", "id A-101"}) {
    EXPECT_THAT(type(line), StartsWith("ERROR: Failed DynamoDB API: ")) << line;
  }
  EXPECT_THAT(type("enqueue-test"), HasSubstr("ERROR: Failed DynamoDB API: "));
  EXPECT_EQ(shell_->prompt(), kPlain);
  EXPECT_THAT(shell_->complete("id A").words, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Stores, DynamoMqShellOnFailingStore, ::testing::Values(missing_table_place()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace sluice::test
