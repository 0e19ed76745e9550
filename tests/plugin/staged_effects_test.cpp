#include "base/random.hpp"
#include "host/plugin/handler_instance.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using queue::Effects;
using queue::ItemWrite;
using queue::SqlWrite;
using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class StagedEffectsTest : public ::testing::Test {
 protected:
  void open(EffectRules rules) {
    auto created = HandlerInstance::create({log_.log(), rules}, fixture_handler("stages"), "orders", {});
    ASSERT_TRUE(created) << created.error().message();
    instance_ = std::move(*created);
  }
  void open(sluice_store store) { open(EffectRules{store, false, &random_, &clock_}); }
  Outcome handle(const std::string& order, const std::string& body = "body",
                 std::shared_ptr<const std::string> first_result = nullptr) {
    queue::Message message;
    message.id = "m-1";
    message.body = body;
    message.attributes["do"] = order;
    attempt_.arm(SteadyTime::max());
    attempt_.set_first_result(std::move(first_result));
    return instance_->handle({message, "queue", 5, attempt_});
  }

  SeededRandom random_{1};
  FakeClock clock_;
  Attempt attempt_{clock_};
  LogRecord log_;
  std::unique_ptr<HandlerInstance> instance_;
};

TEST_F(StagedEffectsTest, AMessageComesWithEverythingAndAnId) {
  open(SLUICE_STORE_SQLITE);
  const Outcome outcome = handle("");
  ASSERT_EQ(outcome.status, OutcomeStatus::done) << outcome.reason;
  ASSERT_NE(outcome.effects, nullptr);
  ASSERT_EQ(outcome.effects->messages.size(), 1U);
  EXPECT_EQ(outcome.effects->messages[0].queue, "receipts");
  const queue::NewMessage& message = outcome.effects->messages[0].message;
  EXPECT_EQ(message.id.size(), 36U);
  EXPECT_NE(message.id, handle("").effects->messages[0].message.id);
  EXPECT_EQ(message.body, "body");
  EXPECT_EQ(message.content_type, "text/plain");
  EXPECT_EQ(message.group, "g");
  EXPECT_THAT(message.attributes, ElementsAre(Pair("colour", "red")));
  EXPECT_EQ(message.delay, 3s);
  EXPECT_EQ(message.priority, queue::Priority::critical);
  EXPECT_EQ(message.dedup_id, "once");
  EXPECT_EQ(message.dedup_window, 9s);
  EXPECT_EQ(outcome.effects->key, std::nullopt);
}

TEST_F(StagedEffectsTest, StatementsComeWithTheirParameters) {
  open(SLUICE_STORE_SQLITE);
  const auto writes = handle("").effects->writes;
  ASSERT_EQ(writes.size(), 2U);
  const auto& change = std::get<SqlWrite>(writes[0].write);
  EXPECT_EQ(change.statement, "UPDATE t SET x = ?");
  EXPECT_THAT(change.parameters, ElementsAre(std::monostate(), std::int64_t{7}, 0.5, "text", queue::SqlBlob{"\x01"}));
  EXPECT_EQ(change.rows, 1);
  EXPECT_EQ(writes[0].label, "change");
  EXPECT_EQ(writes[0].on_refusal, queue::OnRefusal::retry);
  EXPECT_EQ(std::get<SqlWrite>(writes[1].write).rows, std::nullopt);
  EXPECT_EQ(writes[1].on_refusal, queue::OnRefusal::reject);
}

TEST_F(StagedEffectsTest, ItemsComeInDynamoDbsWords) {
  open(SLUICE_STORE_DYNAMODB);
  const auto writes = handle("").effects->writes;
  ASSERT_EQ(writes.size(), 2U);
  const auto& change = std::get<ItemWrite>(writes[0].write);
  EXPECT_EQ(change.action, queue::ItemAction::update);
  EXPECT_EQ(change.table, "t");
  EXPECT_EQ(change.item, R"({"id":{"S":"a"}})");
  EXPECT_EQ(change.update, "SET #x = :x");
  EXPECT_EQ(change.condition, "#x < :x");
  EXPECT_THAT(change.names, ElementsAre(Pair("#x", "x")));
  EXPECT_EQ(change.values, R"({":x":{"N":"1"}})");
  EXPECT_EQ(std::get<ItemWrite>(writes[1].write).action, queue::ItemAction::put);
}

TEST_F(StagedEffectsTest, AreForMessagesThatAreDone) {
  open(SLUICE_STORE_SQLITE);
  EXPECT_EQ(handle("retry").effects, nullptr);
  EXPECT_EQ(handle("throw").effects, nullptr);
  ASSERT_EQ(log_.lines().size(), 2U);
  EXPECT_EQ(log_.lines()[0].level, SLUICE_LOG_DEBUG);
  EXPECT_EQ(log_.lines()[0].text, "3 staged effects are dropped: its outcome is not done");
  EXPECT_EQ(log_.lines()[1].text, "3 staged effects are dropped: its outcome is not done");
  EXPECT_EQ(log_.lines()[1].id, "m-1");
}

TEST_F(StagedEffectsTest, ARefusalThatWasIgnoredCommitsNothing) {
  open(SLUICE_STORE_SQLITE);
  const Outcome outcome = handle("refused");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_EQ(outcome.effects, nullptr);
  EXPECT_THAT(outcome.reason, HasSubstr("an effect was refused: a message without a queue"));
  const Outcome dropped = handle("drop");
  EXPECT_EQ(dropped.status, OutcomeStatus::done);
  EXPECT_EQ(dropped.effects, nullptr);
}

TEST_F(StagedEffectsTest, TheResultTravelsWithoutAKey) {
  open(SLUICE_STORE_SQLITE);
  const Outcome outcome = handle("result");
  ASSERT_TRUE(outcome.effects != nullptr && outcome.effects->key);
  EXPECT_EQ(outcome.effects->key->result, "the result");
  EXPECT_EQ(outcome.effects->key->key, "");
}

TEST_F(StagedEffectsTest, ADuplicateSeesTheFirstResultAndTheNextMessageNone) {
  open(SLUICE_STORE_SQLITE);
  EXPECT_EQ(handle("describe", "", std::make_shared<const std::string>("first")).reason, "1 1 first");
  EXPECT_EQ(handle("describe").reason, "1 1 none");
}

TEST_F(StagedEffectsTest, OnAnOutboxMessagesAloneAreStaged) {
  config::JobConfig job;
  job.queue = "outbox:orders";
  open(effect_rules(job, config::StoreKind::sqlite, random_, clock_));
  const Outcome sent = handle("send");
  EXPECT_EQ(sent.status, OutcomeStatus::done) << sent.reason;
  ASSERT_NE(sent.effects, nullptr);
  EXPECT_EQ(sent.effects->messages.size(), 1U);
  EXPECT_TRUE(sent.effects->writes.empty());
  const Outcome written = handle("");
  EXPECT_EQ(written.status, OutcomeStatus::fault);
  EXPECT_THAT(written.reason, HasSubstr("an outbox, which has no store of its own for effects"));
}

TEST_F(StagedEffectsTest, AHostWithoutEffectsAnswersNoId) {
  open(EffectRules{});
  EXPECT_EQ(handle("describe").reason, "0 0 none");
  EXPECT_THAT(handle("").reason, HasSubstr("update the host"));
}

}  // namespace
}  // namespace sluice::plugin
