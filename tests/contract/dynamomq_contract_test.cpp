#include "tests/contract/accounts_table.hpp"
#include "tests/contract/effect_contract.hpp"
#include "tests/contract/order_contract.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/contract/wires.hpp"

namespace sluice::test {
namespace {

class DynamoMqUnderTest final : public StoreUnderTest {
 public:
  explicit DynamoMqUnderTest(bool on_emulator) : wire_(make_wire(on_emulator, clock_)) {
    dynamo::ClientOptions client_options;
    client_options.region = "eu-west-1";
    client_options.endpoint = wire_->endpoint();
    client_ = std::make_unique<dynamo::Client>(client_options, wire_->transport(), credentials_, clock_, random_);
    queue::dynamomq::DynamoMqOptions options;
    options.host = "worker-a";
    options.region = client_options.region;
    for (const char* name : {"orders", "invoices"}) {
      const std::string table = fresh_table_name(name);
      options.queues[name].table = table;
      make_table(*client_, table, clock_);
    }
    queues_ = make_dynamomq_queues(options, *client_, clock_, random_);
    accounts_ = std::make_unique<AccountsTable>(*client_, clock_);
  }

  queue::Queues& queues() override { return *queues_; }
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
  AnyCredentials credentials_;
  SeededRandom random_{1};
  std::unique_ptr<Wire> wire_;
  std::unique_ptr<dynamo::Client> client_;
  std::unique_ptr<queue::Queues> queues_;
  std::unique_ptr<AccountsTable> accounts_;
};

StoreFactory dynamomq(bool on_emulator = true) {
  StoreFactory factory;
  factory.name = on_emulator ? "DynamoMq" : "Model";
  factory.make = [on_emulator]() -> std::unique_ptr<StoreUnderTest> {
    if (on_emulator && shared_emulator() == nullptr) {
      return nullptr;
    }
    return std::make_unique<DynamoMqUnderTest>(on_emulator);
  };
  factory.traits = {.max_body = 400 * 1024,
                    .max_id = 2048,
                    .makes_queues = false,
                    .keeps_json_spelling = false,
                    .keeps_to_bytes = false,
                    .counts_in_flight = false,
                    .windows_by_own_clock = false,
                    .stable_ties = false,
                    .counts_checkpoints = true,
                    .history = on_emulator ? std::size_t{2'000} : std::size_t{34'000}};
  factory.absence = Emulator::absence();
  return factory;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(DynamoMq, StoreContract, ::testing::Values(dynamomq(), dynamomq(false)), store_name);
INSTANTIATE_ORDER_CONTRACTS(DynamoMq, dynamomq());
INSTANTIATE_TEST_SUITE_P(DynamoMq, EffectContract, ::testing::Values(dynamomq()), store_name);
INSTANTIATE_TEST_SUITE_P(DynamoMq, CheckpointContract, ::testing::Values(dynamomq()), store_name);

}  // namespace sluice::test
