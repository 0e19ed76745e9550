#include "tests/client/client_rig.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

#include "host/stores/sqlite/sqlite_store.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace sluice::client {
namespace {

class SqliteOfTest final : public StoreOfTest {
 public:
  SqliteOfTest() {
    // In memory where there is such a place: these tests cut no power.
    const bool memory = ::access("/dev/shm", W_OK | X_OK) == 0;
    const std::filesystem::path root = memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (root / "sluice-client-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    auto opened = queue::open_sqlite_queues({.path = folder_ / "store.db", .durable = false}, clock_, random_);
    if (!opened) {
      throw std::runtime_error(opened.error().message());
    }
    queues_ = std::move(*opened);
  }
  ~SqliteOfTest() override {
    queues_.reset();
    std::filesystem::remove_all(folder_);
  }

  queue::Queues& queues() override { return *queues_; }
  test::FakeClock& clock() override { return clock_; }

 private:
  test::FakeClock clock_{kT0};
  SeededRandom random_{1};
  std::filesystem::path folder_;
  std::unique_ptr<queue::Queues> queues_;
};

class DynamoMqOfTest final : public StoreOfTest {
 public:
  /// With or without the right to execute PartiQL statements.
  explicit DynamoMqOfTest(bool statements) {
    // Waits for the emulator are on the machine's clock: the fake one stands still at the present.
    clock_.set_steady(SystemClock().steady_now());
    queue::dynamomq::DynamoMqOptions options;
    const std::string table = test::fresh_table_name("client");
    options.queues["orders"].table = table;
    host_ = std::make_unique<test::EmulatedHost>(clock_, "client", 1, options);
    test::make_table(host_->client(), table, clock_);
    if (!statements) {
      host_->faults().choose([](const std::string& operation, const std::string&) {
        return operation == "BatchExecuteStatement" ? test::HttpFault::deny : test::HttpFault::none;
      });
    }
  }

  queue::Queues& queues() override { return host_->desk().queues(); }
  test::FakeClock& clock() override { return clock_; }

 private:
  test::FakeClock clock_{kT0};
  std::unique_ptr<test::EmulatedHost> host_;
};

}  // namespace

QueueClient make_client(queue::Queues& queues, const Clock& clock, Random& random, const std::string& queue,
                        const ClientOptions& options) {
  auto client = detail::Core::client({queues, clock, random}, {.queue = queue, .options = options}, nullptr);
  if (!client) {
    throw std::runtime_error(client.error().message());
  }
  return std::move(*client);
}

std::unique_ptr<StoreOfTest> sqlite_of_test() { return std::make_unique<SqliteOfTest>(); }

std::unique_ptr<StoreOfTest> dynamomq_of_test() {
  return test::shared_emulator() == nullptr ? nullptr : std::make_unique<DynamoMqOfTest>(true);
}

std::unique_ptr<StoreOfTest> dynamomq_without_partiql() {
  return test::shared_emulator() == nullptr ? nullptr : std::make_unique<DynamoMqOfTest>(false);
}

std::string absence_of_emulator() { return test::Emulator::absence(); }

void ClientTest::SetUp() {
  of_test_ = GetParam().make();
  if (!of_test_) {
    GTEST_SKIP() << absence_of_emulator();
  }
  client_ = std::make_unique<QueueClient>(client_with({}));
}

queue::StoredMessage ClientTest::record(const std::string& id, Duration when) {
  queue::StoredMessage record;
  record.message.id = id;
  record.message.body = "{\"n\":1}";
  record.message.content_type = queue::kJson;
  record.message.sent_at = record.created_at = record.updated_at = kT0 + when;
  record.version = 1;
  return record;
}

void ClientTest::seed(queue::StoredMessage record) {
  const auto orders = queues().open_operator("orders");
  ASSERT_TRUE(orders) << orders.error().message();
  const auto put = (*orders)->put(std::span(&record, 1), queue::PutMode::insert, soon());
  ASSERT_EQ(put.front().status, queue::PutStatus::written) << put.front().error.message();
}

void ClientTest::seed_ready(const std::string& id, Duration when) { seed(record(id, when)); }

void ClientTest::seed_processing(const std::string& id, Duration when) {
  auto processing = record(id, when);
  processing.received_at = kT0 + when;
  processing.invisible_until = kT0 + when + 30s;
  seed(std::move(processing));
}

void ClientTest::seed_dlq(const std::string& id, Duration when) {
  auto dead = record(id, when);
  dead.half = queue::Half::dlq;
  seed(std::move(dead));
}

void ClientTest::seed_dlq_processing(const std::string& id, Duration when) {
  auto dead = record(id, when);
  dead.half = queue::Half::dlq;
  dead.message.attempt = 1;
  dead.received_at = kT0 + when;
  dead.invisible_until = kT0 + when + 30s;
  seed(std::move(dead));
}

Message ClientTest::get(const std::string& id) {
  auto found = client().get(id);
  EXPECT_TRUE(found) << (found ? "" : found.error().message());
  EXPECT_TRUE(found && found->has_value()) << id << " is not there";
  return found && *found ? std::move(**found) : Message();
}

}  // namespace sluice::client
