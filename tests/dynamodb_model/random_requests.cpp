#include "tests/dynamodb_model/random_requests.hpp"

#include <array>
#include <set>
#include <utility>

#include "tests/dynamodb_model/request_templates.hpp"

namespace sluice::test::model {

namespace json = boost::json;

std::vector<Question> RandomRequests::tables() {
  const char* jobs = R"({"TableName":"jobs","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"kind","AttributeType":"S"},
                            {"AttributeName":"sent","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
    "GlobalSecondaryIndexes":[{"IndexName":"by-kind","Projection":{"ProjectionType":"ALL"},
      "KeySchema":[{"AttributeName":"kind","KeyType":"HASH"},{"AttributeName":"sent","KeyType":"RANGE"}]}]})";
  const char* rows = R"({"TableName":"rows","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"box","AttributeType":"S"},{"AttributeName":"n","AttributeType":"N"},
                            {"AttributeName":"owner_id","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"box","KeyType":"HASH"},{"AttributeName":"n","KeyType":"RANGE"}],
    "GlobalSecondaryIndexes":[{"IndexName":"by-owner","Projection":{"ProjectionType":"KEYS_ONLY"},
      "KeySchema":[{"AttributeName":"owner_id","KeyType":"HASH"}]}]})";
  return {{"CreateTable", json::parse(jobs).as_object()}, {"CreateTable", json::parse(rows).as_object()}};
}

Question RandomRequests::next() {
  static constexpr std::array<std::pair<int, Question (RandomRequests::*)()>, 13> kMakers = {{
      {16, &RandomRequests::put},
      {18, &RandomRequests::update},
      {6, &RandomRequests::remove},
      {6, &RandomRequests::get},
      {10, &RandomRequests::query_index},
      {8, &RandomRequests::query_rows},
      {2, &RandomRequests::scan},
      {4, &RandomRequests::batch_get},
      {5, &RandomRequests::batch_write},
      {7, &RandomRequests::transact_write},
      {3, &RandomRequests::transact_get},
      {18, &RandomRequests::statements},
      {5, &RandomRequests::statement},
  }};
  auto dice = static_cast<int>(below(108));
  for (const auto& [weight, make] : kMakers) {
    dice -= weight;
    if (dice < 0) {
      Question question = (this->*make)();
      if (chance(60)) {
        question.body["ReturnConsumedCapacity"] = chance(50) ? "TOTAL" : "INDEXES";
      }
      if (chance(3)) {
        spoil(question);
      }
      return question;
    }
  }
  return get();
}

std::string RandomRequests::id() { return "id-" + std::to_string(below(12)); }
json::object RandomRequests::job_key() { return {{"id", text(id())}}; }
json::object RandomRequests::row_key() {
  return {{"box", text("box-" + std::to_string(below(2)))}, {"n", numeric(static_cast<long long>(below(20)) - 5)}};
}

json::value RandomRequests::number() {
  return {{"N", one_of<const char*>({"0", "1", "2", "3", "-1", "1.5", "1e2", "0.001", "007",
                                     "12345678901234567890123456789012345678", "1E-100"})}};
}

std::string RandomRequests::blob() { return std::string(one_of<std::size_t>({1, 10, 700, 1100, 3000, 9000}), 'x'); }

json::value RandomRequests::value() {
  switch (below(11)) {
    case 0:
      return number();
    case 1:
      return {{"BOOL", chance(50)}};
    case 2:
      return {{"NULL", true}};
    case 3:
      return {{"B", "AAEC"}};
    case 4:
      return {{"SS", json::array{"b", "a"}}};
    case 5:
      return {{"NS", json::array{"2", "10", "1.0"}}};
    case 6:
      return {{"L", json::array{number(), text("in"), json::object{{"M", json::object{{"leaf", number()}}}}}}};
    case 7:
      return {{"M", json::object{{"leaf", text("deep")}}}};
    case 8:
      return text("");
    default:
      return text(blob());
  }
}

json::object RandomRequests::job() {
  json::object item = job_key();
  if (chance(90)) {
    item["kind"] = text("k" + std::to_string(below(2)));
    item["sent"] = text("t" + std::to_string(below(30)));
  }
  if (chance(80)) {
    item["version"] = numeric(static_cast<long long>(below(4)));
  }
  if (chance(50)) {
    item["data"] = value();
  }
  if (chance(30)) {
    item["tags"] = json::object{{"SS", json::array{"a", "k0"}}};
  }
  if (chance(30)) {
    item["things"] = json::object{{"L", json::array{number(), text("x"), number()}}};
  }
  if (chance(30)) {
    item["deep"] = json::object{{"M", json::object{{"leaf", number()}}}};
  }
  return item;
}

json::object RandomRequests::row() {
  json::object item = row_key();
  if (chance(70)) {
    item["owner_id"] = text("o" + std::to_string(below(2)));
  }
  item["load"] = value();
  return item;
}

void RandomRequests::add_condition(json::object& body) {
  const ExpressionTemplate& made = condition_templates()[below(condition_templates().size())];
  body["ConditionExpression"] = made.expression;
  json::object names;
  json::object values;
  if (const auto* before = body.if_contains("ExpressionAttributeNames")) {
    names = before->as_object();
  }
  if (const auto* before = body.if_contains("ExpressionAttributeValues")) {
    values = before->as_object();
  }
  for (const auto& [placeholder, name] : made.names) {
    names[placeholder] = name;
  }
  for (const std::string placeholder : made.values) {
    if (placeholder == ":cn") {
      values[placeholder] = numeric(static_cast<long long>(below(4)));
    } else if (placeholder == ":cm") {
      values[placeholder] = numeric(4);
    } else {
      values[placeholder] = text(placeholder == ":ct" ? "N" : one_of<const char*>({"k0", "k1", "t1", "a"}));
    }
  }
  if (!names.empty()) {
    body["ExpressionAttributeNames"] = names;
  }
  if (!values.empty()) {
    body["ExpressionAttributeValues"] = values;
  }
}

// Makes a request one that DynamoDB refuses.
void RandomRequests::spoil(Question& question) {
  if (!question.body.contains("TableName") || question.operation == "Scan" || question.operation == "Query") {
    return;
  }
  switch (below(6)) {
    case 0:
      question.body["TableName"] = "nowhere";
      return;
    case 1:
      if (question.operation != "GetItem") {
        question.body["ExpressionAttributeValues"] = json::object{{":unused", number()}};
      }
      return;
    case 2:
      question.body["ExpressionAttributeNames"] = json::object{{"#unused", "x"}};
      return;
    case 3:
      if (question.body.contains("Key")) {
        question.body["Key"] = json::object{{"id", number()}};
      }
      return;
    case 4:
      if (question.body.contains("Item")) {
        question.body["Item"].as_object()["id"] = text("");
      }
      return;
    default:
      if (question.body.contains("Item")) {
        question.body["Item"].as_object()["odd"] = json::object{{"N", one_of<const char*>({"abc", "1e200", ""})}};
      }
  }
}

Question RandomRequests::put() {
  const bool rows = chance(25);
  json::object body = {{"TableName", rows ? "rows" : "jobs"}, {"Item", rows ? row() : job()}};
  if (!rows && chance(40)) {
    add_condition(body);
  }
  if (chance(30)) {
    body["ReturnValues"] = one_of<const char*>({"ALL_OLD", "NONE", "ALL_NEW"});
  }
  if (chance(5)) {
    body["Item"].as_object()[rows ? "owner_id" : "sent"] = chance(50) ? json::value(text("")) : number();
  }
  return {"PutItem", body};
}

Question RandomRequests::update() {
  const ExpressionTemplate& made = update_templates()[below(update_templates().size())];
  json::object body = {{"TableName", "jobs"}, {"Key", job_key()}, {"UpdateExpression", made.expression}};
  json::object names;
  json::object values;
  for (const auto& [placeholder, name] : made.names) {
    names[placeholder] = name;
  }
  for (const std::string placeholder : made.values) {
    values[placeholder] = placeholder == ":n"   ? number()
                          : placeholder == ":l" ? json::value{{"L", json::array{text("more")}}}
                          : placeholder == ":t" ? json::value{{"SS", json::array{"a", "z"}}}
                                                : json::value(text(one_of<const char*>({"k0", "k1", "t5", ""})));
  }
  if (!names.empty()) {
    body["ExpressionAttributeNames"] = names;
  }
  if (!values.empty()) {
    body["ExpressionAttributeValues"] = values;
  }
  if (chance(40)) {
    add_condition(body);
  }
  body["ReturnValues"] = one_of<const char*>({"ALL_NEW", "ALL_OLD", "NONE", "UPDATED_NEW", "UPDATED_OLD"});
  if (chance(30)) {
    body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD";
  }
  return {"UpdateItem", body};
}

Question RandomRequests::remove() {
  const bool rows = chance(30);
  json::object body = {{"TableName", rows ? "rows" : "jobs"}, {"Key", rows ? row_key() : job_key()}};
  if (!rows && chance(50)) {
    add_condition(body);
  }
  if (chance(50)) {
    body["ReturnValues"] = "ALL_OLD";
  }
  return {"DeleteItem", body};
}

Question RandomRequests::get() {
  const bool rows = chance(30);
  json::object body = {{"TableName", rows ? "rows" : "jobs"}, {"Key", rows ? row_key() : job_key()}};
  body["ConsistentRead"] = chance(50);
  if (!rows && chance(40)) {
    body["ProjectionExpression"] = "id, #v, deep.leaf, things[1]";
    body["ExpressionAttributeNames"] = json::object{{"#v", "version"}};
  }
  return {"GetItem", body};
}

Question RandomRequests::batch_get() {
  json::array keys;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < below(6) + 1; ++i) {
    const std::string key = id();
    if (seen.insert(key).second || chance(3)) {
      keys.push_back(json::object{{"id", text(key)}});
    }
  }
  return {"BatchGetItem", {{"RequestItems", {{"jobs", {{"Keys", keys}, {"ConsistentRead", chance(50)}}}}}}};
}

Question RandomRequests::batch_write() {
  json::array requests;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < below(6) + 1; ++i) {
    json::object item = job();
    const std::string key(item["id"].at("S").as_string());
    if (!seen.insert(key).second && !chance(3)) {
      continue;
    }
    if (chance(70)) {
      requests.push_back(json::object{{"PutRequest", {{"Item", item}}}});
    } else {
      requests.push_back(json::object{{"DeleteRequest", {{"Key", {{"id", text(key)}}}}}});
    }
  }
  return {"BatchWriteItem", {{"RequestItems", {{"jobs", requests}}}}};
}

Question RandomRequests::transact_write() {
  json::array parts;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < below(4) + 1; ++i) {
    Question one = chance(40) ? put() : (chance(60) ? update() : remove());
    std::string kind = one.operation.substr(0, one.operation.size() - 4);
    one.body.erase("ReturnValues");
    const auto* update = one.body.if_contains("UpdateExpression");
    if (update != nullptr && (*update == "SET id = :s" || *update == "SET a = :s REMOVE a")) {
      continue;  // the emulator takes it, as known_differences says
    }
    if (one.body.at("TableName").as_string() == "jobs" &&
        !seen
             .insert(std::string(
                 (one.body.contains("Key") ? one.body.at("Key") : one.body.at("Item")).at("id").at("S").as_string()))
             .second &&
        !chance(5)) {
      continue;
    }
    if (one.body.at("TableName").as_string() == "rows" && !seen.insert("rows").second) {
      continue;
    }
    if (kind == "Delete" && one.body.contains("ConditionExpression") && chance(60)) {
      kind = "ConditionCheck";
    }
    parts.push_back(json::object{{kind, one.body}});
  }
  return {"TransactWriteItems", {{"TransactItems", parts}}};
}

Question RandomRequests::transact_get() {
  json::array parts;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < below(4) + 1; ++i) {
    const std::string key = id();
    if (seen.insert(key).second || chance(5)) {
      parts.push_back(json::object{{"Get", {{"TableName", "jobs"}, {"Key", {{"id", text(key)}}}}}});
    }
  }
  return {"TransactGetItems", {{"TransactItems", parts}}};
}

}  // namespace sluice::test::model
