// Effects that were staged in a Runner.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "host/isolation/runner_memory.hpp"
#include "tests/isolation/fixture_spec.hpp"

namespace sluice::isolation {
namespace {

using plugin::Outcome;
using plugin::OutcomeStatus;
using std::chrono_literals::operator""s;
using ::testing::HasSubstr;

class RunnerEffectsTest : public testing::Test {
 protected:
  RunnerEffectsTest() { EXPECT_TRUE(spawner_.start()); }

  void open(sluice_store store) {
    RunnerSpec spec = fixture_spec("stages");
    spec.effects = {store, false, &random_};
    auto created = RunnerInstance::create(std::move(spec), spawner_, {});
    ASSERT_TRUE(created) << created.error().message();
    instance_ = std::move(*created);
  }
  Outcome handle(const std::string& order, const std::string& body = "body",
                 std::shared_ptr<const std::string> first_result = nullptr) {
    queue::Message message;
    message.id = "m-1";
    message.body = body;
    message.attributes["do"] = order;
    attempt_.arm(clock_.steady_now() + 60s);
    attempt_.set_first_result(std::move(first_result));
    return instance_->handle({message, "queue", 5, attempt_});
  }

  const SystemClock clock_;
  SeededRandom random_;
  RunnerSpawner spawner_;
  plugin::Attempt attempt_{clock_};
  std::unique_ptr<plugin::HandlerInstance> instance_;
};

TEST_F(RunnerEffectsTest, ComeToTheHostWhole) {
  for (const auto& [store, change] :
       {std::pair(SLUICE_STORE_SQLITE, "UPDATE t SET x = ?"), std::pair(SLUICE_STORE_DYNAMODB, "SET #x = :x")}) {
    open(store);
    const Outcome outcome = handle("result");
    ASSERT_EQ(outcome.status, OutcomeStatus::done) << outcome.reason;
    ASSERT_NE(outcome.effects, nullptr);
    const std::string packed = pack_effects(*outcome.effects);
    EXPECT_THAT(packed, HasSubstr(change));
    EXPECT_EQ(outcome.effects->writes.size(), 2U);
    EXPECT_EQ(outcome.effects->key->result, "the result");
    ASSERT_EQ(outcome.effects->messages.size(), 1U);
    const queue::NewMessage& message = outcome.effects->messages[0].message;
    EXPECT_EQ(message.id.size(), 36U);
    EXPECT_EQ(message.attributes.at("colour"), "red");
    EXPECT_EQ(message.delay, 3s);
    EXPECT_EQ(message.dedup_window, 9s);
    EXPECT_EQ(message.priority, queue::Priority::critical);
    EXPECT_EQ(handle("drop").effects, nullptr) << "and not with the next one";
  }
}

TEST_F(RunnerEffectsTest, FourMegabytesFit) {
  open(SLUICE_STORE_SQLITE);
  const std::string body(queue::kMostEffectBytes - 4096, 'x');
  const Outcome outcome = handle("", body);
  ASSERT_NE(outcome.effects, nullptr) << outcome.reason;
  EXPECT_EQ(outcome.effects->messages[0].message.body, body);
  EXPECT_THAT(handle("", std::string(queue::kMostEffectBytes, 'x')).reason, HasSubstr("at most 4194304"));
}

TEST_F(RunnerEffectsTest, AProcessThatDiesHasStagedNothing) {
  open(SLUICE_STORE_SQLITE);
  const Outcome outcome = handle("abort");
  EXPECT_EQ(outcome.status, OutcomeStatus::crashed);
  EXPECT_EQ(outcome.effects, nullptr);
  const Outcome next = handle("");
  ASSERT_NE(next.effects, nullptr);
  EXPECT_EQ(next.effects->messages.size(), 1U);
}

TEST_F(RunnerEffectsTest, ADuplicateSeesTheFirstResult) {
  open(SLUICE_STORE_SQLITE);
  EXPECT_EQ(handle("describe", "", std::make_shared<const std::string>("first")).reason, "1 1 first");
  EXPECT_EQ(handle("describe", "", std::make_shared<const std::string>()).reason, "1 1 ");
  EXPECT_EQ(handle("describe").reason, "1 1 none");
}

TEST(EffectPayload, IsUnpackedAsItWasAndRefusedWhenItIsNone) {
  queue::Effects effects;
  effects.messages.push_back({"q", {.id = "i", .body = std::string("\0b", 2)}});
  effects.writes.push_back(
      {queue::SqlWrite{"S", {std::monostate(), std::int64_t{-1}, 0.5, "t", queue::SqlBlob{"b"}}, 3}, "l",
       queue::OnRefusal::reject});
  effects.writes.push_back({queue::ItemWrite{queue::ItemAction::check, "t", "{}", "", "c", {{"#n", "n"}}, "v"}, ""});
  const std::string bytes = pack_effects(effects);
  const auto unpacked = unpack_effects(bytes);
  ASSERT_NE(unpacked, nullptr);
  EXPECT_EQ(pack_effects(*unpacked), bytes);
  EXPECT_EQ(std::get<queue::SqlWrite>(unpacked->writes[0].write).parameters,
            std::get<queue::SqlWrite>(effects.writes[0].write).parameters);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(unpack_effects(std::string_view(bytes).substr(0, size)), nullptr) << size;
  }
  EXPECT_EQ(unpack_effects(bytes + "x"), nullptr);
  effects.messages.resize(queue::kMostEffects, effects.messages.front());
  EXPECT_EQ(unpack_effects(pack_effects(effects)), nullptr);
}

}  // namespace
}  // namespace sluice::isolation
