#include "tests/contract/accounts_table.hpp"
#include "tests/contract/effect_contract.hpp"
#include "tests/contract/order_contract.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace sluice::test {
namespace {

class DynamoMqUnderTest final : public StoreUnderTest {
 public:
  DynamoMqUnderTest() {
    // Waits for the emulator are on the machine's clock: the fake one stands still at the present.
    clock_.set_steady(SystemClock().steady_now());
    queue::dynamomq::DynamoMqOptions options;
    options.queues["orders"].table = fresh_table_name("orders");
    options.queues["invoices"].table = fresh_table_name("invoices");
    host_ = std::make_unique<EmulatedHost>(clock_, "worker-a", 1, options);
    accounts_ = std::make_unique<AccountsTable>(host_->client(), clock_);
    for (const auto& [queue, location] : options.queues) {
      make_table(host_->client(), location.table, clock_);
    }
  }

  queue::Queues& queues() override { return host_->desk().queues(); }
  FakeClock& clock() override { return clock_; }

  queue::EffectWrite open_account(const std::string& name, std::int64_t balance) override {
    return accounts_->open(name, balance);
  }
  queue::EffectWrite add_to_account(const std::string& name, std::int64_t amount) override {
    return accounts_->add(name, amount);
  }
  std::optional<std::int64_t> balance(const std::string& name) override { return accounts_->balance(name); }

 private:
  FakeClock clock_;
  std::unique_ptr<EmulatedHost> host_;
  std::unique_ptr<AccountsTable> accounts_;
};

StoreFactory dynamomq() {
  StoreFactory factory;
  factory.name = "DynamoMq";
  factory.make = []() -> std::unique_ptr<StoreUnderTest> {
    if (shared_emulator() == nullptr) {
      return nullptr;
    }
    return std::make_unique<DynamoMqUnderTest>();
  };
  factory.traits = {.max_body = 400 * 1024,
                    .max_id = 2048,
                    .makes_queues = false,
                    .keeps_json_spelling = false,
                    .keeps_to_bytes = false,
                    .counts_in_flight = false,
                    .windows_by_own_clock = false,
                    .stable_ties = false,
                    .history = 2'000};
  factory.absence = Emulator::absence();
  return factory;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(DynamoMq, StoreContract, ::testing::Values(dynamomq()), store_name);
INSTANTIATE_ORDER_CONTRACTS(DynamoMq, dynamomq());
INSTANTIATE_TEST_SUITE_P(DynamoMq, EffectContract, ::testing::Values(dynamomq()), store_name);

}  // namespace sluice::test
