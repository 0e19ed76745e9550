#include <algorithm>
#include <utility>

#include "dynamo/codec/json_codec.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/reading.hpp"

namespace sluice::test::model {
namespace {

bool filters_on_key(const Condition& condition, const Bindings& bindings, const KeySchema& schema, std::string& name) {
  for (const Operand& operand : condition.operands) {
    if (operand.kind == Operand::Kind::path && schema.is_key(bindings.name_of(operand.path.front()))) {
      name = bindings.name_of(operand.path.front());
      return true;
    }
  }
  return std::any_of(condition.children.begin(), condition.children.end(),
                     [&](const Condition& child) { return filters_on_key(child, bindings, schema, name); });
}

std::string page_text(Context& context, const SelectedPage& page, const Expressions& expressions, bool count_only,
                      const std::string& capacity_mode) {
  std::string out = "{";
  if (!count_only) {
    out += "\"Items\":[";
    bool first = true;
    for (const RecordPtr& record : page.records) {
      out += first ? "" : ",";
      first = false;
      if (const auto* paths = expressions.projection()) {
        dynamo::append_item(out, projected(*paths, record->item, expressions.bindings()));
      } else {
        dynamo::append_item(out, record->item);
      }
    }
    out += "],";
  }
  out += "\"Count\":" + std::to_string(page.records.size()) + ",\"ScannedCount\":" + std::to_string(page.scanned);
  if (!page.last_key.empty()) {
    out += ",\"LastEvaluatedKey\":";
    dynamo::append_item(out, page.last_key);
  }
  context.usage.append_json(out, capacity_mode, false);
  return out + "}";
}

void check_projection(const Selection& selection, const Expressions& expressions) {
  if (selection.index.empty() || expressions.projection() == nullptr) {
    return;
  }
  const SecondaryIndex& index = selection.table->index(selection.index);
  if (index.holds_all()) {
    return;
  }
  for (const Path& path : *expressions.projection()) {
    const std::string& name = expressions.bindings().name_of(path.front());
    if (!index.schema().is_key(name) && !selection.table->schema.is_key(name) && index.included().count(name) == 0) {
      throw invalid_values("Global secondary index " + selection.index + " does not project [" + name + "]");
    }
  }
}

std::string read(Context& context, const Arguments& arguments, bool is_query) {
  const Expressions expressions(arguments, context.cache);
  Selection selection;
  selection.start = arguments.item("ExclusiveStartKey").value_or(Item{});
  selection.table = &table_of(context, arguments, is_query ? "Query" : "Scan");
  selection.index = arguments.text("IndexName");
  selection.consistent = arguments.flag("ConsistentRead");
  selection.limit = arguments.integer("Limit");
  selection.forward = !arguments.has("ScanIndexForward") || arguments.flag("ScanIndexForward");
  const Bindings bindings = expressions.bindings();
  if (is_query) {
    if (expressions.key_condition() == nullptr) {
      throw validation(
          "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.");
    }
    read_key_condition(*expressions.key_condition(), bindings, selection);
  }
  const std::string select = arguments.text("Select");
  if (!select.empty() && select != "COUNT" && select != "ALL_ATTRIBUTES") {
    throw validation("the model of DynamoDB does not know Select " + select);
  }
  if (const Condition* filter = expressions.filter()) {
    std::string name;
    if (is_query && filters_on_key(*filter, bindings, selection.schema(), name)) {
      throw validation("Filter Expression can only contain non-primary key attributes: Primary key attribute: " + name);
    }
    selection.passes = [filter, bindings](const Item& item) { return holds(*filter, item, bindings); };
  }
  check_projection(selection, expressions);
  const SelectedPage page = read_page(context, selection);
  return page_text(context, page, expressions, select == "COUNT", arguments.text("ReturnConsumedCapacity"));
}

}  // namespace

std::string query(Context& context, const boost::json::value& request) {
  return read(context,
              Arguments(request,
                        {"TableName", "IndexName", "KeyConditionExpression", "FilterExpression", "ProjectionExpression",
                         "ExpressionAttributeNames", "ExpressionAttributeValues", "Limit", "ConsistentRead",
                         "ScanIndexForward", "Select", "ExclusiveStartKey", "ReturnConsumedCapacity"}),
              true);
}

std::string scan(Context& context, const boost::json::value& request) {
  return read(context,
              Arguments(request, {"TableName", "IndexName", "FilterExpression", "ProjectionExpression",
                                  "ExpressionAttributeNames", "ExpressionAttributeValues", "Limit", "ConsistentRead",
                                  "Select", "ExclusiveStartKey", "ReturnConsumedCapacity"}),
              false);
}

}  // namespace sluice::test::model
