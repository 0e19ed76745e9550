#include <set>
#include <utility>

#include "base/text/json_string.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/operations.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

KeySchema read_schema(const json::array& spelled, const std::map<std::string, std::string>& types,
                      std::set<std::string>& keys) {
  KeySchema schema;
  const auto attribute = [&](const std::string& name) -> KeyAttribute {
    const auto type = types.find(name);
    if (type == types.end()) {
      throw invalid_values("Some index key attributes are not defined in AttributeDefinitions. Keys: [" + name +
                           "], AttributeDefinitions: []");
    }
    keys.insert(name);
    return {name, type->second};
  };
  for (const json::value& part : spelled) {
    const Arguments arguments(part, {"AttributeName", "KeyType"});
    if (arguments.required_text("KeyType") == "HASH") {
      schema.hash = attribute(arguments.required_text("AttributeName"));
    } else {
      schema.range = attribute(arguments.required_text("AttributeName"));
    }
  }
  if (schema.hash.name.empty()) {
    throw validation("Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
  }
  return schema;
}

void read_index(Table& table, const json::value& spelled, std::set<std::string>& keys) {
  const Arguments arguments(spelled, {"IndexName", "KeySchema", "Projection", "ProvisionedThroughput"});
  const Arguments projection(arguments.required("Projection"), {"ProjectionType", "NonKeyAttributes"});
  std::set<std::string, std::less<>> included;
  if (projection.has("NonKeyAttributes")) {
    for (const json::value& name : projection.required_array("NonKeyAttributes")) {
      included.emplace(name.as_string().data(), name.as_string().size());
    }
  }
  KeySchema schema = read_schema(arguments.required_array("KeySchema"), table.attribute_types, keys);
  table.indexes.push_back(std::make_unique<SecondaryIndex>(arguments.required_text("IndexName"), std::move(schema),
                                                           table.schema, projection.text("ProjectionType", "ALL"),
                                                           std::move(included)));
}

void append_schema(std::string& out, const KeySchema& schema) {
  out += "\"KeySchema\":[{\"AttributeName\":";
  append_json_string(out, schema.hash.name);
  out += ",\"KeyType\":\"HASH\"}";
  if (schema.range) {
    out += ",{\"AttributeName\":";
    append_json_string(out, schema.range->name);
    out += ",\"KeyType\":\"RANGE\"}";
  }
  out += "]";
}

void append_count(std::string& out, const std::string& prefix, const Records& records) {
  std::size_t bytes = 0;
  for (const auto& [position, record] : records) {
    bytes += record->bytes;
  }
  out += ",\"" + prefix + "SizeBytes\":" + std::to_string(bytes) + ",\"ItemCount\":" + std::to_string(records.size());
}

void append_index(std::string& out, const Table& table, const SecondaryIndex& index, bool active) {
  out += "{\"IndexName\":";
  append_json_string(out, index.name());
  out += ",";
  append_schema(out, index.schema());
  out += ",\"Projection\":{\"ProjectionType\":\"" + index.projection() + "\"";
  if (!index.included().empty()) {
    out += ",\"NonKeyAttributes\":[";
    for (auto name = index.included().begin(); name != index.included().end(); ++name) {
      out += name == index.included().begin() ? "" : ",";
      append_json_string(out, *name);
    }
    out += "]";
  }
  out += std::string("},\"IndexStatus\":\"") + (active ? "ACTIVE" : "CREATING") + "\"";
  append_count(out, "Index", index.entries());
  out += ",\"IndexArn\":\"" + arn_of(table.name, index.name()) + "\"}";
}

std::string description(const char* member, const Table& table, SteadyTime now) {
  const bool active = table.active_at <= now;
  std::string out = std::string("{\"") + member + "\":{\"TableName\":";
  append_json_string(out, table.name);
  out += std::string(",\"TableStatus\":\"") + (active ? "ACTIVE" : "CREATING") + "\",\"AttributeDefinitions\":[";
  bool first = true;
  for (const auto& [name, type] : table.attribute_types) {
    out += first ? "{\"AttributeName\":" : ",{\"AttributeName\":";
    first = false;
    append_json_string(out, name);
    out += ",\"AttributeType\":\"" + type + "\"}";
  }
  out += "],";
  append_schema(out, table.schema);
  append_count(out, "Table", table.records);
  out += ",\"TableArn\":\"" + arn_of(table.name) + "\",\"DeletionProtectionEnabled\":";
  out += table.deletion_protection ? "true" : "false";
  out += ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":" + std::to_string(table.read_capacity) +
         ",\"WriteCapacityUnits\":" + std::to_string(table.write_capacity) + "}";
  if (!table.provisioned) {
    out += ",\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\"}";
  }
  if (!table.indexes.empty()) {
    out += ",\"GlobalSecondaryIndexes\":[";
    for (std::size_t i = 0; i < table.indexes.size(); ++i) {
      out += i == 0 ? "" : ",";
      append_index(out, table, *table.indexes[i], active);
    }
    out += "]";
  }
  return out + "}}";
}

}  // namespace

std::string create_table(Context& context, const json::value& request) {
  const Arguments arguments(request, {"TableName", "BillingMode", "AttributeDefinitions", "KeySchema",
                                      "GlobalSecondaryIndexes", "DeletionProtectionEnabled", "ProvisionedThroughput"});
  Table table;
  table.name = arguments.required_text("TableName");
  context.allow("CreateTable", table.name);
  if (context.database.tables().count(table.name) > 0) {
    throw Failure{"ResourceInUseException", "Table already exists: " + table.name, 400, ""};
  }
  for (const json::value& spelled : arguments.required_array("AttributeDefinitions")) {
    const Arguments definition(spelled, {"AttributeName", "AttributeType"});
    table.attribute_types.emplace(definition.required_text("AttributeName"), definition.required_text("AttributeType"));
  }
  std::set<std::string> keys;
  table.schema = read_schema(arguments.required_array("KeySchema"), table.attribute_types, keys);
  if (arguments.has("GlobalSecondaryIndexes")) {
    for (const json::value& spelled : arguments.required_array("GlobalSecondaryIndexes")) {
      read_index(table, spelled, keys);
    }
  }
  if (keys.size() != table.attribute_types.size()) {
    throw invalid_values(
        "Number of attributes in KeySchema does not exactly match number of attributes defined in "
        "AttributeDefinitions");
  }
  table.deletion_protection = arguments.flag("DeletionProtectionEnabled");
  table.provisioned = arguments.text("BillingMode", "PROVISIONED") == "PROVISIONED";
  if (table.provisioned) {
    const Arguments capacity(arguments.required("ProvisionedThroughput"), {"ReadCapacityUnits", "WriteCapacityUnits"});
    table.read_capacity = capacity.integer("ReadCapacityUnits").value_or(0);
    table.write_capacity = capacity.integer("WriteCapacityUnits").value_or(0);
  }
  table.active_at = context.database.now() + context.database.table_creation();
  const std::string name = table.name;
  const Table& made = context.database.tables().emplace(name, std::move(table)).first->second;
  return description("TableDescription", made, context.database.now());
}

std::string describe_table(Context& context, const json::value& request) {
  const Arguments arguments(request, {"TableName"});
  const std::string name = arguments.required_text("TableName");
  context.allow("DescribeTable", name);
  const auto found = context.database.tables().find(name);
  if (found == context.database.tables().end()) {
    throw Failure{"ResourceNotFoundException", "Requested resource not found: Table: " + name + " not found", 400, ""};
  }
  for (const auto& index : found->second.indexes) {
    index->advance(context.database.now());
  }
  return description("Table", found->second, context.database.now());
}

}  // namespace sluice::test::model
