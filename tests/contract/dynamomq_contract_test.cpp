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
    for (const auto& [queue, location] : options.queues) {
      make_table(host_->client(), location.table, clock_);
    }
  }

  queue::Queues& queues() override { return host_->desk().queues(); }
  FakeClock& clock() override { return clock_; }

  queue::EffectWrite open_account(const std::string& name, std::int64_t balance) override {
    return {queue::ItemWrite{
        .table = accounts(),
        .item = R"({"id":{"S":")" + name + R"("},"balance":{"N":")" + std::to_string(balance) + R"("}})",
        .condition = "attribute_not_exists(id)"}};
  }
  queue::EffectWrite add_to_account(const std::string& name, std::int64_t amount) override {
    return {queue::ItemWrite{.action = queue::ItemAction::update,
                             .table = accounts(),
                             .item = R"({"id":{"S":")" + name + R"("}})",
                             .update = "ADD #b :a",
                             .condition = "attribute_exists(id)",
                             .names = {{"#b", "balance"}},
                             .values = R"({":a":{"N":")" + std::to_string(amount) + R"("}})"}};
  }
  std::optional<std::int64_t> balance(const std::string& name) override {
    const auto found =
        host_->client().get_item({.table = accounts(), .key = {{"id", name}}}, Deadline::after(clock_, 60s));
    if (!found || found->item.empty()) {
      return std::nullopt;
    }
    const auto* number = dynamo::find<dynamo::Number>(found->item, "balance");
    return number == nullptr ? std::nullopt : std::optional<std::int64_t>(std::stoll(number->text));
  }

 private:
  // Made when it is first asked for.
  const std::string& accounts() {
    if (accounts_.empty()) {
      accounts_ = fresh_table_name("accounts");
      dynamo::CreateTableRequest request;
      request.name = accounts_;
      request.attribute_types = {{"id", "S"}};
      request.hash_key = "id";
      const auto made = host_->client().create_table(request, Deadline::after(clock_, 60s));
      EXPECT_TRUE(made) << made.error().message;
    }
    return accounts_;
  }

  std::string accounts_;
  FakeClock clock_;
  std::unique_ptr<EmulatedHost> host_;
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
                    .stable_ties = false};
  factory.absence = Emulator::absence();
  return factory;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(DynamoMq, StoreContract, ::testing::Values(dynamomq()), store_name);
INSTANTIATE_ORDER_CONTRACTS(DynamoMq, dynamomq());
INSTANTIATE_TEST_SUITE_P(DynamoMq, EffectContract, ::testing::Values(dynamomq()), store_name);

}  // namespace sluice::test
