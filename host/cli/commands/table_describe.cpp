#include "base/text/decimal.hpp"
#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/table_target.hpp"
#include "host/cli/views/output.hpp"
#include "host/cost/prices.hpp"

namespace sluice::cli {

namespace {

using dynamo::IndexDescription;
using dynamo::TableDescription;

constexpr int kMoneyDigits = 6;

void text_or_null(JsonWriter& json, std::string_view name, const std::string& text) {
  json.key(name);
  if (text.empty()) {
    json.null();
  } else {
    json.value(text);
  }
}

void write_capacity(JsonWriter& json, const TableDescription& table) {
  const bool provisioned = table.billing_mode == "PROVISIONED";
  json.member("billing_mode", table.billing_mode);
  for (const auto& [name, units] : {std::pair("read_units", table.read_units), {"write_units", table.write_units}}) {
    json.key(name);
    if (provisioned) {
      json.value(units);
    } else {
      json.null();
    }
  }
}

void write_index(JsonWriter& json, const IndexDescription& index) {
  json.begin_object();
  json.member("name", index.name);
  json.member("status", index.status);
  text_or_null(json, "hash_key", index.hash_key);
  text_or_null(json, "range_key", index.range_key);
  json.member("projection", index.projection);
  json.member("item_count", index.item_count);
  json.member("size_bytes", index.size_bytes);
  json.end_object();
}

/// What lies in the table and in its indexes, for a month.
double storage_price(const TableDescription& table, const cost::Prices& prices) {
  auto bytes = static_cast<double>(table.size_bytes);
  for (const IndexDescription& index : table.indexes) {
    bytes += static_cast<double>(index.size_bytes);
  }
  return prices.of_storage(bytes);
}

std::string as_json(const TableDescription& table, const std::string& region, const cost::Prices& prices) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.member("table", table.name);
  json.member("region", region);
  json.member("arn", table.arn);
  json.member("status", table.status);
  write_capacity(json, table);
  json.member("table_class", table.table_class.empty() ? std::string("STANDARD") : table.table_class);
  json.member("deletion_protection", table.deletion_protection);
  text_or_null(json, "stream", table.stream_view_type);
  json.member("item_count", table.item_count);
  json.member("size_bytes", table.size_bytes);
  json.key("storage_per_month");
  json.word(fixed_decimal(storage_price(table, prices), kMoneyDigits));
  json.member("currency", prices.currency());
  json.member("as_of", prices.config().as_of);
  text_or_null(json, "hash_key", table.hash_key);
  text_or_null(json, "range_key", table.range_key);
  json.key("attribute_types");
  json.begin_object();
  for (const auto& [name, type] : table.attribute_types) {
    json.member(name, type);
  }
  json.end_object();
  json.key("indexes");
  json.begin_array();
  for (const IndexDescription& index : table.indexes) {
    write_index(json, index);
  }
  json.end_array();
  json.end_object();
  return json.take_line();
}

std::string key_text(const TableDescription& table, const std::string& attribute) {
  const auto type = table.attribute_types.find(attribute);
  return attribute + (type == table.attribute_types.end() ? "" : " (" + type->second + ")");
}

std::string keys_text(const TableDescription& table, const std::string& hash_key, const std::string& range_key) {
  return key_text(table, hash_key) + (range_key.empty() ? "" : ", " + key_text(table, range_key));
}

std::string capacity_text(const TableDescription& table) {
  if (table.billing_mode != "PROVISIONED") {
    return table.billing_mode;
  }
  return table.billing_mode + ", " + std::to_string(table.read_units) + " read and " +
         std::to_string(table.write_units) + " write units";
}

std::string as_text(const TableDescription& table, const std::string& region, const cost::Prices& prices,
                    bool colours) {
  const auto state = [](const std::string& status) {
    return TextTable::Cell(status, status == "ACTIVE" ? Colour::green : Colour::yellow);
  };
  TextTable facts({{}, {}}, colours);
  facts.add({"table", table.name});
  facts.add({"region", region});
  facts.add({"arn", table.arn});
  facts.add({"status", state(table.status)});
  facts.add({"keys", keys_text(table, table.hash_key, table.range_key)});
  facts.add({"billing", capacity_text(table)});
  facts.add({"class", table.table_class.empty() ? std::string("STANDARD") : table.table_class});
  facts.add({"deletion protection", table.deletion_protection ? TextTable::Cell("on", Colour::green)
                                                              : TextTable::Cell("off", Colour::yellow)});
  facts.add({"stream", table.stream_view_type.empty() ? "none" : table.stream_view_type});
  facts.add({"items", std::to_string(table.item_count)});
  facts.add({"bytes", std::to_string(table.size_bytes)});
  facts.add(
      {"storage", prices.text(storage_price(table, prices)) + " a month, indexes included (" + prices.origin() + ")"});
  TextTable indexes({{"INDEX"}, {"STATUS"}, {"KEYS"}, {"PROJECTION"}, {"ITEMS", true}, {"BYTES", true}}, colours);
  for (const IndexDescription& index : table.indexes) {
    indexes.add({index.name, state(index.status), keys_text(table, index.hash_key, index.range_key), index.projection,
                 std::to_string(index.item_count), std::to_string(index.size_bytes)});
  }
  const std::string rows = indexes.take();
  return facts.take() + (rows.empty() ? "" : "\n" + rows);
}

Exit describe(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(target, find_table(arguments));
  std::string region;
  SLUICE_TRY(table, describe_table(*target, region));
  const cost::Prices prices(target->place.host().cost);
  console.out(*output == Output::text ? as_text(*table, region, prices, console.output_has_colour())
                                      : as_json(*table, region, prices));
  return Exit::ok();
}

}  // namespace

Command table_describe_command() {
  return {
      .name = "table describe",
      .group = "Tables",
      .summary = "Show a table's keys, indexes, capacity and size",
      .usage = "(--queue QUEUE | --table TABLE) [OPTION]...",
      .description =
          "Items and bytes are DynamoDB's own count, which is up to six hours old; `sluice stats` counts now. "
          "Storage is what they cost a month by [cost] of the host file, without what AWS gives away. The "
          "time to live of a table is not part of DynamoDB's description; queues do without.",
      .flags = with_table_flags(output_flags()),
      .examples =
          "sluice table describe --queue orders --output text\n"
          "sluice table describe --table orders | jq .item_count",
      .run = describe,
  };
}

}  // namespace sluice::cli
