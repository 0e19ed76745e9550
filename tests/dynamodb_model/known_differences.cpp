#include "tests/dynamodb_model/known_differences.hpp"

#include <algorithm>

namespace sluice::test::model {

namespace json = boost::json;

namespace {

Question question(const char* operation, const char* body) { return {operation, json::parse(body).as_object()}; }

Question statements(std::initializer_list<const char*> texts) {
  json::array all;
  for (const char* text : texts) {
    all.push_back(json::object{{"Statement", text}});
  }
  return {"BatchExecuteStatement", {{"Statements", all}, {"ReturnConsumedCapacity", "TOTAL"}}};
}

std::string big_item() {
  return R"({"TableName":"jobs","Item":{"id":{"S":"big"},"data":{"S":")" + std::string(9000, 'x') + R"("}}})";
}

Reaction without(Reaction reaction, const char* member) {
  reaction.body.erase(member);
  return reaction;
}

bool has_failed_statement(const Reaction& reaction) {
  const auto* responses = reaction.body.if_contains("Responses");
  return responses != nullptr && responses->is_array() &&
         std::any_of(responses->as_array().begin(), responses->as_array().end(),
                     [](const json::value& response) { return response.as_object().contains("Error"); });
}

// Lists whose order means nothing.
void sort_unordered(const Question& asked, json::object& body) {
  const auto sort = [](json::value& list) {
    std::sort(list.as_array().begin(), list.as_array().end(),
              [](const json::value& a, const json::value& b) { return text_of(a) < text_of(b); });
  };
  if (asked.operation == "Scan" && body.contains("Items")) {
    sort(body.at("Items"));
  }
  if (asked.operation == "BatchGetItem" && body.contains("Responses")) {
    for (auto& table : body.at("Responses").as_object()) {
      sort(table.value());
    }
  }
}

// Texts of errors are for people.
void drop_messages(json::value& value) {
  if (auto* array = value.if_array()) {
    for (json::value& element : *array) {
      drop_messages(element);
    }
  } else if (auto* object = value.if_object(); object != nullptr && object->contains("Code")) {
    object->erase("Message");
  } else if (object != nullptr) {
    for (auto& member : *object) {
      drop_messages(member.value());
    }
  }
}

}  // namespace

bool same(const Question& asked, const Reaction& model, const Reaction& emulator) {
  json::value a = model.body;
  json::value b = emulator.body;
  sort_unordered(asked, a.as_object());
  sort_unordered(asked, b.as_object());
  drop_messages(a);
  drop_messages(b);
  return model.status == emulator.status && model.error == emulator.error && text_of(a) == text_of(b);
}

const std::vector<KnownDifference>& known_differences() {
  static const std::vector<KnownDifference> all = {
      {"units of failed statements",
       "it charges a unit for a statement that is wrong in itself, and leaves failed ones out of the table's part",
       {statements({R"(INSERT INTO "jobs" VALUE {'id':'a'})", R"(DELETE FROM "jobs" WHERE "version"=1)"})},
       [](const Question& asked, const Reaction& model, const Reaction& emulator) {
         return asked.operation == "BatchExecuteStatement" && has_failed_statement(model) &&
                same(asked, without(model, "ConsumedCapacity"), without(emulator, "ConsumedCapacity"));
       }},
      {"the key as the old item",
       "an UpdateItem that makes the item answers ALL_OLD with the key; DynamoDB has no old item to show",
       {question("UpdateItem", R"({"TableName":"jobs","Key":{"id":{"S":"new"}},"UpdateExpression":"REMOVE gone",
                                   "ReturnValues":"ALL_OLD"})")},
       [](const Question& asked, const Reaction& model, const Reaction& emulator) {
         return asked.operation == "UpdateItem" && model.status == 200 && !model.body.contains("Attributes") &&
                same(asked, model, without(emulator, "Attributes"));
       }},
      {"placeholders looked at too late",
       "a write with a placeholder that nobody uses fails its condition first",
       {question("PutItem",
                 R"--({"TableName":"jobs","Item":{"id":{"S":"a"}},"ConditionExpression":"attribute_exists(id)",
                                "ExpressionAttributeNames":{"#unused":"x"}})--")},
       [](const Question&, const Reaction& model, const Reaction& emulator) {
         return model.error == "ValidationException" &&
                model.message.find("unused in expressions") != std::string::npos &&
                emulator.error == "ConditionalCheckFailedException";
       }},
      {"units of what is shown",
       "a GetItem is charged for the attributes that it asks for; DynamoDB charges for the item",
       {question("PutItem", big_item().c_str()),
        question("GetItem", R"({"TableName":"jobs","Key":{"id":{"S":"big"}},"ProjectionExpression":"id",
                                "ReturnConsumedCapacity":"TOTAL"})")},
       [](const Question& asked, const Reaction& model, const Reaction& emulator) {
         return asked.operation == "GetItem" && asked.body.contains("ProjectionExpression") &&
                same(asked, without(model, "ConsumedCapacity"), without(emulator, "ConsumedCapacity"));
       }},
      {"bad expressions in transactions",
       "it finds them while it runs the transaction and cancels it; DynamoDB parses before and refuses the request",
       {question("TransactWriteItems", R"({"TransactItems":[{"Update":{"TableName":"jobs","Key":{"id":{"S":"a"}},
                                           "UpdateExpression":"REMOVE data"}}]})")},
       [](const Question& asked, const Reaction& model, const Reaction& emulator) {
         return asked.operation == "TransactWriteItems" && model.error == "ValidationException" &&
                emulator.error == "TransactionCanceledException" &&
                model.message.find("Expression") != std::string::npos;
       }},
      {"index keys emptied by transactions",
       "it refuses the request; DynamoDB cancels the transaction and names the update",
       {question("TransactWriteItems", R"({"TransactItems":[{"Update":{"TableName":"jobs","Key":{"id":{"S":"a"}},
                                           "UpdateExpression":"SET kind = :v",
                                           "ExpressionAttributeValues":{":v":{"S":""}}}}]})")},
       [](const Question& asked, const Reaction& model, const Reaction& emulator) {
         return asked.operation == "TransactWriteItems" && emulator.error == "ValidationException" &&
                model.error == "TransactionCanceledException" &&
                text_of(model.body).find("ValidationError") != std::string::npos;
       }},
      {"keys changed by transactions",
       "an Update in a transaction may set an attribute of the key",
       {question("TransactWriteItems", R"({"TransactItems":[{"Update":{"TableName":"jobs","Key":{"id":{"S":"a"}},
                                           "UpdateExpression":"SET id = :v",
                                           "ExpressionAttributeValues":{":v":{"S":"b"}}}}]})")},
       {}},
      {"keys changed by statements",
       "an UPDATE of PartiQL may set an attribute of the key",
       {statements({R"(INSERT INTO "jobs" VALUE {'id':'a'})"}),
        statements({R"(UPDATE "jobs" SET "id"='b' WHERE "id"='a')"})},
       {}},
      {"several elements removed at once",
       "it removes one after the other, so that the second index means another element",
       {question("PutItem", R"({"TableName":"jobs","Item":{"id":{"S":"a"},
                                "things":{"L":[{"S":"0"},{"S":"1"},{"S":"2"}]}}})"),
        question("UpdateItem", R"({"TableName":"jobs","Key":{"id":{"S":"a"}},"ReturnValues":"ALL_NEW",
                                   "UpdateExpression":"REMOVE things[0], things[2]"})")},
       {}},
      {"paths that overlap in transactions",
       "an Update in a transaction may set and remove the same attribute",
       {question("TransactWriteItems", R"({"TransactItems":[{"Update":{"TableName":"jobs","Key":{"id":{"S":"a"}},
                                           "UpdateExpression":"SET kind = :v REMOVE kind",
                                           "ExpressionAttributeValues":{":v":{"S":"b"}}}}]})")},
       {}},
      {"arithmetic in PartiQL",
       "SET \"a\" = \"a\" + 1 is no statement for it",
       {statements({R"(INSERT INTO "jobs" VALUE {'id':'sum','version':1})",
                    R"(UPDATE "jobs" SET "version"="version"+1 WHERE "id"='other')"}),
        statements({R"(UPDATE "jobs" SET "version"="version"+1 WHERE "id"='sum')"})},
       {}},
  };
  return all;
}

}  // namespace sluice::test::model
