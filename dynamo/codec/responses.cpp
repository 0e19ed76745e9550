#include "dynamo/codec/responses.hpp"

#include <algorithm>
#include <utility>

#include "base/text/json_reader.hpp"
#include "dynamo/codec/error_response.hpp"
#include "dynamo/codec/response_reader.hpp"

namespace sluice::dynamo {
namespace {

// The units of one object that reports them. CapacityUnits is the total of table and indexes, which the other members
// only break down; they count only where the total is missing.
struct Units {
  std::optional<double> total;
  std::optional<double> read;
  std::optional<double> write;
  double parts = 0;
};

void read_part(JsonReader& reader, double& sum) {
  double units = 0;
  read_members(reader, [&](std::string_view name) { return took(reader, name, {{"CapacityUnits", &units}}); });
  sum += units;
}

void read_capacity(JsonReader& reader, Usage usage, Capacity& capacity) {
  Units units;
  read_members(reader, [&](std::string_view name) {
    if (name == "CapacityUnits" || name == "ReadCapacityUnits" || name == "WriteCapacityUnits") {
      auto& of_kind = name.front() == 'C' ? units.total : name.front() == 'R' ? units.read : units.write;
      return took_value(reader, of_kind.emplace());
    }
    if (name == "Table") {
      read_part(reader, units.parts);
      return true;
    }
    if (name == "GlobalSecondaryIndexes" || name == "LocalSecondaryIndexes") {
      read_members(reader, [&](std::string_view) {
        read_part(reader, units.parts);
        return true;
      });
      return true;
    }
    return false;
  });
  if (units.read || units.write) {
    capacity += Capacity{units.read.value_or(0), units.write.value_or(0)};
    return;
  }
  (usage == Usage::read ? capacity.read : capacity.write) += units.total.value_or(units.parts);
}

// One object, or one for each table of a batch.
bool took_capacity(JsonReader& reader, Usage usage, Capacity& capacity) {
  if (reader.peek() != JsonReader::Kind::array) {
    read_capacity(reader, usage, capacity);
    return true;
  }
  read_elements(reader, [&] {
    read_capacity(reader, usage, capacity);
    return !reader.failed();
  });
  return true;
}

Error statement_error(JsonReader& reader, Item& item) {
  std::string code;
  std::string message;
  read_members(reader, [&](std::string_view name) {
    return took(reader, name, {{"Code", &code}, {"Message", &message}, {"Item", &item}});
  });
  Error error(error_kind(code, 0), one_line(code + ": " + message));
  error.exception_name = std::move(code);
  error.http_status = 200;
  error.outcome_unknown = may_have_taken_effect(error.exception_name, 0);
  return error;
}

bool read_statement_result(JsonReader& reader, StatementResult& result) {
  return read_members(reader, [&](std::string_view name) {
    if (name == "Error") {
      result.error = statement_error(reader, result.item);
      return true;
    }
    return took(reader, name, {{"Item", &result.item}});
  });
}

// {"table": [items]} of a BatchGetItem.
bool took_tables(JsonReader& reader, std::vector<Item>& items) {
  read_members(reader, [&](std::string_view) { return took_value(reader, items); });
  return true;
}

// {"table": {"Keys": [keys]}} of a BatchGetItem.
bool took_unprocessed(JsonReader& reader, std::vector<Item>& keys) {
  read_members(reader, [&](std::string_view) {
    read_members(reader, [&](std::string_view name) { return took(reader, name, {{"Keys", &keys}}); });
    return true;
  });
  return true;
}

// {"table": [{"PutRequest": {"Item": item}}]} of a BatchWriteItem.
bool took_unwritten(JsonReader& reader, std::vector<Item>& items) {
  const auto took_put = [&](std::string_view name) {
    return name == "PutRequest" && read_members(reader, [&](std::string_view member) {
             return member == "Item" && took_value(reader, items.emplace_back());
           });
  };
  read_members(reader, [&](std::string_view) {
    read_elements(reader, [&] { return read_members(reader, took_put); });
    return true;
  });
  return true;
}

/// An array of objects that each name an attribute and, under `kind`, what it is.
template <typename Keep>
bool took_attributes(JsonReader& reader, std::string_view kind, Keep keep) {
  read_elements(reader, [&] {
    std::string attribute;
    std::string is;
    read_members(reader, [&](std::string_view name) {
      return took(reader, name, {{"AttributeName", &attribute}, {kind, &is}});
    });
    keep(attribute, is);
    return !reader.failed();
  });
  return true;
}

bool took_key_schema(JsonReader& reader, std::string& hash_key, std::string& range_key) {
  return took_attributes(reader, "KeyType", [&](const std::string& attribute, const std::string& type) {
    (type == "HASH" ? hash_key : range_key) = attribute;
  });
}

/// Takes these members of an object.
bool took_inside(JsonReader& reader, std::initializer_list<Member> members) {
  read_members(reader, [&](std::string_view name) { return took(reader, name, members); });
  return true;
}

bool took_stream(JsonReader& reader, TableDescription& table) {
  bool enabled = false;
  std::string view_type;
  took_inside(reader, {{"StreamEnabled", &enabled}, {"StreamViewType", &view_type}});
  if (enabled) {
    table.stream_view_type = view_type;
  }
  return true;
}

bool read_index(JsonReader& reader, IndexDescription& index) {
  return read_members(reader, [&](std::string_view name) {
    if (name == "KeySchema") {
      return took_key_schema(reader, index.hash_key, index.range_key);
    }
    if (name == "Projection") {
      return took_inside(reader, {{"ProjectionType", &index.projection}});
    }
    return took(reader, name,
                {{"IndexName", &index.name},
                 {"IndexStatus", &index.status},
                 {"Backfilling", &index.backfilling},
                 {"ItemCount", &index.item_count},
                 {"IndexSizeBytes", &index.size_bytes}});
  });
}

bool took_table_member(JsonReader& reader, std::string_view name, TableDescription& table) {
  if (name == "KeySchema") {
    return took_key_schema(reader, table.hash_key, table.range_key);
  }
  if (name == "AttributeDefinitions") {
    return took_attributes(reader, "AttributeType", [&table](const std::string& attribute, const std::string& type) {
      table.attribute_types[attribute] = type;
    });
  }
  if (name == "GlobalSecondaryIndexes") {
    read_elements(reader, [&] { return read_index(reader, table.indexes.emplace_back()); });
    return true;
  }
  if (name == "BillingModeSummary") {
    return took_inside(reader, {{"BillingMode", &table.billing_mode}});
  }
  if (name == "TableClassSummary") {
    return took_inside(reader, {{"TableClass", &table.table_class}});
  }
  if (name == "ProvisionedThroughput") {
    return took_inside(reader, {{"ReadCapacityUnits", &table.read_units}, {"WriteCapacityUnits", &table.write_units}});
  }
  if (name == "StreamSpecification") {
    return took_stream(reader, table);
  }
  return took(reader, name,
              {{"TableName", &table.name},
               {"TableStatus", &table.status},
               {"TableArn", &table.arn},
               {"ItemCount", &table.item_count},
               {"TableSizeBytes", &table.size_bytes},
               {"DeletionProtectionEnabled", &table.deletion_protection}});
}

}  // namespace

Usage usage_of(std::span<const Statement> statements) {
  if (statements.empty()) {
    return Usage::read;
  }
  std::string_view text = statements.front().text;
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  constexpr std::string_view kSelect = "select";
  const bool reads =
      std::equal(kSelect.begin(), kSelect.end(), text.begin(), text.begin() + std::min(kSelect.size(), text.size()),
                 [](char a, char b) { return a == (b | 0x20); });
  return reads ? Usage::read : Usage::write;
}

Result<Page> decode_page(std::string_view body) {
  return decode_response<Page>(body, "page of items", [](JsonReader& reader, Page& page, std::string_view name) {
    return took(reader, name,
                {{"Items", &page.items},
                 {"Count", &page.count},
                 {"ScannedCount", &page.scanned_count},
                 {"LastEvaluatedKey", &page.last_evaluated_key}}) ||
           (name == "ConsumedCapacity" && took_capacity(reader, Usage::read, page.capacity));
  });
}

Result<ItemOutput> decode_item_output(std::string_view body, Usage usage) {
  return decode_response<ItemOutput>(
      body, "answer", [usage](JsonReader& reader, ItemOutput& output, std::string_view name) {
        return took(reader, name, {{"Item", &output.item}, {"Attributes", &output.item}}) ||
               (name == "ConsumedCapacity" && took_capacity(reader, usage, output.capacity));
      });
}

Result<BatchStatementOutput> decode_batch_execute(std::string_view body, std::size_t statements, Usage usage) {
  constexpr std::string_view kWhat = "answer to a batch of statements";
  auto output = decode_response<BatchStatementOutput>(
      body, kWhat, [usage](JsonReader& reader, BatchStatementOutput& batch, std::string_view name) {
        if (name == "Responses") {
          read_elements(reader, [&] { return read_statement_result(reader, batch.results.emplace_back()); });
          return true;
        }
        return name == "ConsumedCapacity" && took_capacity(reader, usage, batch.capacity);
      });
  if (output && output->results.size() != statements) {
    return unreadable(kWhat, "it holds " + std::to_string(output->results.size()) + " results for " +
                                 std::to_string(statements) + " statements");
  }
  return output;
}

Result<BatchOutput> decode_batch(std::string_view body, Usage usage) {
  return decode_response<BatchOutput>(
      body, usage == Usage::read ? "answer to BatchGetItem" : "answer to BatchWriteItem",
      [usage](JsonReader& reader, BatchOutput& output, std::string_view name) {
        if (name == "Responses") {
          return took_tables(reader, output.items);
        }
        if (name == "UnprocessedKeys") {
          return took_unprocessed(reader, output.left);
        }
        if (name == "UnprocessedItems") {
          return took_unwritten(reader, output.left);
        }
        return name == "ConsumedCapacity" && took_capacity(reader, usage, output.capacity);
      });
}

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
  const auto took_description = [](JsonReader& reader, TimeToLive& output, std::string_view name) {
    bool enabled = false;
    if (name == "Enabled" && took_value(reader, enabled)) {
      output.status = enabled ? "ENABLING" : "DISABLING";
      return true;
    }
    return took(reader, name, {{"TimeToLiveStatus", &output.status}, {"AttributeName", &output.attribute}});
  };
  return decode_response<TimeToLive>(
      body, "description of a table's TTL", [&](JsonReader& reader, TimeToLive& output, std::string_view name) {
        const bool described = name == "TimeToLiveDescription" || name == "TimeToLiveSpecification";
        if (described) {
          read_members(reader, [&](std::string_view inner) { return took_description(reader, output, inner); });
        }
        return described;
      });
}

std::vector<CancellationReason> decode_cancellation(std::string_view body) {
  std::vector<CancellationReason> reasons;
  JsonReader reader(body, kMaxJsonDepth, JsonReader::BadText::replace);
  const bool read = read_members(reader, [&](std::string_view name) {
    if (name != "CancellationReasons" || reader.peek() != JsonReader::Kind::array) {
      return false;
    }
    return read_elements(reader, [&] {
      CancellationReason& reason = reasons.emplace_back();
      return took_inside(reader, {{"Message", &reason.message}, {"Code", &reason.code}, {"Item", &reason.item}}) &&
             !reader.failed();
    });
  });
  if (!read || !reader.finish()) {
    reasons.clear();
  }
  for (CancellationReason& reason : reasons) {
    reason.message = one_line(reason.message);
  }
  return reasons;
}

}  // namespace sluice::dynamo
