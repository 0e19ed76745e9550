// Counts what one message costs in allocations, host side and plugin side together: both go through this operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "base/random.hpp"
#include "host/plugin/metric_board.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace {
std::atomic<std::size_t> allocations{0};

void* allocate(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) {
    return memory;
  }
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace sluice::plugin {
namespace {

/// Allocations of 100 messages after the first.
std::size_t allocations_of(Bundle& bundle, const queue::Message& message) {
  static_cast<void>(bundle.handle(message));
  const std::size_t before = allocations;
  for (int i = 0; i < 100; ++i) {
    bundle.attempt.arm(bundle.clock.steady_now() + std::chrono::seconds(1));
    static_cast<void>(bundle.handle(message));
  }
  return allocations - before;
}

const queue::Message kMessage{
    .id = "0b5e8f0e-6b0a-4b6e-9a39-000000000000",
    .body = std::string(600, 'x'),
    .content_type = "application/json",
    .attributes = {{"colour", "red"}, {"a-rather-long-attribute-name", "with a rather long value"}},
    .group = "",
    .attempt = 1,
    .sent_at = {}};

TEST(Dispatch, AMessageThatIsDoneCostsNoAllocation) {
  Bundle bundle("noop");
  EXPECT_EQ(allocations_of(bundle, kMessage), 0U);
}

TEST(Dispatch, EffectsThatAreOfferedAndNotUsedCostNoAllocation) {
  SeededRandom random(1);
  Bundle bundle("noop");
  auto created =
      HandlerInstance::create({{}, {SLUICE_STORE_SQLITE, true, &random}}, fixture_handler("noop"), "orders", {});
  ASSERT_TRUE(created);
  bundle.instance = std::move(*created);
  EXPECT_EQ(allocations_of(bundle, kMessage), 0U);
}

// They are made on the worker's thread and freed on the store's: the Effects with what they hold of one message and one
// statement, the id that was made up, the body, and the statement's text.
TEST(Dispatch, AMessageAndAStatementThatAreStagedCostFourAllocations) {
  SeededRandom random(1);
  const FakeClock clock;
  const EffectRules rules{SLUICE_STORE_SQLITE, false, &random, &clock};
  const std::string body(100, 'x');
  const std::string statement = "UPDATE accounts SET balance = balance + ?1 WHERE number = ?2 AND owner = ?3";
  const sluice_sql_value parameters[] = {
      {SLUICE_SQL_INTEGER, 0, 1, 0, {}}, {SLUICE_SQL_INTEGER, 0, 7, 0, {}}, {SLUICE_SQL_TEXT, 0, 0, 0, {"ann", 3}}};
  sluice_effect_message message{};
  message.struct_size = sizeof(message);
  message.queue = {"receipts", 8};
  message.body = {body.data(), body.size()};
  sluice_effect_sql sql{};
  sql.struct_size = sizeof(sql);
  sql.statement = {statement.data(), statement.size()};
  sql.parameters = parameters;
  sql.parameter_count = 3;
  sql.rows = 1;

  StagedEffects staged(rules, nullptr);
  const std::size_t before = allocations;
  const char* const refused_message = staged.table()->send(staged.table(), &message);
  const char* const refused_sql = staged.table()->run_sql(staged.table(), &sql);
  const auto effects = staged.take();
  const std::size_t cost = allocations - before;
  EXPECT_EQ(refused_message, nullptr);
  EXPECT_EQ(refused_sql, nullptr);
  ASSERT_NE(effects, nullptr);
  EXPECT_EQ(cost, 4U);
}

TEST(Dispatch, MetricsThatAreThereCostNoAllocation) {
  const auto board = std::make_shared<MetricBoard>("orders", HandlerLog());
  Bundle bundle("measures");
  auto created = HandlerInstance::create({.log = {}, .metrics = board}, fixture_handler("measures"), "orders", {});
  ASSERT_TRUE(created);
  bundle.instance = std::move(*created);
  // A label's value that is too long is cut, which costs one; the body is one here.
  queue::Message message = kMessage;
  message.body = "red";
  EXPECT_EQ(allocations_of(bundle, message), 0U);
  EXPECT_EQ(board->figures().at(1).series.at(0).value, 101);
  message.body = "hot";
  EXPECT_EQ(allocations_of(bundle, message), 0U);
}

TEST(Dispatch, AReasonCostsItsOwnTextOnceOnEachSide) {
  Bundle bundle("fails", {{"outcome", "reject"}, {"reason", std::string(100, 'x')}});
  EXPECT_EQ(allocations_of(bundle, kMessage), 200U);
}

TEST(Dispatch, TheCountSeesThePluginsOwnAllocations) {
  Bundle bundle("handle_throws_std");
  EXPECT_GT(allocations_of(bundle, kMessage), 0U);
}

}  // namespace
}  // namespace sluice::plugin
