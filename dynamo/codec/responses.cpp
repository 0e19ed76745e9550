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

bool took_units(JsonReader& reader, std::optional<double>& units) { return took_number(reader, units.emplace()); }

void read_part(JsonReader& reader, double& sum) {
  double units = 0;
  read_members(reader, [&](std::string_view name) { return name == "CapacityUnits" && took_number(reader, units); });
  sum += units;
}

void read_capacity(JsonReader& reader, Usage usage, Capacity& capacity) {
  Units units;
  read_members(reader, [&](std::string_view name) {
    if (name == "CapacityUnits") {
      return took_units(reader, units.total);
    }
    if (name == "ReadCapacityUnits") {
      return took_units(reader, units.read);
    }
    if (name == "WriteCapacityUnits") {
      return took_units(reader, units.write);
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
    if (name == "Code") {
      return took_string(reader, code);
    }
    if (name == "Message") {
      return took_string(reader, message);
    }
    return name == "Item" && took_item(reader, item);
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
    return name == "Item" && took_item(reader, result.item);
  });
}

// {"table": [items]} of a BatchGetItem.
bool took_tables(JsonReader& reader, std::vector<Item>& items) {
  read_members(reader, [&](std::string_view) { return took_items(reader, items); });
  return true;
}

// {"table": {"Keys": [keys]}} of a BatchGetItem.
bool took_unprocessed(JsonReader& reader, std::vector<Item>& keys) {
  read_members(reader, [&](std::string_view) {
    read_members(reader, [&](std::string_view name) { return name == "Keys" && took_items(reader, keys); });
    return true;
  });
  return true;
}

// {"table": [{"PutRequest": {"Item": item}}]} of a BatchWriteItem.
bool took_unwritten(JsonReader& reader, std::vector<Item>& items) {
  const auto took_put = [&](std::string_view name) {
    return name == "PutRequest" && read_members(reader, [&](std::string_view member) {
             return member == "Item" && took_item(reader, items.emplace_back());
           });
  };
  read_members(reader, [&](std::string_view) {
    read_elements(reader, [&] { return read_members(reader, took_put); });
    return true;
  });
  return true;
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
    if (name == "Items") {
      return took_items(reader, page.items);
    }
    if (name == "Count") {
      return took_number(reader, page.count);
    }
    if (name == "ScannedCount") {
      return took_number(reader, page.scanned_count);
    }
    if (name == "LastEvaluatedKey") {
      return took_item(reader, page.last_evaluated_key);
    }
    return name == "ConsumedCapacity" && took_capacity(reader, Usage::read, page.capacity);
  });
}

Result<ItemOutput> decode_item_output(std::string_view body, Usage usage) {
  return decode_response<ItemOutput>(
      body, "answer", [usage](JsonReader& reader, ItemOutput& output, std::string_view name) {
        if (name == "Item" || name == "Attributes") {
          return took_item(reader, output.item);
        }
        return name == "ConsumedCapacity" && took_capacity(reader, usage, output.capacity);
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

Result<BatchGetOutput> decode_batch_get(std::string_view body) {
  return decode_response<BatchGetOutput>(
      body, "answer to BatchGetItem", [](JsonReader& reader, BatchGetOutput& output, std::string_view name) {
        if (name == "Responses") {
          return took_tables(reader, output.items);
        }
        if (name == "UnprocessedKeys") {
          return took_unprocessed(reader, output.unprocessed_keys);
        }
        return name == "ConsumedCapacity" && took_capacity(reader, Usage::read, output.capacity);
      });
}

Result<BatchPutOutput> decode_batch_put(std::string_view body) {
  return decode_response<BatchPutOutput>(
      body, "answer to BatchWriteItem", [](JsonReader& reader, BatchPutOutput& output, std::string_view name) {
        if (name == "UnprocessedItems") {
          return took_unwritten(reader, output.unprocessed_items);
        }
        return name == "ConsumedCapacity" && took_capacity(reader, Usage::write, output.capacity);
      });
}

}  // namespace sluice::dynamo
