// Effects as authors write them, and as the test kit shows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>

#include "sluice/testing.hpp"

namespace {

using std::chrono_literals::operator""s;
using sluice::Context;
using sluice::Item;
using sluice::Store;
using sluice::testing::HandlerTest;
using sluice::testing::Result;
using sluice::testing::StagedWrite;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

/// Does what the test says.
struct Scripted {
  static std::function<sluice::Outcome(Context&)>& script() {
    static std::function<sluice::Outcome(Context&)> body;
    return body;
  }
  sluice::Outcome handle(const sluice::Message&, Context& context) { return script()(context); }
};

struct Rig {
  explicit Rig(Store store) : test(sluice::testing::handler<Scripted>(), {}, "test", store) {}
  Result run(std::function<sluice::Outcome(Context&)> body) {
    Scripted::script() = std::move(body);
    return test.handle({});
  }
  /// Of a handler that stages and is done.
  Result stage(const std::function<void(Context&)>& body) {
    return run([&](Context& context) {
      body(context);
      return sluice::done();
    });
  }
  HandlerTest test;
};

TEST(Effects, AMessageHasEverythingASenderCanSay) {
  Rig rig(Store::sqlite);
  const Result result = rig.stage([](Context& context) {
    context.send("receipts", "body")
        .id("r-1")
        .content_type("application/json")
        .group("g")
        .attribute("colour", "red")
        .delay(3s)
        .priority(sluice::Priority::high)
        .dedup_id("once");
    context.send("plain", "x");
  });
  ASSERT_TRUE(result.committed) << result.reason;
  const auto& message = result.effects.message_to("receipts");
  EXPECT_EQ(message.body, "body");
  EXPECT_EQ(message.id, "r-1");
  EXPECT_EQ(message.content_type, "application/json");
  EXPECT_EQ(message.group, "g");
  EXPECT_THAT(message.attributes, ElementsAre(Pair("colour", "red")));
  EXPECT_EQ(message.delay, 3s);
  EXPECT_EQ(message.priority, sluice::Priority::high);
  EXPECT_EQ(message.dedup_id, "once");
  EXPECT_EQ(result.effects.messages.size(), 2U);
  EXPECT_THROW(static_cast<void>(result.effects.message_to("nobody")), std::out_of_range);
}

TEST(Effects, ItemsAreWrittenInDynamoDbsWords) {
  Rig rig(Store::dynamodb);
  const Result result = rig.stage([](Context& context) {
    context.put("accounts", {{"id", "a"}, {"balance", 5}}).when("attribute_not_exists(id)");
    context.update("accounts", {{"id", "b"}})
        .set("balance = balance - :a")
        .set("#s = :open")
        .remove("note")
        .add("visits :one")
        .take("tags :old")
        .when("balance >= :a")
        .when("attribute_exists(id)")
        .name("#s", "state")
        .value(":a", 10)
        .value(":one", 1)
        .value(":open", "open")
        .value(":old", sluice::string_set({"x"}))
        .label("debit")
        .otherwise_reject();
    context.remove("accounts", {{"id", "c"}});
    context.check("accounts", {{"id", "d"}}).when("attribute_exists(id)");
  });
  ASSERT_TRUE(result.committed) << result.reason;
  const auto& writes = result.effects.writes;
  ASSERT_EQ(writes.size(), 4U);
  EXPECT_EQ(writes[0].kind, StagedWrite::Kind::put);
  EXPECT_EQ(writes[0].item, R"({"id":{"S":"a"},"balance":{"N":"5"}})");
  EXPECT_EQ(writes[0].condition, "attribute_not_exists(id)");
  EXPECT_EQ(writes[0].values, "");
  const StagedWrite& debit = result.effects.write("debit");
  EXPECT_EQ(debit.kind, StagedWrite::Kind::update);
  EXPECT_EQ(debit.update, "SET balance = balance - :a, #s = :open REMOVE note ADD visits :one DELETE tags :old");
  EXPECT_EQ(debit.condition, "(balance >= :a) AND (attribute_exists(id))");
  EXPECT_THAT(debit.names, ElementsAre(Pair("#s", "state")));
  EXPECT_EQ(debit.values, R"({":a":{"N":"10"},":one":{"N":"1"},":open":{"S":"open"},":old":{"SS":["x"]}})");
  EXPECT_TRUE(debit.otherwise_reject);
  EXPECT_EQ(writes[2].kind, StagedWrite::Kind::remove);
  EXPECT_EQ(writes[3].kind, StagedWrite::Kind::check);
}

TEST(Effects, EveryTypeOfDynamoDbsCanBeWritten) {
  const std::string text = "t";
  const Item item{{"null", nullptr},
                  {"true", true},
                  {"least", std::numeric_limits<std::int64_t>::min()},
                  {"most", std::numeric_limits<std::uint64_t>::max()},
                  {"half", 0.5},
                  {"exact", sluice::number("0.10")},
                  {"text", text},
                  {"escaped", "\"\\\n\x01\xC3\xA9"},
                  {"bytes", sluice::binary(std::string_view("\0\xFF", 2))},
                  {"list", sluice::list({1, "two", sluice::list({})})},
                  {"range", sluice::list_of(std::vector<int>{1, 2})},
                  {"map", Item{{"a", 1}}},
                  {"texts", sluice::string_set({"a", "b"})},
                  {"numbers", sluice::number_set({"1", "2.5"})},
                  {"binaries", sluice::binary_set({"a", "bc"})}};
  EXPECT_EQ(item.json(), R"({"null":{"NULL":true},"true":{"BOOL":true},"least":{"N":"-9223372036854775808"},)"
                         R"("most":{"N":"18446744073709551615"},"half":{"N":"0.5"},"exact":{"N":"0.10"},)"
                         R"("text":{"S":"t"},"escaped":{"S":"\"\\\u000a\u0001é"},"bytes":{"B":"AP8="},)"
                         R"("list":{"L":[{"N":"1"},{"S":"two"},{"L":[]}]},"range":{"L":[{"N":"1"},{"N":"2"}]},)"
                         R"("map":{"M":{"a":{"N":"1"}}},"texts":{"SS":["a","b"]},"numbers":{"NS":["1","2.5"]},)"
                         R"("binaries":{"BS":["YQ==","YmM="]}})");
  Rig rig(Store::dynamodb);
  EXPECT_TRUE(rig.stage([&](Context& context) { context.put("t", item); }).committed);
}

TEST(Effects, AnItemFromJsonTakesMoreMembers) {
  EXPECT_EQ(Item::from_json(R"({"id": {"S": "a"}} )").set("n", 1).json(), R"({"id": {"S": "a"},"n":{"N":"1"}})");
  EXPECT_EQ(Item::from_json("{ }").set("n", 1).json(), R"({ "n":{"N":"1"}})");
  Rig rig(Store::dynamodb);
  EXPECT_FALSE(rig.stage([](Context& context) { context.put("t", Item::from_json("no item").set("n", 1)); }).committed);
}

TEST(Effects, WhatDynamoDbHasNoValueForIsRefused) {
  EXPECT_THROW(static_cast<void>(sluice::Value{"\xFF"}), sluice::EffectError);
  EXPECT_THROW(static_cast<void>(sluice::Value{"\xE2\x82"}), sluice::EffectError);
  EXPECT_THROW(static_cast<void>(sluice::Value{"\xED\xA0\x80"}), sluice::EffectError);
  EXPECT_THROW(static_cast<void>(sluice::Value{std::numeric_limits<double>::quiet_NaN()}), sluice::EffectError);
  EXPECT_EQ(sluice::Value("\xF0\x9F\x98\x80").json(), "{\"S\":\"\xF0\x9F\x98\x80\"}");
}

TEST(Effects, SqlHasParametersAndAnExpectedRowCount) {
  Rig rig(Store::sqlite);
  const Result result = rig.stage([](Context& context) {
    context.sql("UPDATE accounts SET balance = balance - ?1 WHERE id = ?2", 10, "a").rows(1).label("debit");
    context.sql("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", nullptr, true, 0.1, sluice::blob("\x01\xFF"),
                std::optional<int>(), std::optional<std::string>("x"));
  });
  ASSERT_TRUE(result.committed) << result.reason;
  const StagedWrite& debit = result.effects.write("debit");
  EXPECT_EQ(debit.kind, StagedWrite::Kind::sql);
  EXPECT_THAT(debit.parameters, ElementsAre("10", "'a'"));
  EXPECT_EQ(debit.rows, 1);
  EXPECT_THAT(result.effects.writes[1].parameters, ElementsAre("NULL", "1", "0.1", "x'01ff'", "NULL", "'x'"));
  EXPECT_EQ(result.effects.writes[1].rows, std::nullopt);

  const Result large =
      rig.stage([](Context& context) { context.sql("SELECT ?", std::numeric_limits<std::uint64_t>::max()); });
  EXPECT_EQ(large.status, SLUICE_FAULT);
  EXPECT_THAT(large.reason, HasSubstr("?1"));
}

TEST(Effects, AreDroppedUnlessTheHandlerIsDone) {
  Rig rig(Store::sqlite);
  for (const bool throws : {false, true}) {
    const Result result = rig.run([&](Context& context) {
      context.send("receipts", "x");
      return throws ? throw std::runtime_error("no") : sluice::retry("later");
    });
    EXPECT_FALSE(result.committed);
    EXPECT_EQ(result.effects.messages.size(), 1U) << "but shown";
  }
}

TEST(Effects, NothingIsStagedWhileAnExceptionEndsTheStatement) {
  Rig rig(Store::dynamodb);
  const Result result = rig.stage([](Context& context) {
    try {
      context.put("t", {{"id", "a"}}).value(":v", "\xFF");
    } catch (const sluice::EffectError&) {
      context.send("failures", "x");
    }
  });
  EXPECT_TRUE(result.committed);
  EXPECT_TRUE(result.effects.writes.empty());
}

TEST(Effects, ARefusalThatIsIgnoredCommitsNothing) {
  Rig rig(Store::sqlite);
  const auto ignore = [](Context& context) {
    context.send("receipts", "x");
    try {
      context.send("", "x");
    } catch (const sluice::EffectError&) {
    }
  };
  const Result result = rig.stage(ignore);
  EXPECT_EQ(result.status, SLUICE_FAULT);
  EXPECT_THAT(result.reason, HasSubstr("without a queue"));
  const Result again = rig.stage([&](Context& context) {
    ignore(context);
    context.drop_effects();
    context.send("failures", "x");
  });
  EXPECT_TRUE(again.committed) << again.reason;
  EXPECT_EQ(again.effects.messages.size(), 1U);
}

TEST(Effects, TheStoreDecidesWhatCanBeWritten) {
  Rig sql(Store::sqlite);
  EXPECT_THAT(sql.stage([](Context& context) { context.put("t", {{"id", "a"}}); }).reason, HasSubstr("lies in SQLite"));
  Rig dynamodb(Store::dynamodb);
  EXPECT_THAT(dynamodb.stage([](Context& context) { context.sql("DELETE FROM t"); }).reason,
              HasSubstr("lies in DynamoDB"));
  Rig none(Store::none);
  for (const auto& stage :
       std::vector<std::function<void(Context&)>>{[](Context& context) { context.sql("DELETE FROM t"); },
                                                  [](Context& context) {
                                                    context.put("t", {{"id", "a"}});
                                                  }}) {
    EXPECT_THAT(none.stage(stage).reason, HasSubstr("no store of its own for effects"));
  }
  EXPECT_TRUE(none.stage([](Context& context) { context.send("q", "x"); }).committed);
  none.run([](Context& context) {
    EXPECT_EQ(context.store(), Store::none);
    return sluice::done();
  });
}

TEST(Effects, AHostThatIsOlderThanEffectsSaysSo) {
  Rig rig(Store::sqlite);
  rig.test.without_effects();
  const Result result = rig.stage([](Context& context) {
    EXPECT_EQ(context.store(), Store::none);
    EXPECT_EQ(context.first_result(), std::nullopt);
    context.send("q", "x");
  });
  EXPECT_EQ(result.status, SLUICE_FAULT);
  EXPECT_THAT(result.reason, HasSubstr("update the host"));
  EXPECT_EQ(rig.run([](Context&) { return sluice::done().result("r"); }).status, SLUICE_FAULT);
}

TEST(Effects, AResultGoesToDuplicates) {
  Rig rig(Store::sqlite);
  const Result first = rig.run([](Context& context) {
    EXPECT_EQ(context.first_result(), std::nullopt);
    return sluice::done().result("42");
  });
  EXPECT_TRUE(first.committed);
  EXPECT_EQ(first.effects.result, "42");
  rig.test.set_first_result(first.effects.result);
  rig.run([](Context& context) {
    EXPECT_EQ(context.first_result(), "42");
    return sluice::done();
  });
  const Result large = rig.run([](Context&) { return sluice::done().result(std::string(32 * 1024 + 1, 'x')); });
  EXPECT_EQ(large.status, SLUICE_FAULT);
  EXPECT_THAT(large.reason, HasSubstr("32768"));
}

TEST(Effects, AFailedConditionIsARetryOrAReject) {
  Rig rig(Store::dynamodb);
  const auto transfer = [](Context& context) {
    context.update("accounts", {{"id", "a"}}).set("x = :x").value(":x", 1).label("debit").otherwise_reject();
    context.remove("accounts", {{"id", "b"}});
  };
  rig.test.refuse("debit");
  const Result rejected = rig.stage(transfer);
  EXPECT_EQ(rejected.status, SLUICE_REJECT);
  EXPECT_FALSE(rejected.committed);
  EXPECT_THAT(rejected.reason, HasSubstr("\"debit\" was refused: its condition failed"));
  rig.test.refuse("2", "throttled");
  const Result retried = rig.stage(transfer);
  EXPECT_EQ(retried.status, SLUICE_RETRY);
  EXPECT_THAT(retried.reason, HasSubstr("write 2 was refused: throttled"));
  rig.test.refuse("");
  EXPECT_TRUE(rig.stage(transfer).committed);
}

/// Asks for the store when it is made.
struct NeedsDynamoDb {
  explicit NeedsDynamoDb(const sluice::Options&, sluice::Host host) {
    if (host.store() != Store::dynamodb) {
      throw std::invalid_argument("works on DynamoDB only");
    }
  }
  sluice::Outcome handle(const sluice::Message&, Context&) { return sluice::done(); }
};

TEST(Effects, AHandlerKnowsTheStoreWhenItIsMade) {
  EXPECT_TRUE(HandlerTest(sluice::testing::handler<NeedsDynamoDb>(), {}, "j", Store::dynamodb).created());
  EXPECT_THAT(HandlerTest(sluice::testing::handler<NeedsDynamoDb>()).errors(), ElementsAre("works on DynamoDB only"));
}

}  // namespace
