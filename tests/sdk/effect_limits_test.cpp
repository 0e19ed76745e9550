// The limits of a transaction, which the host and the test kit judge by the same code.
#include "sluice/detail/effect_limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::detail {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

sluice_effect_message message(std::string_view queue, std::string_view body = "x", std::string_view id = "") {
  sluice_effect_message value{};
  value.struct_size = sizeof(value);
  value.queue = borrow(queue);
  value.body = borrow(body);
  value.id = borrow(id);
  return value;
}

sluice_effect_item item(sluice_item_action action, std::string_view json, std::string_view table = "accounts") {
  sluice_effect_item value{};
  value.struct_size = sizeof(value);
  value.action = action;
  value.table = borrow(table);
  value.item = borrow(json);
  value.update = borrow(action == SLUICE_ITEM_UPDATE ? "SET x = y" : "");
  value.condition = borrow(action == SLUICE_ITEM_CHECK ? "attribute_exists(x)" : "");
  return value;
}

sluice_effect_sql sql(std::string_view statement) {
  sluice_effect_sql value{};
  value.struct_size = sizeof(value);
  value.statement = borrow(statement);
  value.rows = -1;
  return value;
}

/// What one write is refused with, by limits of its own.
std::string refusal(const sluice_effect_item& write) { return EffectLimits(SLUICE_STORE_DYNAMODB, false).admit(write); }

TEST(EffectLimits, AHundredActionsCountTheMessagesOwnEnd) {
  for (const bool keeps_key : {false, true}) {
    EffectLimits limits(SLUICE_STORE_SQLITE, keeps_key);
    const std::size_t most = keeps_key ? 98 : 99;
    for (std::size_t i = 0; i < most; ++i) {
      ASSERT_THAT(i % 2 == 0 ? limits.admit(message("q")) : limits.admit(sql("DELETE FROM t")), IsEmpty());
    }
    EXPECT_THAT(limits.admit(message("q")), HasSubstr("at most 100 actions"));
    EXPECT_THAT(limits.admit(sql("DELETE FROM t")), HasSubstr("is one too many"));
    EXPECT_EQ(limits.actions(), most);
  }
}

TEST(EffectLimits, ADeduplicationIdIsAnActionOfItsOwn) {
  EffectLimits limits(SLUICE_STORE_SQLITE, false);
  sluice_effect_message once = message("q");
  once.dedup_id = borrow("id");
  for (int i = 0; i < 49; ++i) {
    ASSERT_THAT(limits.admit(once), IsEmpty());
  }
  EXPECT_THAT(limits.admit(once), HasSubstr("is one too many"));
  EXPECT_THAT(limits.admit(message("q")), IsEmpty());
}

TEST(EffectLimits, FourMegabytesAreTheMost) {
  EffectLimits limits(SLUICE_STORE_SQLITE, false);
  const std::string half(EffectLimits::kMostBytes / 2 - 1, 'x');
  EXPECT_THAT(limits.admit(message("q", half)), IsEmpty());
  EXPECT_THAT(limits.admit(message("q", half)), IsEmpty());
  EXPECT_THAT(limits.admit(message("q", "")), HasSubstr("at most 4194304"));
  EXPECT_EQ(limits.bytes(), EffectLimits::kMostBytes);
  EffectLimits with_key(SLUICE_STORE_SQLITE, true);
  EXPECT_THAT(with_key.admit(message("q", half)), IsEmpty());
  EXPECT_THAT(with_key.admit(message("q", half)), HasSubstr("bytes")) << "the record needs room";
}

TEST(EffectLimits, AnItemOfDynamoDbsIsFourHundredKilobytesAtMost) {
  constexpr std::size_t kMost = std::size_t{400} * 1024;
  // The names count, and of a binary what is spelt.
  const auto put = [](std::size_t text, std::size_t spelt) {
    return R"({"id":{"S":")" + std::string(text, 'x') + R"("},"n":{"B":")" + std::string(spelt, 'A') + R"("}})";
  };
  EXPECT_THAT(refusal(item(SLUICE_ITEM_PUT, put(kMost - 3 - 300, 400))), IsEmpty());
  EXPECT_THAT(refusal(item(SLUICE_ITEM_PUT, put(kMost - 2 - 300, 400))),
              HasSubstr("takes 409601 bytes, and DynamoDB holds 409600"));
  const std::string nested = R"({"id":{"S":"a"},"m":{"M":{"l":{"L":[{"N":"12"},{"S":")";
  EXPECT_THAT(refusal(item(SLUICE_ITEM_PUT, nested + std::string(kMost, 'x') + R"("}]}}}})")), HasSubstr("holds"));
  EXPECT_THAT(EffectLimits(SLUICE_STORE_DYNAMODB, false).admit(message("q", std::string(kMost, 'x'), "a")),
              HasSubstr("a message to q of 409601 bytes"));
  EXPECT_THAT(EffectLimits(SLUICE_STORE_DYNAMODB, false).admit(message("q", std::string(kMost, 'x'))), IsEmpty());
  EXPECT_THAT(EffectLimits(SLUICE_STORE_SQLITE, false).admit(message("q", std::string(kMost + 1, 'x'))), IsEmpty());
  sluice_effect_message json = message("q");
  const std::string spaces(kMost + 1, ' ');
  json.body = borrow(spaces);
  json.content_type = borrow("application/json");
  EXPECT_THAT(EffectLimits(SLUICE_STORE_DYNAMODB, false).admit(json), IsEmpty()) << "as an item it may be shorter";
}

TEST(EffectLimits, AMessageNeedsAQueueAndSenseInItsNumbers) {
  EffectLimits limits(SLUICE_STORE_SQLITE, false);
  EXPECT_THAT(limits.admit(message("")), HasSubstr("without a queue"));
  sluice_effect_message late = message("q");
  late.delay = -1;
  EXPECT_THAT(limits.admit(late), HasSubstr("negative delay"));
  sluice_effect_message urgent = message("q");
  urgent.priority = 3;
  EXPECT_THAT(limits.admit(urgent), HasSubstr("unknown priority 3"));
  sluice_effect_message keyed = message("q");
  const std::string key(EffectLimits::kMostDedupIdBytes + 1, 'k');
  keyed.dedup_id = borrow(key);
  EXPECT_THAT(limits.admit(keyed), HasSubstr("a deduplication id of 1025 bytes: at most 1024 are kept"));
  sluice_effect_message old = message("q");
  old.struct_size = 8;
  EXPECT_THAT(limits.admit(old), HasSubstr("a defect of the plugin"));
  EXPECT_THAT(limits.admit(message("q", "x", "one")), IsEmpty());
  EXPECT_THAT(limits.admit(message("other", "x", "one")), IsEmpty());
  EXPECT_THAT(limits.admit(message("q", "y", "one")), HasSubstr("id of its own"));
}

TEST(EffectLimits, ATextWithoutAnAddressIsEmptyWhateverSizeItSays) {
  sluice_effect_item put = item(SLUICE_ITEM_PUT, "");
  put.item = {nullptr, 5};
  EXPECT_THAT(refusal(put), HasSubstr("it is not JSON from byte 1 on"));
}

TEST(EffectLimits, AnItemIsNamedOnce) {
  EffectLimits limits(SLUICE_STORE_DYNAMODB, false);
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_UPDATE, R"({"id":{"S":"a"}})")), IsEmpty());
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_UPDATE, R"({"id":{"S":"b"}})")), IsEmpty());
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_DELETE, R"({"id":{"S":"a"}})", "others")), IsEmpty());
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_CHECK, R"( { "id" : {"S" : "\u0061"} } )")), HasSubstr("effect 1 "));
}

TEST(EffectLimits, ASpellingMakesNoOtherItem) {
  const auto same = [](const char* one, const char* other) {
    EffectLimits limits(SLUICE_STORE_DYNAMODB, false);
    EXPECT_THAT(limits.admit(item(SLUICE_ITEM_DELETE, one)), IsEmpty());
    return !limits.admit(item(SLUICE_ITEM_DELETE, other)).empty();
  };
  EXPECT_TRUE(same(R"({"id":{"N":"1"}})", R"({"id":{"N":"1.0"}})"));
  EXPECT_TRUE(same(R"({"id":{"N":"100"}})", R"({"id":{"N":"1e2"}})"));
  EXPECT_TRUE(same(R"({"id":{"N":"0"}})", R"({"id":{"N":"-0.00"}})"));
  EXPECT_TRUE(same(R"({"a":{"S":"1"},"b":{"N":"2"}})", R"({"b":{"N":"2"},"a":{"S":"1"}})"));
  EXPECT_FALSE(same(R"({"id":{"N":"1"}})", R"({"id":{"S":"1"}})"));
  EXPECT_FALSE(same(R"({"id":{"N":"1"}})", R"({"id":{"N":"-1"}})"));
  EXPECT_FALSE(same(R"({"id":{"N":"1"}})", R"({"id":{"N":"10"}})"));
}

TEST(EffectLimits, APutsKeyIsKnownOnceAnotherWriteNamesOne) {
  EffectLimits limits(SLUICE_STORE_DYNAMODB, false);
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_PUT, R"({"id":{"S":"a"},"x":{"N":"1"}})")), IsEmpty());
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_PUT, R"({"id":{"S":"a"},"x":{"N":"1.0"}})")), HasSubstr("effect 1 "));
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_UPDATE, R"({"id":{"S":"b"}})")), IsEmpty());
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_UPDATE, R"({"id":{"S":"a"}})")), HasSubstr("effect 1 "));
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_PUT, R"({"id":{"S":"b"},"list":{"L":[]}})")), HasSubstr("the same item"));
  EXPECT_THAT(limits.admit(item(SLUICE_ITEM_PUT, R"({"id":{"S":"c"}})")), IsEmpty());
}

TEST(EffectLimits, WritesThatCannotBeMeantAreTold) {
  EXPECT_THAT(refusal(item(SLUICE_ITEM_PUT, R"({"id":{"S":"a"}})", "")), HasSubstr("without a table"));
  EXPECT_THAT(refusal(item(SLUICE_ITEM_UPDATE, "{}")), HasSubstr("an empty key"));
  EXPECT_THAT(refusal(item(SLUICE_ITEM_PUT, "{}")), HasSubstr("an empty item"));
  EXPECT_THAT(refusal(item(SLUICE_ITEM_DELETE, R"({"a":{"S":"1"},"b":{"S":"1"},"c":{"S":"1"}})")),
              HasSubstr("a key of 3 attributes"));
  EXPECT_THAT(refusal(item(SLUICE_ITEM_DELETE, R"({"a":{"BOOL":true}})")), HasSubstr("\"a\" is neither"));
  EXPECT_THAT(refusal(item(9, R"({"a":{"S":"1"}})")), HasSubstr("unknown action 9"));
  sluice_effect_item write = item(SLUICE_ITEM_UPDATE, R"({"id":{"S":"a"}})");
  write.update = {};
  EXPECT_THAT(refusal(write), HasSubstr("without an update expression"));
  write = item(SLUICE_ITEM_PUT, R"({"id":{"S":"a"}})");
  write.update = borrow("SET a = b");
  EXPECT_THAT(refusal(write), HasSubstr("only an update has one"));
  write = item(SLUICE_ITEM_CHECK, R"({"id":{"S":"a"}})");
  write.condition = {};
  EXPECT_THAT(refusal(write), HasSubstr("without a condition"));
  write.condition = borrow("x = v");
  write.values = borrow(R"({"v":{"S":"a"}})");
  EXPECT_THAT(refusal(write), HasSubstr("begin with a colon"));
  write.values = borrow("{");
  EXPECT_THAT(refusal(write), HasSubstr("whose values are no DynamoDB JSON"));
  const sluice_attribute name{borrow("n"), borrow("name")};
  write.values = {};
  write.names = &name;
  write.name_count = 1;
  EXPECT_THAT(refusal(write), HasSubstr("begin with #"));
}

TEST(EffectLimits, ItemsAreDynamoDbJson) {
  for (const char* wrong :
       {"", "[]", "{\"id\"}", R"({"id":"a"})", R"({"id":{"S":1}})", R"({"id":{"X":"a"}})", R"({"id":{}})",
        R"({"id":{"S":"a","N":"1"}})", R"({"id":{"S":"a"}} x)", R"({"id":{"S":"a"},})", R"({"id":{"S":"\u12"}})",
        R"({"id":{"S":"\ud800"}})", R"({"id":{"S":"a"},"id":{"S":"b"}})", R"({"id":{"BOOL":"true"}})",
        "{\"id\":{\"S\":\"\n\"}}", R"({"id":{"S":"a)"}) {
    EXPECT_THAT(refusal(item(SLUICE_ITEM_PUT, wrong)), HasSubstr("no DynamoDB JSON")) << wrong;
  }
  std::string deep = R"({"S":"x"})";
  for (int i = 0; i < 40; ++i) {
    deep = "{\"L\":[" + deep + "]}";
  }
  EXPECT_THAT(refusal(item(SLUICE_ITEM_PUT, "{\"id\":" + deep + "}")), HasSubstr("32 deep"));
  EXPECT_THAT(refusal(item(SLUICE_ITEM_PUT, R"({"id":{"S":"\ud83d\ude00\n"},"m":{"M":{"a":{"NS":["1"]}}}})")),
              IsEmpty());
}

TEST(EffectLimits, SqlHasAStatementAndKnownValues) {
  EffectLimits limits(SLUICE_STORE_SQLITE, false);
  EXPECT_THAT(limits.admit(sql(" ;\n")), HasSubstr("empty SQL"));
  sluice_effect_sql statement = sql("DELETE FROM t");
  statement.rows = -2;
  EXPECT_THAT(limits.admit(statement), HasSubstr("-2 rows"));
  const sluice_sql_value odd{9, 0, 0, 0, {}};
  statement = sql("DELETE FROM t");
  statement.parameters = &odd;
  statement.parameter_count = 1;
  EXPECT_THAT(limits.admit(statement), HasSubstr("?1 has the unknown type 9"));
}

}  // namespace
}  // namespace sluice::detail
