// Numbers 41 to 44 of DynamoMQ's own tests: codecs and the API below fail. There the codec and the expression builder
// are functions that a test replaces; here the failures are made where they come from: answers, records, names.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/client/client_rig.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::client {
namespace {

using ::testing::HasSubstr;

struct Operation {
  const char* name;
  std::function<std::string(QueueClient&)> call;  ///< gives the error's name
};

/// What reads records and gives them back.
const std::vector<Operation>& readers() {
  static const std::vector<Operation> all{
      {"receive", [](QueueClient& client) { return error_name(client.receive()); }},
      {"get", [](QueueClient& client) { return error_name(client.get("A-101")); }},
      {"queue_stats", [](QueueClient& client) { return error_name(client.queue_stats()); }},
      {"dlq_stats", [](QueueClient& client) { return error_name(client.dlq_stats()); }},
      {"list", [](QueueClient& client) { return error_name(client.list()); }},
  };
  return all;
}

/// A table of the emulator behind a transport that breaks to order.
class DynamoDbFailures : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::shared_emulator() == nullptr) {
      GTEST_SKIP() << test::Emulator::absence();
    }
    table_ = test::fresh_table_name("failures");
    host_ = std::make_unique<test::EmulatedHost>(clock_, "failures", 1);
    test::make_table(host_->client(), table_, clock_);
    client_ = std::make_unique<QueueClient>(make_client(host_->desk().queues(), clock_, host_->random(), table_));
    ASSERT_TRUE(client_->send({.id = "A-101", .data = "x"}));
  }
  QueueClient& client() { return *client_; }
  test::EmulatedHost& host() { return *host_; }
  const std::string& table() const { return table_; }

 private:
  SystemClock clock_;
  std::string table_;
  std::unique_ptr<test::EmulatedHost> host_;
  std::unique_ptr<QueueClient> client_;
};

TEST_F(DynamoDbFailures, N41_AnAnswerThatNobodyCanRead) {
  host().faults().choose([](const std::string&, const std::string&) { return test::HttpFault::commit_then_cut; });
  for (const Operation& operation : readers()) {
    EXPECT_EQ(operation.call(client()), "UnmarshalingAttributeError") << operation.name;
  }
}

// Deviates: a record that is not as it should be fails no operation and stops no queue. With theirs, data that does not
// fit the type ends the consumer, and a missing version blocks the queue for ever.
TEST_F(DynamoDbFailures, N41_ARecordThatNobodyUnderstandsStopsNothing) {
  dynamo::ItemWrite odd;
  odd.table = table();
  odd.item = {{"id", dynamo::AttributeValue("odd")},       {"queue_type", dynamo::AttributeValue("STANDARD")},
              {"sent_at", dynamo::AttributeValue("0000")}, {"version", dynamo::AttributeValue("seven")},
              {"data", dynamo::AttributeValue("x")},       {"receive_count", dynamo::AttributeValue("many")}};
  ASSERT_TRUE(host().client().write(odd, Deadline::never()));
  const auto received = client().receive(10);
  ASSERT_TRUE(received) << received.error().message();
  bool found = false;
  for (const ReceivedMessage& one : *received) {
    found |= one.message.id == "A-101";
  }
  EXPECT_TRUE(found) << "what lies behind it is received";
  EXPECT_TRUE(client().get("odd")->has_value());
  EXPECT_EQ(client().queue_stats()->total_messages_in_queue, 2U);
  EXPECT_EQ(client().list()->messages.size(), 2U);
}

TEST(SqliteFailures, N41_AFileThatNobodyCanRead) {
  std::string name = (std::filesystem::temp_directory_path() / "sluice-client-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  const std::string file = folder / "store.db";
  {
    auto client = QueueClient::open(SqliteQueue{.path = file, .queue = "orders"});
    ASSERT_TRUE(client) << client.error().message();
    ASSERT_TRUE(client->send({.id = "A-101", .data = std::string(20'000, 'x')}));
  }
  const auto size = std::filesystem::file_size(file);
  std::filesystem::remove(file + "-wal");
  // Everything but the first page: the file still says what it is.
  std::fstream damage(file, std::ios::in | std::ios::out | std::ios::binary);
  damage.seekp(4'096);
  damage << std::string(size - 4'096, '\x7f');
  damage.close();
  auto client = QueueClient::open(SqliteQueue{.path = file, .queue = "orders"});
  // Seen when it is opened, or when what is damaged is read.
  EXPECT_EQ(client ? error_name(client->receive()) : error_name(client), "UnmarshalingAttributeError");
  std::filesystem::remove_all(folder);
}

class Marshaling : public ClientTest {};

TEST_P(Marshaling, N42_DataThatIsNotWhatItSays) {
  for (const std::string data : {"{\"n\":", "", "{} {}", "nan"}) {
    const auto sent = client().send({.id = "A-101", .data = data, .content_type = "application/json"});
    EXPECT_EQ(error_name(sent), "MarshalingAttributeError") << data;
    Message message;
    message.id = "A-101";
    message.data = data;
    message.content_type = "application/json";
    EXPECT_EQ(error_name(client().replace(message)), "MarshalingAttributeError") << data;
  }
  EXPECT_FALSE(client().get("A-101")->has_value());
}

TEST_P(Marshaling, N42_AnIdThatNoStoreTakes) {
  EXPECT_EQ(error_name(client().send({.id = std::string(3'000, 'x'), .data = "x"})), "MarshalingAttributeError");
}

SLUICE_ON_BOTH_STORES(Marshaling);

TEST_F(DynamoDbFailures, N42_WhatDynamoDbCannotHold) {
  EXPECT_EQ(error_name(client().send({.id = "B-1", .data = std::string(500'000, 'x')})), "MarshalingAttributeError");
  const std::string digits(39, '1');
  EXPECT_EQ(error_name(client().send({.id = "B-1", .data = digits, .content_type = "application/json"})),
            "MarshalingAttributeError");
  // Its neighbours in the batch are sent all the same.
  const std::vector<NewMessage> batch{{.id = "C-1", .data = "x"},
                                      {.id = "C-2", .data = std::string(500'000, 'x')},
                                      {.id = "", .data = "x"},
                                      {.id = "C-4", .data = "x"}};
  const auto results = client().send(batch);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(*results[0], "C-1");
  EXPECT_EQ(error_name(results[1]), "MarshalingAttributeError");
  EXPECT_EQ(error_name(results[2]), "IDNotProvidedError");
  EXPECT_EQ(*results[3], "C-4");
}

/// The operations that their test fails with a configuration of no use.
const std::vector<Operation>& api_calls() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> calls = readers();
    calls.push_back({"delete", [](QueueClient& client) { return error_name(client.delete_message("A-101")); }});
    calls.push_back({"send", [](QueueClient& client) { return error_name(client.send({.id = "B", .data = "x"})); }});
    return calls;
  }();
  return all;
}

TEST(DynamoDbConfiguration, N43_AnEndpointWhereNobodyListens) {
  ::setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  const std::string endpoint = "http://127.0.0.1:" + std::to_string(test::free_loopback_port());
  auto client = QueueClient::open(DynamoDbQueue{.region = "eu-west-1", .endpoint = endpoint}, {.timeout = 1s});
  ASSERT_TRUE(client) << client.error().message();
  for (const Operation& operation : api_calls()) {
    EXPECT_EQ(operation.call(*client), "DynamoDBAPIError") << operation.name;
  }
  const auto sent = client->send({.id = "B", .data = "x"});
  EXPECT_THAT(sent.error().message(), HasSubstr("Failed DynamoDB API: "));
  EXPECT_TRUE(sent.error().transient());
}

TEST_F(DynamoDbFailures, N43_ATableThatIsNotThere) {
  const SystemClock clock;
  QueueClient client = make_client(host().desk().queues(), clock, host().random(), "nowhere");
  for (const Operation& operation : api_calls()) {
    EXPECT_EQ(operation.call(client), "DynamoDBAPIError") << operation.name;
  }
  EXPECT_THAT(client.queue_stats().error().cause(), HasSubstr("nowhere"));
}

TEST(SqliteFailures, N43_AFolderThatCannotBeMade) {
  const auto client = QueueClient::open(SqliteQueue{.path = "/dev/null/store.db", .queue = "orders"});
  ASSERT_EQ(error_name(client), "DynamoDBAPIError");
  EXPECT_THAT(client.error().message(), HasSubstr("Failed queue file: "));
}

// Nothing here builds expressions at run time, so that nothing can fail where theirs does. The name is kept for what
// cannot be asked at all.
TEST(SqliteFailures, N44_AQueueWithoutAName) {
  EXPECT_EQ(error_name(QueueClient::open(SqliteQueue{.path = "unused.db", .queue = ""})), "BuildingExpressionError");
  EXPECT_FALSE(std::filesystem::exists("unused.db"));
}

TEST_F(DynamoDbFailures, N44_ACursorOfSomethingElse) {
  EXPECT_EQ(error_name(client().list({.cursor = "X"})), "BuildingExpressionError");
  EXPECT_EQ(error_name(client().list({.cursor = "Snonsense"})), "BuildingExpressionError");
  EXPECT_EQ(error_name(client().list({.queue_type = QueueType::standard, .cursor = "D"})), "BuildingExpressionError");
}

}  // namespace
}  // namespace sluice::client
