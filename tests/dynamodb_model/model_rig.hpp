#pragma once

#include <boost/json.hpp>
#include <string>

#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test::model {

/// What the model answered.
struct Reply {
  ModelAnswer::Delivery delivery = ModelAnswer::Delivery::answered;
  int status = 0;
  boost::json::value body;

  /// DynamoDB's name of the error, without what is before '#'; empty: none.
  std::string error() const {
    const auto* object = body.if_object();
    const auto* type = object == nullptr ? nullptr : object->if_contains("__type");
    const std::string text = type == nullptr ? "" : std::string(type->as_string());
    return text.substr(text.find('#') + 1);
  }
  std::string message() const {
    const auto& object = body.as_object();
    const auto* text = object.if_contains("message");
    return std::string((text != nullptr ? *text : object.at("Message")).as_string());
  }
};

inline dynamo::HttpRequest request_of(const std::string& operation, const std::string& body) {
  dynamo::HttpRequest request;
  request.headers = {{"Content-Type", "application/x-amz-json-1.0"},
                     {"X-Amz-Target", "DynamoDB_20120810." + operation},
                     {"Authorization",
                      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/us-east-1/dynamodb/aws4_request, "
                      "SignedHeaders=host, Signature=0"}};
  request.body = body;
  return request;
}

/// A model on a clock that stands still, with one table like a DynamoMQ queue's and one with a sort key.
struct ModelRig {
  explicit ModelRig(const ModelSettings& settings = {}) : model(clock, 1, settings) {
    ask("CreateTable", R"({"TableName":"jobs","BillingMode":"PAY_PER_REQUEST",
      "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"kind","AttributeType":"S"},
                              {"AttributeName":"at","AttributeType":"S"}],
      "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
      "GlobalSecondaryIndexes":[{"IndexName":"by-kind","Projection":{"ProjectionType":"ALL"},
        "KeySchema":[{"AttributeName":"kind","KeyType":"HASH"},{"AttributeName":"at","KeyType":"RANGE"}]}]})");
    ask("CreateTable", R"({"TableName":"rows","BillingMode":"PAY_PER_REQUEST",
      "AttributeDefinitions":[{"AttributeName":"box","AttributeType":"S"},{"AttributeName":"n","AttributeType":"N"}],
      "KeySchema":[{"AttributeName":"box","KeyType":"HASH"},{"AttributeName":"n","KeyType":"RANGE"}]})");
  }

  Reply ask(const std::string& operation, const std::string& body) {
    const ModelAnswer answer = model.handle(request_of(operation, body));
    Reply reply{answer.delivery, answer.response.status, {}};
    if (answer.delivery == ModelAnswer::Delivery::answered) {
      boost::json::error_code ignored;
      reply.body = boost::json::parse(answer.response.body, ignored);
    }
    return reply;
  }
  Reply put_job(const std::string& id, const std::string& at, const std::string& data = "x") {
    return ask("PutItem", R"({"TableName":"jobs","ReturnConsumedCapacity":"INDEXES","Item":{"id":{"S":")" + id +
                              R"("},"kind":{"S":"k"},"at":{"S":")" + at + R"("},"data":{"S":")" + data + R"("}}})");
  }
  Reply query_jobs(const std::string& more = "") {
    return ask("Query", R"({"TableName":"jobs","IndexName":"by-kind","KeyConditionExpression":"kind = :k",
      "ReturnConsumedCapacity":"TOTAL","ExpressionAttributeValues":{":k":{"S":"k"}})" +
                            more + "}");
  }
  /// "a b c": the ids of the jobs that a query shows.
  std::string ids_in_index(const std::string& more = "") {
    std::string out;
    const Reply reply = query_jobs(more);
    for (const auto& item : reply.body.at("Items").as_array()) {
      out += (out.empty() ? "" : " ") + std::string(item.at("id").at("S").as_string());
    }
    return out;
  }

  FakeClock clock;
  Model model;
};

/// The number at the end of a path of member names.
inline double number_at(const boost::json::value& value, std::initializer_list<const char*> path) {
  const boost::json::value* at = &value;
  for (const char* name : path) {
    at = at->is_array() ? &at->as_array().at(0) : at;
    at = &at->as_object().at(name);
  }
  return at->to_number<double>();
}

}  // namespace sluice::test::model
