#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/random.hpp"
#include "host/stores/sqlite/sqlite_queues.hpp"
#include "tests/contract/order_contract.hpp"
#include "tests/contract/store_contract.hpp"

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

 private:
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

}  // namespace sluice::test
