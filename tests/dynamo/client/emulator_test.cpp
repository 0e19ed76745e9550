// The whole client against a real DynamoDB server: the emulator.

#include "tests/support/emulator.hpp"

#include <gmock/gmock.h>

#include "dynamo/client.hpp"
#include "dynamo/credentials/chain.hpp"
#include "dynamo/transport/curl_transport.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/tcp_gate.hpp"

namespace sluice::dynamo {
namespace {

using test::Emulator;
using test::Fault;
using test::TcpGate;

constexpr const char* kTable = "jobs";

class ClientOnEmulator : public testing::Test {
 protected:
  static void SetUpTestSuite() { emulator = Emulator::start().release(); }
  static void TearDownTestSuite() {
    delete emulator;
    emulator = nullptr;
  }

  void SetUp() override {
    if (emulator == nullptr) {
      GTEST_SKIP() << Emulator::absence();
    }
    transport.start();
    client = make_client(emulator->endpoint());
    table = kTable + std::to_string(++tables);
    ASSERT_TRUE(create(table));
  }

  std::unique_ptr<Client> make_client(const std::string& endpoint) {
    ClientOptions options;
    options.region = "eu-west-1";
    options.endpoint = endpoint;
    options.observer = [this](const CallRecord& record) {
      const MutexLock lock(mutex);
      seen += record.capacity;
      ++attempts;
    };
    return std::make_unique<Client>(options, transport, credentials, clock, random);
  }
  Result<TableDescription> create(const std::string& name) {
    CreateTableRequest request;
    request.name = name;
    request.hash_key = "id";
    request.attribute_types = {{"id", "S"}, {"kind", "S"}, {"at", "S"}};
    IndexDescription index;
    index.name = "by-kind";
    index.hash_key = "kind";
    index.range_key = "at";
    index.projection = "ALL";
    request.indexes = {index};
    return client->create_table(request, soon());
  }
  Result<ItemOutput> put(Client& through, const std::string& id, int count = 1) {
    ItemWrite request;
    request.table = table;
    request.item = {{"id", id}, {"kind", "k"}, {"at", "t" + id}, {"count", AttributeValue::number(count)}};
    request.condition = "attribute_not_exists(id)";
    return through.write(request, soon());
  }
  Result<ItemOutput> get(const std::string& id) {
    return client->get_item({.table = table, .key = {{"id", id}}}, soon());
  }
  Deadline soon() const { return Deadline::after(clock, std::chrono::seconds(20)); }

  static inline Emulator* emulator = nullptr;
  static inline int tables = 0;

  SystemClock clock;
  SeededRandom random{1};
  CurlTransport transport{clock};
  test::model::FixedCredentials credentials;
  std::unique_ptr<Client> client;
  std::string table;
  Mutex mutex;
  Capacity seen;
  int attempts = 0;
};

TEST_F(ClientOnEmulator, DescribesTheTableItMade) {
  const auto description = client->describe_table(table, soon());
  ASSERT_TRUE(description) << description.error().message;
  EXPECT_EQ(description->name, table);
  EXPECT_EQ(description->hash_key, "id");
  EXPECT_EQ(description->billing_mode, "PAY_PER_REQUEST");
  ASSERT_EQ(description->indexes.size(), 1U);
  EXPECT_EQ(description->indexes[0].range_key, "at");
  const auto again = create(table);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().exception_name, "ResourceInUseException");
  EXPECT_FALSE(again.error().outcome_unknown);
  EXPECT_EQ(client->describe_table("missing", soon()).error().kind, ErrorKind::resource_not_found);
}

TEST_F(ClientOnEmulator, PutsGetsUpdatesAndDeletes) {
  const auto stored = put(*client, "a");
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored->capacity.write, 2.0);  // the table and its index
  EXPECT_EQ(put(*client, "a").error().kind, ErrorKind::conditional_check_failed);

  const auto item = get("a");
  ASSERT_TRUE(item);
  EXPECT_EQ(find<Number>(item->item, "count")->text, "1");
  EXPECT_EQ(item->capacity.read, 1.0);
  EXPECT_TRUE(get("missing")->item.empty());

  ItemWrite update{.kind = ItemWrite::Kind::update};
  update.table = table;
  update.item = {{"id", "a"}};
  update.update = "SET #c = #c + :one";
  update.condition = "#c = :one";
  update.names = {{"#c", "count"}};
  update.values = {{":one", AttributeValue::number(1)}};
  update.returning = true;
  const auto updated = client->write(update, soon());
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(find<Number>(updated->item, "count")->text, "2");
  EXPECT_EQ(client->write(update, soon()).error().kind, ErrorKind::conditional_check_failed);

  ItemWrite remove{.kind = ItemWrite::Kind::remove};
  remove.table = table;
  remove.item = {{"id", "a"}};
  remove.returning = true;
  const auto removed = client->write(remove, soon());
  ASSERT_TRUE(removed);
  EXPECT_EQ(find<Number>(removed->item, "count")->text, "2");
  EXPECT_TRUE(get("a")->item.empty());
}

TEST_F(ClientOnEmulator, QueriesAndScansPageByPage) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(put(*client, std::to_string(i)));
  }
  QueryRequest query;
  query.table = table;
  query.index = "by-kind";
  query.key_condition = "#k = :k AND #a >= :from";
  query.names = {{"#k", "kind"}, {"#a", "at"}};
  query.values = {{":k", "k"}, {":from", "t1"}};
  query.limit = 3;
  const auto first = client->query(query, soon());
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->items.size(), 3U);
  EXPECT_GT(first->capacity.read, 0);
  query.exclusive_start_key = first->last_evaluated_key;
  const auto second = client->query(query, soon());
  ASSERT_TRUE(second);
  ASSERT_EQ(second->items.size(), 1U);
  EXPECT_EQ(*find<std::string>(second->items[0], "id"), "4");

  ScanRequest scan;
  scan.table = table;
  const auto scanned = client->scan(scan, soon());
  ASSERT_TRUE(scanned);
  EXPECT_EQ(scanned->items.size(), 5U);

  const std::vector<Item> keys = {{{"id", "1"}}, {{"id", "3"}}, {{"id", "none"}}};
  const auto items = client->batch_get(table, keys, soon());
  ASSERT_TRUE(items);
  EXPECT_EQ(items->size(), 2U);
}

TEST_F(ClientOnEmulator, RunsBatchesOfConditionalStatements) {
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(put(*client, std::to_string(i), i == 7 ? 99 : 1));
  }
  std::vector<std::vector<Statement>> batches(2);
  for (int i = 0; i < 30; ++i) {
    batches[i < 25 ? 0 : 1].push_back(
        {"UPDATE \"" + table + "\" SET \"count\"=?, \"by\"=? WHERE id=? AND \"count\"=? RETURNING ALL NEW *",
         {AttributeValue::number(2), "me", std::to_string(i), AttributeValue::number(1)}});
  }
  const auto results = client->batch_execute(batches, soon());
  ASSERT_TRUE(results.at(0)) << results.at(0).error().message;
  ASSERT_TRUE(results.at(1)) << results.at(1).error().message;
  for (int i = 0; i < 30; ++i) {
    const StatementResult& result = i < 25 ? results[0]->results.at(static_cast<std::size_t>(i))
                                           : results[1]->results.at(static_cast<std::size_t>(i - 25));
    if (i == 7) {
      ASSERT_TRUE(result.error);
      EXPECT_EQ(result.error->kind, ErrorKind::conditional_check_failed);
    } else {
      ASSERT_FALSE(result.error) << result.error->message;
      EXPECT_EQ(*find<std::string>(result.item, "id"), std::to_string(i));
      EXPECT_EQ(find<Number>(result.item, "count")->text, "2");
    }
  }
  EXPECT_GT(results[0]->capacity.write, 24.0);
}

TEST_F(ClientOnEmulator, CountsTheCapacityOfAllAttempts) {
  attempts = 0;
  seen = {};
  ASSERT_TRUE(put(*client, "a"));
  ASSERT_TRUE(get("a"));
  EXPECT_EQ(attempts, 2);
  EXPECT_EQ(seen.write, 2.0);
  EXPECT_EQ(seen.read, 1.0);
}

TEST_F(ClientOnEmulator, LeavesAWriteUnknownThatWasDoneButNotAnswered) {
  TcpGate gate(TcpGate::forward_to(emulator->port()));
  const auto through_gate = make_client(gate.url());
  for (const auto fault :
       {Fault::reset_after_request, Fault::close_after_request, Fault::cut_in_body, Fault::corrupt}) {
    const std::string id = "fault" + std::to_string(static_cast<int>(fault));
    gate.break_next(fault);
    const auto stored = put(*through_gate, id);
    ASSERT_FALSE(stored);
    EXPECT_TRUE(stored.error().outcome_unknown) << stored.error().message;
    EXPECT_FALSE(get(id)->item.empty());  // it had taken effect, once
  }
  ASSERT_TRUE(put(*through_gate, "recovered"));
}

TEST_F(ClientOnEmulator, RepeatsAReadUntilItIsAnswered) {
  ASSERT_TRUE(put(*client, "a"));
  TcpGate gate(TcpGate::forward_to(emulator->port()));
  const auto through_gate = make_client(gate.url());
  for (const auto fault : {Fault::reset_after_request, Fault::cut_in_body, Fault::corrupt, Fault::garbage}) {
    gate.break_next(fault, 2);
    const auto item = through_gate->get_item({.table = table, .key = {{"id", "a"}}}, soon());
    ASSERT_TRUE(item) << item.error().message;
    EXPECT_EQ(*find<std::string>(item->item, "id"), "a");
  }
}

TEST_F(ClientOnEmulator, SaysWhereNobodyAnswers) {
  TcpGate gate(TcpGate::forward_to(emulator->port()));
  gate.close();
  const auto through_gate = make_client(gate.url());
  const auto stored = put(*through_gate, "a");
  ASSERT_FALSE(stored);
  EXPECT_FALSE(stored.error().outcome_unknown);
  EXPECT_THAT(stored.error().message, testing::StartsWith("cannot connect to " + gate.url() + ": connection refused"));
  gate.open();
  EXPECT_TRUE(put(*through_gate, "a"));
}

}  // namespace
}  // namespace sluice::dynamo
