// The image that an index shows of its table.

#include <gtest/gtest.h>

#include "tests/dynamodb_model/model_rig.hpp"

namespace sluice::test::model {
namespace {

using std::chrono::seconds;

ModelSettings lagging(Duration longest) {
  ModelSettings settings;
  settings.lag = {.typical = longest, .longest = longest, .slow = 0.5};
  return settings;
}

TEST(ModelIndex, ShowsEntriesInTheOrderOfTheSortKey) {
  ModelRig rig;
  rig.put_job("a", "3");
  rig.put_job("b", "1");
  rig.put_job("c", "2");
  EXPECT_EQ(rig.ids_in_index(), "b c a");
  EXPECT_EQ(rig.ids_in_index(R"(,"ScanIndexForward":false)"), "a c b");
}

TEST(ModelIndex, ItemsWithoutItsKeyAreNotInIt) {
  ModelRig rig;
  rig.put_job("a", "1");
  rig.ask("UpdateItem", R"({"TableName":"jobs","Key":{"id":{"S":"a"}},"UpdateExpression":"REMOVE kind"})");
  EXPECT_EQ(rig.ids_in_index(), "");
}

TEST(ModelIndex, RefusesAnEmptyKey) {
  ModelRig rig;
  const Reply reply = rig.put_job("a", "");
  EXPECT_EQ(reply.error(), "ValidationException");
  EXPECT_NE(reply.message().find("IndexName: by-kind, IndexKey: at"), std::string::npos) << reply.message();
}

TEST(ModelIndex, AWriteShowsOnlyWhenItsDelayIsOver) {
  ModelRig rig(lagging(seconds(60)));
  for (int i = 0; i < 50; ++i) {
    rig.put_job(std::to_string(i), std::to_string(i));
  }
  EXPECT_EQ(rig.ids_in_index(), "");
  EXPECT_EQ(rig.model.under_way(), 50u);
  rig.clock.advance(seconds(30));
  const std::size_t half = rig.model.under_way();
  EXPECT_GT(half, 10u);
  EXPECT_LT(half, 40u);
  rig.clock.advance(seconds(30));
  EXPECT_EQ(rig.model.under_way(), 0u);
  EXPECT_EQ(rig.query_jobs().body.at("Count").as_int64(), 50);
}

// A put and the delete after it may both be under way; the entry must not come back when their delays cross.
TEST(ModelIndex, WritesOfOneItemShowInTheirOrder) {
  ModelRig rig(lagging(seconds(60)));
  for (int i = 0; i < 200; ++i) {
    const std::string id = std::to_string(i);
    rig.put_job(id, "1");
    rig.put_job(id, "2");
    rig.ask("DeleteItem", R"({"TableName":"jobs","Key":{"id":{"S":")" + id + R"("}}})");
  }
  for (int second = 0; second < 61; ++second) {
    rig.clock.advance(seconds(1));
    std::map<std::string, int> shown;
    for (const Item& item : rig.model.index_items("jobs", "by-kind")) {
      EXPECT_EQ(++shown[*dynamo::find<std::string>(item, "id")], 1) << "an item twice";
    }
  }
  EXPECT_TRUE(rig.model.index_items("jobs", "by-kind").empty());
}

TEST(ModelIndex, TheTableItselfIsNeverLate) {
  ModelRig rig(lagging(seconds(60)));
  rig.put_job("a", "1");
  EXPECT_EQ(rig.ask("GetItem", R"({"TableName":"jobs","Key":{"id":{"S":"a"}}})").body.as_object().count("Item"), 1u);
  EXPECT_EQ(rig.ask("Scan", R"({"TableName":"jobs"})").body.at("Count").as_int64(), 1);
}

}  // namespace
}  // namespace sluice::test::model
