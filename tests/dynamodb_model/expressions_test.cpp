#include <gtest/gtest.h>

#include "tests/dynamodb_model/model_rig.hpp"

namespace sluice::test::model {
namespace {

class ModelExpressions : public testing::Test {
 protected:
  ModelExpressions() {
    rig.ask("PutItem", R"({"TableName":"jobs","Item":{"id":{"S":"a"},"count":{"N":"5"},"tags":{"SS":["x","y"]},
      "parts":{"L":[{"N":"1"},{"N":"2"},{"N":"3"}]},"tree":{"M":{"leaf":{"S":"deep"}}}}})");
  }
  Reply update(const std::string& expression, const std::string& more = "") {
    return rig.ask("UpdateItem", R"({"TableName":"jobs","Key":{"id":{"S":"a"}},"ReturnValues":"ALL_NEW",
      "UpdateExpression":")" + expression +
                                     "\"" + more + "}");
  }
  bool passes(const std::string& condition, const std::string& values = "", const std::string& names = "") {
    return rig.ask("DeleteItem", R"({"TableName":"jobs","Key":{"id":{"S":"nobody"}},"ConditionExpression":")" +
                                     condition + "\"" +
                                     (values.empty() ? "" : R"(,"ExpressionAttributeValues":)" + values) +
                                     (names.empty() ? "" : R"(,"ExpressionAttributeNames":)" + names) + "}")
               .status == 200;
  }
  bool holds(const std::string& condition, const std::string& values = "") {
    return rig.ask("UpdateItem", R"({"TableName":"jobs","Key":{"id":{"S":"a"}},"UpdateExpression":"REMOVE nothing",
      "ConditionExpression":")" + condition +
                                     "\"" + (values.empty() ? "" : R"(,"ExpressionAttributeValues":)" + values) + "}")
               .status == 200;
  }
  ModelRig rig;
};

TEST_F(ModelExpressions, ConditionsCompareByType) {
  EXPECT_TRUE(holds("tree.leaf = :v", R"({":v":{"S":"deep"}})"));
  EXPECT_TRUE(holds("parts[1] < :v", R"({":v":{"N":"2.5"}})"));
  EXPECT_FALSE(holds("parts[1] < :v", R"({":v":{"S":"3"}})"));
  EXPECT_TRUE(holds("contains(tags, :v) AND NOT contains(tags, :w)", R"({":v":{"S":"x"},":w":{"S":"z"}})"));
  EXPECT_TRUE(holds("size(tags) = :v", R"({":v":{"N":"2"}})"));
  EXPECT_TRUE(holds("id BETWEEN :v AND :w OR attribute_exists(nothing)", R"({":v":{"S":"a"},":w":{"S":"b"}})"));
  EXPECT_TRUE(holds("id IN (:v, :w)", R"({":v":{"S":"z"},":w":{"S":"a"}})"));
  EXPECT_TRUE(holds("attribute_type(tags, :v)", R"({":v":{"S":"SS"}})"));
  EXPECT_TRUE(holds("tags = :v", R"({":v":{"SS":["y","x"]}})")) << "sets have no order";
}

TEST_F(ModelExpressions, WhatIsNotThereEqualsNothing) {
  EXPECT_FALSE(passes("absent = :v", R"({":v":{"S":""}})"));
  EXPECT_TRUE(passes("absent <> :v", R"({":v":{"S":""}})"));
  EXPECT_TRUE(passes("attribute_not_exists(absent)"));
}

TEST_F(ModelExpressions, UpdatesSeeTheItemAsItWas) {
  const Reply reply = update("SET #c = #c + :one, copied = #c REMOVE parts[0], tree.leaf ADD tags :more",
                             R"(,"ExpressionAttributeNames":{"#c":"count"},
                               "ExpressionAttributeValues":{":one":{"N":"1"},":more":{"SS":["z"]}})");
  ASSERT_EQ(reply.status, 200) << boost::json::serialize(reply.body);
  const auto& item = reply.body.at("Attributes");
  EXPECT_EQ(item.at("count").at("N").as_string(), "6");
  EXPECT_EQ(item.at("copied").at("N").as_string(), "5");
  EXPECT_EQ(item.at("parts").at("L").as_array().size(), 2u);
  EXPECT_EQ(item.at("tags").at("SS").as_array().size(), 3u);
  EXPECT_EQ(item.at("tree").at("M").as_object().size(), 0u);
}

TEST_F(ModelExpressions, RefusalsSayWhatDynamoDBSays) {
  EXPECT_EQ(update("SET data = :v", R"(,"ExpressionAttributeValues":{":v":{"N":"1"}})").message(),
            "Invalid UpdateExpression: Attribute name is a reserved keyword; reserved keyword: data");
  EXPECT_EQ(
      update("SET a = :v").message(),
      "Invalid UpdateExpression: An expression attribute value used in expression is not defined; attribute value: :v");
  EXPECT_EQ(update("SET a = :v", R"(,"ExpressionAttributeValues":{":v":{"N":"1"},":w":{"N":"1"}})").message(),
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}");
  EXPECT_EQ(update("SET id = :v", R"(,"ExpressionAttributeValues":{":v":{"S":"b"}})").message(),
            "One or more parameter values were invalid: Cannot update attribute id. This attribute is part of the key");
  EXPECT_EQ(update("SET a = :v REMOVE a", R"(,"ExpressionAttributeValues":{":v":{"S":"b"}})").error(),
            "ValidationException");
  EXPECT_EQ(update("SET nothing.deep = :v", R"(,"ExpressionAttributeValues":{":v":{"S":"b"}})").message(),
            "The document path provided in the update expression is invalid for update");
  EXPECT_EQ(update("SET SET a").error(), "ValidationException");
}

TEST_F(ModelExpressions, ItemsBeyond400KilobytesAreRefused) {
  const std::string big(400 * 1024, 'x');
  EXPECT_EQ(rig.put_job("b", "1", big).message(), "Item size has exceeded the maximum allowed size");
  EXPECT_EQ(update("SET big = :v", R"(,"ExpressionAttributeValues":{":v":{"S":")" + big + "\"}}").message(),
            "Item size to update has exceeded the maximum allowed size");
}

}  // namespace
}  // namespace sluice::test::model
