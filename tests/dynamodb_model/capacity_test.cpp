// What requests cost, and what happens when that is more than a partition gives.

#include <gtest/gtest.h>

#include "tests/dynamodb_model/model_rig.hpp"

namespace sluice::test::model {
namespace {

using std::chrono::seconds;

ModelSettings limited(double partition_write, double partition_read) {
  ModelSettings settings;
  settings.limits.partition_write = partition_write;
  settings.limits.partition_read = partition_read;
  return settings;
}

double total(const Reply& reply) { return number_at(reply.body, {"ConsumedCapacity", "CapacityUnits"}); }

TEST(ModelCapacity, WritesAreChargedByTheKilobyteOfTableAndIndex) {
  ModelRig rig;
  EXPECT_EQ(total(rig.put_job("a", "1")), 2);
  EXPECT_EQ(total(rig.put_job("a", "1")), 1) << "nothing of it changes in the index";
  EXPECT_EQ(total(rig.put_job("a", "2")), 3) << "a new sort key is a delete and a put";
  EXPECT_EQ(total(rig.put_job("a", "2", std::string(1500, 'x'))), 4);
  const Reply shrunk = rig.put_job("a", "2");
  EXPECT_EQ(number_at(shrunk.body, {"ConsumedCapacity", "Table", "CapacityUnits"}), 2) << "the larger image counts";
}

TEST(ModelCapacity, EventuallyConsistentReadsCostHalf) {
  ModelRig rig;
  rig.put_job("a", "1", std::string(5000, 'x'));
  const std::string get = R"({"TableName":"jobs","Key":{"id":{"S":"a"}},"ReturnConsumedCapacity":"TOTAL")";
  EXPECT_EQ(total(rig.ask("GetItem", get + "}")), 1);
  EXPECT_EQ(total(rig.ask("GetItem", get + R"(,"ConsistentRead":true})")), 2);
  EXPECT_EQ(total(rig.query_jobs()), 1);
  EXPECT_EQ(total(ModelRig().query_jobs()), 0.5) << "an empty query";
}

TEST(ModelCapacity, AFailedConditionIsCharged) {
  ModelRig rig;
  rig.put_job("a", "1");
  const double before = rig.model.counters().write_units;
  EXPECT_EQ(rig.ask("DeleteItem", R"--({"TableName":"jobs","Key":{"id":{"S":"a"}},
    "ConditionExpression":"attribute_not_exists(id)"})--")
                .error(),
            "ConditionalCheckFailedException");
  EXPECT_EQ(rig.model.counters().write_units, before + 1);
}

TEST(ModelCapacity, AKeyTakesSoManyUnitsASecond) {
  ModelRig rig(limited(0, 10));
  rig.put_job("a", "1");
  int done = 0;
  for (int i = 0; i < 100; ++i) {
    done += rig.query_jobs().status == 200 ? 1 : 0;
  }
  EXPECT_EQ(done, 20) << "half a unit each";
  const Reply refused = rig.query_jobs();
  EXPECT_EQ(refused.error(), "ProvisionedThroughputExceededException");
  EXPECT_EQ(refused.body.at("ThrottlingReasons").as_array()[0].at("reason").as_string(),
            "IndexReadKeyRangeThroughputExceeded");
  rig.clock.advance(std::chrono::milliseconds(500));
  done = 0;
  for (int i = 0; i < 100; ++i) {
    done += rig.query_jobs().status == 200 ? 1 : 0;
  }
  EXPECT_EQ(done, 10);
}

// Different keys of the table, one key of the index: the index refuses, and with it the table.
TEST(ModelCapacity, AnIndexThatCannotKeepUpHoldsBackItsTable) {
  ModelRig rig(limited(100, 0));
  int done = 0;
  std::string reason;
  for (int i = 0; i < 200; ++i) {
    const Reply reply = rig.put_job(std::to_string(i), "1");
    if (reply.status == 200) {
      ++done;
    } else {
      reason = std::string(reply.body.at("ThrottlingReasons").as_array()[0].at("reason").as_string());
    }
  }
  EXPECT_EQ(done, 100);
  EXPECT_EQ(reason, "IndexWriteKeyRangeThroughputExceeded");
  EXPECT_EQ(rig.model.items("jobs").size(), 100u);
}

TEST(ModelCapacity, StatementsOfABatchAreThrottledOneByOne) {
  ModelRig rig(limited(10, 0));
  std::string statements;
  for (int i = 0; i < 25; ++i) {
    statements += std::string(i == 0 ? "" : ",") +
                  R"({"Statement":"INSERT INTO \"jobs\" VALUE {'id':?,'kind':'k','at':'1'}","Parameters":[{"S":")" +
                  std::to_string(i) + R"("}]})";
  }
  const Reply reply = rig.ask("BatchExecuteStatement", R"({"Statements":[)" + statements + "]}");
  int done = 0;
  for (const auto& response : reply.body.at("Responses").as_array()) {
    const auto* error = response.as_object().if_contains("Error");
    done += error == nullptr ? 1 : 0;
    if (error != nullptr) {
      EXPECT_EQ(error->at("Code").as_string(), "ProvisionedThroughputExceeded");
    }
  }
  EXPECT_EQ(done, 10);
}

TEST(ModelCapacity, UnusedCapacityIsKeptForBursts) {
  ModelSettings settings = limited(0, 10);
  settings.limits.burst = seconds(5);
  ModelRig rig(settings);
  int done = 0;
  for (int i = 0; i < 200; ++i) {
    done += rig.query_jobs().status == 200 ? 1 : 0;
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace sluice::test::model
