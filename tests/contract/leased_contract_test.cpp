#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "tests/contract/accounts_table.hpp"
#include "tests/contract/effect_contract.hpp"
#include "tests/contract/order_contract.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/contract/wires.hpp"

namespace sluice::test {
namespace {

/// Three queues in one table. Nobody owns a shard of them: what claims, borrows.
class LeasedUnderTest final : public StoreUnderTest {
 public:
  LeasedUnderTest(bool on_emulator, std::uint32_t shards) : wire_(make_wire(on_emulator, clock_)) {
    dynamo::ClientOptions client_options;
    client_options.region = "eu-west-1";
    client_options.endpoint = wire_->endpoint();
    client_ = std::make_unique<dynamo::Client>(client_options, wire_->transport(), credentials_, clock_, random_);
    queue::leased::LeasedOptions options;
    options.host = "worker-a";
    options.region = client_options.region;
    options.own_threads = false;
    queue::dynamodb::TableSpec spec;
    spec.table = fresh_table_name("leased");
    spec.layout = queue::dynamodb::kLeasedLayout;
    for (const char* name : {"orders", "invoices", "nowhere"}) {
      options.queues[name] = {.table = spec.table, .shards = shards};
    }
    const auto made = create_queue_table(*client_, spec, clock_, Deadline::after(clock_, 60s));
    EXPECT_TRUE(made) << made.error().message();
    queues_ = make_leased_queues(options, *client_, clock_, random_);
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

StoreFactory leased(bool on_emulator, std::uint32_t shards) {
  StoreFactory factory;
  factory.name = on_emulator ? "Emulator" : "Model";
  factory.make = [on_emulator, shards]() -> std::unique_ptr<StoreUnderTest> {
    if (on_emulator && shared_emulator() == nullptr) {
      return nullptr;
    }
    return std::make_unique<LeasedUnderTest>(on_emulator, shards);
  };
  factory.traits = {.max_body = 400 * 1024,
                    .max_id = queue::leased::most_id_bytes("orders"),
                    .makes_queues = true,
                    .keeps_json_spelling = true,
                    .keeps_to_bytes = false,
                    .counts_in_flight = false,
                    .windows_by_own_clock = false,
                    .stable_ties = true,
                    .counts_checkpoints = true,
                    .most_sent = 49,  // each with its alias
                    .made_id = 29,
                    .history = on_emulator ? std::size_t{2'000} : std::size_t{34'000},
                    .grain = 1ms};
  factory.absence = Emulator::absence();
  return factory;
}

constexpr std::uint32_t kShards = 3;

auto both(std::uint32_t shards) { return ::testing::Values(leased(false, shards), leased(true, shards)); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Leased, StoreContract, both(kShards), store_name);
INSTANTIATE_TEST_SUITE_P(Leased, OrderContract, both(kShards), store_name);
// A whole queue in order has one shard.
INSTANTIATE_TEST_SUITE_P(Leased, SequenceContract, both(1), store_name);
INSTANTIATE_TEST_SUITE_P(Leased, PriorityContract, both(kShards), store_name);
INSTANTIATE_TEST_SUITE_P(Leased, EffectContract, both(kShards), store_name);
INSTANTIATE_TEST_SUITE_P(Leased, CheckpointContract, both(kShards), store_name);

}  // namespace sluice::test
