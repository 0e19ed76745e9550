// Clients as programs open them: by table and region, or by file.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "dynamo/connection.hpp"
#include "host/queue/wake/datagram.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "tests/client/client_rig.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"
#include "tests/support/dynamodb_model/server.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::client {
namespace {

using ::testing::HasSubstr;

/// The environment that AWS's settings come from, with nothing but keys in it; put back afterwards.
class OpenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-open-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    set("HOME", folder_.string());
    set("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    set("AWS_SECRET_ACCESS_KEY", "secret");
    for (const char* variable : {"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE",
                                 "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"}) {
      set(variable, std::nullopt);
    }
  }
  void TearDown() override {
    for (auto before = before_.rbegin(); before != before_.rend(); ++before) {
      put(before->first, before->second);
    }
    std::filesystem::remove_all(folder_);
  }

  void set(const std::string& variable, const std::optional<std::string>& value) {
    const char* now = ::getenv(variable.c_str());
    before_.emplace_back(variable, now == nullptr ? std::nullopt : std::optional<std::string>(now));
    put(variable, value);
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

 private:
  static void put(const std::string& variable, const std::optional<std::string>& value) {
    value ? ::setenv(variable.c_str(), value->c_str(), 1) : ::unsetenv(variable.c_str());
  }

  std::filesystem::path folder_;
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

void works_off_one(QueueClient& client) {
  Producer producer(client);
  const ProduceResult sent = producer.produce("x", {.id = "A-101"});
  ASSERT_TRUE(sent) << sent.error().message();
  const auto received = client.receive();
  ASSERT_TRUE(received) << received.error().message();
  EXPECT_EQ(received->message.id, "A-101");
  EXPECT_TRUE(client.delete_message(received->receipt));
}

TEST_F(OpenTest, ATableOfDynamoDb) {
  if (test::shared_emulator() == nullptr) {
    GTEST_SKIP() << test::Emulator::absence();
  }
  const SystemClock clock;
  test::EmulatedHost host(clock, "open", 1);
  const std::string table = test::fresh_table_name("open");
  test::make_table(host.client(), table, clock);
  auto named = QueueClient::open(
      DynamoDbQueue{.table = table, .region = "eu-west-1", .endpoint = test::shared_emulator()->endpoint()});
  ASSERT_TRUE(named) << named.error().message();
  works_off_one(*named);

  set("AWS_REGION", "eu-west-1");
  set("AWS_ENDPOINT_URL_DYNAMODB", test::shared_emulator()->endpoint());
  auto by_environment = QueueClient::open(DynamoDbQueue{.table = table});
  ASSERT_TRUE(by_environment) << by_environment.error().message();
  works_off_one(*by_environment);
}

// A host that has announced itself in the table, as far as a producer sees it.
TEST_F(OpenTest, HostsAreRungForWhatIsSentUnlessAProgramMayNot) {
  if (test::shared_emulator() == nullptr) {
    GTEST_SKIP() << test::Emulator::absence();
  }
  const SystemClock clock;
  test::EmulatedHost host(clock, "rung", 1);
  const std::string table = test::fresh_table_name("rung");
  test::make_table(host.client(), table, clock);
  auto listener = queue::wake::DatagramListener::open(*queue::wake::parse_address("127.0.0.1:0"));
  ASSERT_TRUE(listener);
  const auto place = *host.desk().queues().open_wake_place(table);
  ASSERT_TRUE(place->announce({.host = "h",
                               .address = queue::wake::text_of(listener->address()),
                               .queues = {table},
                               .at = clock.wall_now(),
                               .every = std::chrono::hours(1)},
                              Deadline::never()));
  const DynamoDbQueue target{.table = table, .region = "eu-west-1", .endpoint = test::shared_emulator()->endpoint()};
  for (const bool rings : {true, false}) {
    {
      auto client = QueueClient::open(target, {.ring_hosts = rings, .wake_secret = "0123456789abcdef"});
      ASSERT_TRUE(client) << client.error().message();
      EXPECT_TRUE(client->send({.id = rings ? "loud" : "silent", .data = "x"}));
    }
    // The client has ended, and has sent before.
    const auto bytes = listener->take();
    ASSERT_EQ(bytes.has_value(), rings);
    EXPECT_TRUE(!rings || queue::wake::Datagram::read(*bytes)->signed_with("0123456789abcdef"));
  }
}

TEST_F(OpenTest, OnALeasedQueueTheStoreMakesTheIdsThatNobodyBrings) {
  if (test::shared_emulator() == nullptr) {
    GTEST_SKIP() << test::Emulator::absence();
  }
  const SystemClock clock;
  test::EmulatedHost host(clock, "maker", 1);
  queue::dynamodb::TableSpec spec;
  spec.table = test::fresh_table_name("leased");
  spec.layout = queue::dynamodb::kLeasedLayout;
  ASSERT_TRUE(queue::dynamodb::create_queue_table(host.client(), spec, clock, Deadline::never()));
  auto client = QueueClient::open(LeasedQueue{
      .queue = "orders", .table = spec.table, .region = "eu-west-1", .endpoint = test::shared_emulator()->endpoint()});
  ASSERT_TRUE(client) << client.error().message();
  Producer producer(*client);
  const ProduceResult made = producer.produce("x");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->size(), 29U) << "no UUID, which would take an alias of its own: " << *made;
  const auto stored = client->get(*made);
  ASSERT_TRUE(stored && *stored);
  EXPECT_EQ((*stored)->data, "x");
  const ProduceResult own = producer.produce("y", {.id = "A-101"});
  ASSERT_TRUE(own);
  EXPECT_EQ(*own, "A-101");
}

TEST_F(OpenTest, AnEndpointMakesUpForARegion) {
  EXPECT_TRUE(QueueClient::open(DynamoDbQueue{.endpoint = "http://127.0.0.1:1"}));
}

TEST_F(OpenTest, DefaultsAreDynamoMqs) {
  EXPECT_EQ(DynamoDbQueue{}.table, "dynamo-mq-table");
  EXPECT_EQ(DynamoDbQueue{}.index, "dynamo-mq-index-queue_type-sent_at");
}

TEST_F(OpenTest, WithoutARegionItSaysWhereToNameOne) {
  const auto client = QueueClient::open(DynamoDbQueue{});
  ASSERT_EQ(error_name(client), "DynamoDBAPIError");
  EXPECT_THAT(client.error().message(), HasSubstr("AWS_REGION"));
}

TEST_F(OpenTest, AProgramIsToldOnceWhatARoleWithoutPartiQlCosts) {
  const SystemClock clock;
  test::model::Model model(clock, 1);
  const test::model::ModelServer server(model, clock);
  SeededRandom random(1);
  const auto own = dynamo::Connection::open({.region = "eu-west-1", .endpoint = server.endpoint(), .observer = {}},
                                            "no region", clock, random);
  ASSERT_TRUE(own);
  test::make_table((*own)->client(), "orders", clock);
  model.deny("dynamodb:PartiQLInsert");
  std::vector<std::string> warnings;
  auto client =
      QueueClient::open(DynamoDbQueue{.table = "orders", .region = "eu-west-1", .endpoint = server.endpoint()},
                        {.on_warning = [&warnings](const std::string& warning) { warnings.push_back(warning); }});
  ASSERT_TRUE(client) << client.error().message();
  for (int lot = 0; lot < 2; ++lot) {
    std::vector<NewMessage> messages(5);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      messages[i] = {.id = "m" + std::to_string(lot) + "-" + std::to_string(i), .data = "x"};
    }
    for (const auto& sent : client->send(messages)) {
      EXPECT_TRUE(sent) << sent.error().message();
    }
  }
  EXPECT_THAT(warnings, ::testing::ElementsAre(HasSubstr("dynamodb:PartiQLInsert")));
}

TEST_F(OpenTest, AProfileThatIsNotThereIsAnError) {
  set("AWS_PROFILE", "nobody");
  const auto client = QueueClient::open(DynamoDbQueue{.region = "eu-west-1"});
  ASSERT_EQ(error_name(client), "DynamoDBAPIError");
  EXPECT_THAT(client.error().message(), HasSubstr("nobody"));
}

TEST_F(OpenTest, AFileThatTwoClientsShare) {
  auto one = QueueClient::open(SqliteQueue{.path = file("orders.db"), .queue = "orders"});
  ASSERT_TRUE(one) << one.error().message();
  auto other = QueueClient::open(SqliteQueue{.path = file("orders.db"), .queue = "orders", .durable = false});
  ASSERT_TRUE(other) << other.error().message();
  works_off_one(*one);
  ASSERT_TRUE(one->send({.id = "A-202", .data = "x"}));
  EXPECT_EQ(error_name(other->send({.id = "A-202", .data = "x"})), "IDDuplicatedError");
  EXPECT_TRUE(other->receive());
  EXPECT_EQ(error_name(one->receive()), "EmptyQueueError");
}

/// The signals that each thread but this one blocks, bit by bit.
std::vector<std::uint64_t> blocked_elsewhere() {
  std::vector<std::uint64_t> masks;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string line;
    while (task.path().filename() != std::to_string(::gettid()) && std::getline(status, line)) {
      if (line.starts_with("SigBlk:")) {
        masks.push_back(std::stoull(line.substr(7), nullptr, 16));
      }
    }
  }
  return masks;
}

TEST_F(OpenTest, TheProgramsSignalsAreTheProgramsAlone) {
  if (::access("/proc/self/task", R_OK) != 0) {
    GTEST_SKIP() << "no /proc";
  }
  const auto before = blocked_elsewhere();
  auto local = QueueClient::open(SqliteQueue{.path = file("orders.db"), .queue = "orders"});
  ASSERT_TRUE(local) << local.error().message();
  Producer producer(*local);
  EXPECT_TRUE(producer.produce("x"));
  const std::string endpoint = "http://127.0.0.1:" + std::to_string(test::free_loopback_port());
  auto remote = QueueClient::open(DynamoDbQueue{.region = "eu-west-1", .endpoint = endpoint}, {.timeout = 1ms});
  ASSERT_TRUE(remote) << remote.error().message();
  EXPECT_FALSE(remote->get("A-101"));
  const auto masks = blocked_elsewhere();
  ASSERT_GE(masks.size(), before.size() + 2) << "the producer's thread and that of the requests";
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1, SIGPIPE}) {
    EXPECT_EQ(
        std::count_if(masks.begin(), masks.end(), [&](std::uint64_t mask) { return (mask >> (signal - 1) & 1U) == 0; }),
        std::count_if(before.begin(), before.end(),
                      [&](std::uint64_t mask) { return (mask >> (signal - 1) & 1U) == 0; }))
        << ::strsignal(signal);
  }
}

TEST_F(OpenTest, AClientMovesWithItsQueue) {
  auto opened = QueueClient::open(SqliteQueue{.path = file("orders.db"), .queue = "orders"});
  ASSERT_TRUE(opened) << opened.error().message();
  QueueClient moved = std::move(*opened);
  works_off_one(moved);
  auto other = QueueClient::open(SqliteQueue{.path = file("other.db"), .queue = "orders"});
  ASSERT_TRUE(other) << other.error().message();
  moved = std::move(*other);
  EXPECT_FALSE(moved.get("A-101")->has_value());
}

}  // namespace
}  // namespace sluice::client
