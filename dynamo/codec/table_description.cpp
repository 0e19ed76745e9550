#include "base/text/json_reader.hpp"
#include "dynamo/codec/response_reader.hpp"
#include "dynamo/codec/responses.hpp"

namespace sluice::dynamo {

namespace {

bool took_key_schema(JsonReader& reader, std::string& hash_key, std::string& range_key) {
  read_elements(reader, [&] {
    std::string attribute;
    std::string type;
    read_members(reader, [&](std::string_view name) {
      if (name == "AttributeName") {
        return took_string(reader, attribute);
      }
      return name == "KeyType" && took_string(reader, type);
    });
    (type == "HASH" ? hash_key : range_key) = attribute;
    return !reader.failed();
  });
  return true;
}

bool took_attribute_types(JsonReader& reader, std::map<std::string, std::string>& types) {
  read_elements(reader, [&] {
    std::string attribute;
    std::string type;
    read_members(reader, [&](std::string_view name) {
      if (name == "AttributeName") {
        return took_string(reader, attribute);
      }
      return name == "AttributeType" && took_string(reader, type);
    });
    types[attribute] = type;
    return !reader.failed();
  });
  return true;
}

// Takes the one member `wanted` of an object.
bool took_inner_string(JsonReader& reader, std::string_view wanted, std::string& text) {
  read_members(reader, [&](std::string_view name) { return name == wanted && took_string(reader, text); });
  return true;
}

bool took_provisioned_throughput(JsonReader& reader, TableDescription& table) {
  read_members(reader, [&](std::string_view name) {
    if (name == "ReadCapacityUnits") {
      return took_number(reader, table.read_units);
    }
    return name == "WriteCapacityUnits" && took_number(reader, table.write_units);
  });
  return true;
}

bool took_stream(JsonReader& reader, TableDescription& table) {
  bool enabled = false;
  std::string view_type;
  read_members(reader, [&](std::string_view name) {
    if (name == "StreamEnabled") {
      return took_bool(reader, enabled);
    }
    return name == "StreamViewType" && took_string(reader, view_type);
  });
  if (enabled) {
    table.stream_view_type = view_type;
  }
  return true;
}

bool read_index(JsonReader& reader, IndexDescription& index) {
  return read_members(reader, [&](std::string_view name) {
    if (name == "IndexName") {
      return took_string(reader, index.name);
    }
    if (name == "IndexStatus") {
      return took_string(reader, index.status);
    }
    if (name == "KeySchema") {
      return took_key_schema(reader, index.hash_key, index.range_key);
    }
    if (name == "Backfilling") {
      return took_bool(reader, index.backfilling);
    }
    if (name == "ItemCount") {
      return took_number(reader, index.item_count);
    }
    if (name == "IndexSizeBytes") {
      return took_number(reader, index.size_bytes);
    }
    return name == "Projection" && took_inner_string(reader, "ProjectionType", index.projection);
  });
}

bool took_size_or_setting(JsonReader& reader, std::string_view name, TableDescription& table) {
  if (name == "ItemCount") {
    return took_number(reader, table.item_count);
  }
  if (name == "TableSizeBytes") {
    return took_number(reader, table.size_bytes);
  }
  if (name == "DeletionProtectionEnabled") {
    return took_bool(reader, table.deletion_protection);
  }
  if (name == "BillingModeSummary") {
    return took_inner_string(reader, "BillingMode", table.billing_mode);
  }
  if (name == "TableClassSummary") {
    return took_inner_string(reader, "TableClass", table.table_class);
  }
  if (name == "ProvisionedThroughput") {
    return took_provisioned_throughput(reader, table);
  }
  return name == "StreamSpecification" && took_stream(reader, table);
}

bool took_table_member(JsonReader& reader, std::string_view name, TableDescription& table) {
  if (name == "TableName") {
    return took_string(reader, table.name);
  }
  if (name == "TableStatus") {
    return took_string(reader, table.status);
  }
  if (name == "TableArn") {
    return took_string(reader, table.arn);
  }
  if (name == "KeySchema") {
    return took_key_schema(reader, table.hash_key, table.range_key);
  }
  if (name == "AttributeDefinitions") {
    return took_attribute_types(reader, table.attribute_types);
  }
  if (name == "GlobalSecondaryIndexes") {
    read_elements(reader, [&] { return read_index(reader, table.indexes.emplace_back()); });
    return true;
  }
  return took_size_or_setting(reader, name, table);
}

}  // namespace

Result<TableDescription> decode_table(std::string_view body) {
  constexpr std::string_view kWhat = "description of a table";
  auto table = decode_response<TableDescription>(
      body, kWhat, [](JsonReader& reader, TableDescription& output, std::string_view name) {
        if (name != "Table" && name != "TableDescription") {
          return false;
        }
        read_members(reader, [&](std::string_view inner) { return took_table_member(reader, inner, output); });
        return true;
      });
  if (table && table->name.empty()) {
    return unreadable(kWhat, "it names no table");
  }
  if (table && table->billing_mode.empty()) {
    // AWS leaves the summary out for a table that never was on demand.
    table->billing_mode = "PROVISIONED";
  }
  return table;
}

Result<TimeToLive> decode_time_to_live(std::string_view body) {
  return decode_response<TimeToLive>(body, "description of a table's TTL",
                                     [](JsonReader& reader, TimeToLive& output, std::string_view name) {
                                       if (name != "TimeToLiveDescription" && name != "TimeToLiveSpecification") {
                                         return false;
                                       }
                                       read_members(reader, [&](std::string_view inner) {
                                         if (inner == "TimeToLiveStatus") {
                                           return took_string(reader, output.status);
                                         }
                                         if (inner == "AttributeName") {
                                           return took_string(reader, output.attribute);
                                         }
                                         bool enabled = false;
                                         if (inner == "Enabled" && took_bool(reader, enabled)) {
                                           output.status = enabled ? "ENABLING" : "DISABLING";
                                           return true;
                                         }
                                         return false;
                                       });
                                       return true;
                                     });
}

}  // namespace sluice::dynamo
