// PartiQL, as the DynamoMQ store speaks it.

#include <gtest/gtest.h>

#include "tests/dynamodb_model/model_rig.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

std::string statement(const std::string& text, const std::string& parameters) {
  return json::serialize(json::object{{"Statement", text}, {"Parameters", json::parse("[" + parameters + "]")}});
}

class ModelStatements : public testing::Test {
 protected:
  Reply batch(const std::string& statements) {
    return rig.ask("BatchExecuteStatement", R"({"ReturnConsumedCapacity":"TOTAL","Statements":[)" + statements + "]}");
  }
  json::object first(const std::string& statements) {
    return batch(statements).body.at("Responses").as_array().at(0).as_object();
  }
  std::string code(const std::string& statements) {
    const json::object response = first(statements);
    const auto* error = response.if_contains("Error");
    return error == nullptr ? "" : std::string(error->at("Code").as_string());
  }

  ModelRig rig;
  const std::string insert = statement(R"(INSERT INTO "jobs" VALUE {'id':?,'version':?})", R"({"S":"a"},{"N":"1"})");
};

TEST_F(ModelStatements, InsertRefusesADuplicate) {
  EXPECT_EQ(code(insert), "");
  EXPECT_EQ(code(insert), "DuplicateItem");
}

TEST_F(ModelStatements, UpdateIsConditionalAndGivesTheNewItem) {
  batch(insert);
  const std::string text =
      R"(UPDATE "jobs" SET "version"=?,"kind"=? REMOVE "gone" WHERE "id"=? AND "version"=? RETURNING ALL NEW *)";
  const std::string update = statement(text, R"({"N":"2"},{"S":"k"},{"S":"a"},{"N":"1"})");
  EXPECT_EQ(first(update).at("Item").at("version").at("N").as_string(), "2");
  EXPECT_EQ(code(update), "ConditionalCheckFailed");
}

TEST_F(ModelStatements, UpdateOfWhatIsNotThereFails) {
  EXPECT_EQ(code(statement(R"(UPDATE "jobs" SET "version"=? WHERE "id"=?)", R"({"N":"2"},{"S":"nobody"})")),
            "ConditionalCheckFailed");
  EXPECT_TRUE(rig.model.items("jobs").empty());
}

TEST_F(ModelStatements, MissingIsToldFromEveryValue) {
  batch(insert);
  EXPECT_EQ(code(statement(R"(DELETE FROM "jobs" WHERE "id"=? AND "version" IS MISSING)", R"({"S":"a"})")),
            "ConditionalCheckFailed");
  const json::object response =
      first(statement(R"(DELETE FROM "jobs" WHERE "id"=? AND "kind" IS MISSING RETURNING ALL OLD *)", R"({"S":"a"})"));
  EXPECT_EQ(response.at("Item").at("version").at("N").as_string(), "1");
}

TEST_F(ModelStatements, ReadsAndWritesDoNotMix) {
  const Reply reply = batch(insert + "," + statement(R"(SELECT * FROM "jobs" WHERE "id"=?)", R"({"S":"a"})"));
  EXPECT_EQ(reply.error(), "ValidationException");
}

TEST_F(ModelStatements, NoItemTwiceInABatch) { EXPECT_EQ(batch(insert + "," + insert).error(), "ValidationException"); }

TEST_F(ModelStatements, CapacityIsToldWhenAnythingSucceeded) {
  EXPECT_EQ(number_at(batch(insert).body, {"ConsumedCapacity", "CapacityUnits"}), 1);
  EXPECT_EQ(batch(insert).body.as_object().count("ConsumedCapacity"), 0u);
}

TEST_F(ModelStatements, DeniedActionsAreNamed) {
  rig.model.deny("dynamodb:PartiQLInsert");
  const json::object response = first(insert);
  EXPECT_EQ(response.at("Error").at("Code").as_string(), "AccessDenied");
  EXPECT_NE(std::string(response.at("Error").at("Message").as_string()).find("dynamodb:PartiQLInsert"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::test::model
