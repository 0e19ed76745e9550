#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/random.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "tests/contract/effect_contract.hpp"
#include "tests/contract/order_contract.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"

namespace sluice::test {
namespace {

constexpr std::size_t kMaxBody = 1024 * 1024;

/// A store in a file of its own, in a folder that goes with it.
class SqliteUnderTest final : public StoreUnderTest {
 public:
  SqliteUnderTest() {
    // In memory where there is such a place: a busy disk takes a tenth of a second for each flush.
    const bool memory = ::access("/dev/shm", W_OK | X_OK) == 0;
    const std::filesystem::path root = memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (root / "sluice-contract-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    queue::SqliteOptions options;
    options.path = folder_ / "store.db";
    options.max_body_bytes = kMaxBody;
    // The suite is not about power cuts; flushing thousands of times would only make it slow.
    options.durable = false;
    auto opened = queue::open_sqlite_queues(options, clock_, random_);
    if (!opened) {
      throw std::runtime_error(opened.error().message());
    }
    queues_ = std::move(*opened);
  }
  ~SqliteUnderTest() override {
    queues_.reset();
    std::filesystem::remove_all(folder_);
  }

  queue::Queues& queues() override { return *queues_; }
  FakeClock& clock() override { return clock_; }

  queue::EffectWrite open_account(const std::string& name, std::int64_t balance) override {
    make_accounts();
    return {queue::SqlWrite{"INSERT INTO accounts VALUES (?1, ?2)", {name, balance}}};
  }
  queue::EffectWrite add_to_account(const std::string& name, std::int64_t amount) override {
    make_accounts();
    return {queue::SqlWrite{"UPDATE accounts SET balance = balance + ?2 WHERE name = ?1", {name, amount}, 1}};
  }
  std::optional<std::int64_t> balance(const std::string& name) override {
    make_accounts();
    const auto found = raw_sql(folder_ / "store.db", "SELECT balance FROM accounts WHERE name = '" + name + "'");
    return found.empty() ? std::nullopt : std::optional<std::int64_t>(std::stoll(found.front()));
  }

 private:
  void make_accounts() const {
    raw_sql(folder_ / "store.db",
            "CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL) STRICT");
  }

  FakeClock clock_;
  SeededRandom random_{1};
  std::filesystem::path folder_;
  std::unique_ptr<queue::Queues> queues_;
};

const StoreFactory kSqlite{
    .name = "Sqlite", .make = [] { return std::make_unique<SqliteUnderTest>(); }, .traits = {.max_body = kMaxBody}};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContract, ::testing::Values(kSqlite), store_name);
INSTANTIATE_ORDER_CONTRACTS(Sqlite, kSqlite);
INSTANTIATE_TEST_SUITE_P(Sqlite, EffectContract, ::testing::Values(kSqlite), store_name);
INSTANTIATE_TEST_SUITE_P(Sqlite, CheckpointContract, ::testing::Values(kSqlite), store_name);

}  // namespace sluice::test
