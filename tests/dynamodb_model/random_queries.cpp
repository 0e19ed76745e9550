// The Queries and Scans of RandomRequests.

#include "tests/dynamodb_model/random_requests.hpp"

namespace sluice::test::model {

namespace json = boost::json;

Question RandomRequests::query_index() {
  std::string condition = "kind = :k";
  json::object values = {{":k", text("k" + std::to_string(below(2)))}};
  switch (below(5)) {
    case 0:
      condition += " AND sent BETWEEN :a AND :b";
      values[":a"] = text("t1");
      values[":b"] = text(one_of<const char*>({"t2", "t25", "t9", "t0"}));
      break;
    case 1:
      condition += " AND sent >= :a";
      values[":a"] = text("t2");
      break;
    case 2:
      condition += " AND sent <= :a";
      values[":a"] = text("t2");
      break;
    case 3:
      condition += " AND begins_with(sent, :a)";
      values[":a"] = text("t1");
      break;
    default:
      break;
  }
  json::object body = {{"TableName", "jobs"},
                       {"IndexName", chance(98) ? "by-kind" : "by-nothing"},
                       {"KeyConditionExpression", condition}};
  if (chance(50)) {
    body["Limit"] = static_cast<int>(below(5) + (chance(95) ? 1 : 0));
  }
  if (chance(40)) {
    body["ScanIndexForward"] = chance(50);
  }
  if (chance(30)) {
    body["ProjectionExpression"] = "id, #v, sent";
    body["ExpressionAttributeNames"] = json::object{{"#v", "version"}};
  } else if (chance(30)) {
    body["FilterExpression"] = chance(90) ? "attribute_exists(tags)" : "sent > :k";
  }
  if (chance(3)) {
    body["ConsistentRead"] = true;
  }
  if (chance(10)) {
    body.erase("ProjectionExpression");
    body.erase("ExpressionAttributeNames");
    body["Select"] = "COUNT";
  }
  body["ExpressionAttributeValues"] = values;
  return {"Query", body};
}

Question RandomRequests::query_rows() {
  json::object body = {{"TableName", "rows"}};
  json::object values;
  if (chance(25)) {
    body["IndexName"] = "by-owner";
    body["KeyConditionExpression"] = "owner_id = :o";
    values[":o"] = text("o" + std::to_string(below(2)));
  } else {
    body["KeyConditionExpression"] = one_of<const char*>(
        {"box = :b", "box = :b AND n > :n", "n <= :n AND box = :b", "box = :b AND n < :n", "n = :n", "box > :b"});
    values[":b"] = text("box-" + std::to_string(below(2)));
    if (body["KeyConditionExpression"].as_string().find(":n") != json::string::npos) {
      values[":n"] = numeric(static_cast<long long>(below(12)) - 3);
    }
    if (body["KeyConditionExpression"].as_string() == "n = :n") {
      values.erase(":b");
    }
    body["ConsistentRead"] = chance(50);
  }
  body["ExpressionAttributeValues"] = values;
  if (chance(50)) {
    body["Limit"] = static_cast<int>(below(5)) + 1;
  }
  if (chance(40)) {
    body["ScanIndexForward"] = chance(50);
  }
  return {"Query", body};
}

Question RandomRequests::scan() {
  json::object body = {{"TableName", chance(50) ? "jobs" : "rows"}};
  if (chance(40)) {
    body["FilterExpression"] = "attribute_exists(tags) OR attribute_exists(owner_id)";
  }
  if (chance(30)) {
    body["Select"] = "COUNT";
  }
  return {"Scan", body};
}

}  // namespace sluice::test::model
