#include "tests/support/dynamodb_model/storage.hpp"

#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

constexpr std::size_t kMaxHashBytes = 2048;
constexpr std::size_t kMaxRangeBytes = 1024;

// FNV-1a, with its bits mixed: partitions lie in an order that no caller can rely on.
std::uint64_t scatter_of(const std::string& bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  hash ^= hash >> 32;
  hash *= 0xD6E8FEB86659FD93ULL;
  return hash ^ (hash >> 32);
}

Failure no_match() { return validation("The provided key element does not match the schema"); }

void check_size(const AttributeValue& value, bool range) {
  const std::size_t most = range ? kMaxRangeBytes : kMaxHashBytes;
  if (!value.is<dynamo::Number>() && sort_bytes(value).size() > most) {
    throw invalid_values(range ? "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
                               : "Size of hashkey has exceeded the maximum size limit of2048 bytes");
  }
}

void check_not_empty(const KeyAttribute& key, const AttributeValue& value) {
  if (is_empty(value)) {
    throw validation(
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty " +
        std::string(value.is<std::string>() ? "string" : "binary") + " value. Key: " + key.name);
  }
}

void check_part_of_item(const KeyAttribute& key, const Item& item, bool range) {
  const auto found = item.find(key.name);
  if (found == item.end()) {
    throw invalid_values("Missing the key " + key.name + " in the item");
  }
  if (type_of(found->second) != key.type) {
    throw invalid_values("Type mismatch for key " + key.name + " expected: " + key.type +
                         " actual: " + std::string(type_of(found->second)));
  }
  check_not_empty(key, found->second);
  check_size(found->second, range);
}

void check_part_of_key(const KeyAttribute& key, const Item& given, bool range) {
  const auto found = given.find(key.name);
  if (found == given.end() || type_of(found->second) != key.type) {
    throw no_match();
  }
  check_not_empty(key, found->second);
  check_size(found->second, range);
}

}  // namespace

bool is_empty(const AttributeValue& value) {
  const auto* text = value.get<std::string>();
  const auto* binary = value.get<dynamo::Binary>();
  return (text != nullptr && text->empty()) || (binary != nullptr && binary->bytes.empty());
}

Position start_of(const AttributeValue& hash) {
  Position position;
  position.hash = sort_bytes(hash);
  position.scatter = scatter_of(position.hash);
  return position;
}

Position position_of(const KeySchema& schema, const Item& item) {
  Position position = start_of(item.find(schema.hash.name)->second);
  if (schema.range) {
    position.range = sort_bytes(item.find(schema.range->name)->second);
  }
  return position;
}

std::string tail_of(const Position& position) {
  if (position.range.empty()) {
    return position.hash;
  }
  std::string out;
  for (const char c : position.hash) {
    out.push_back(c);
    if (c == '\0') {
      out.push_back('\1');
    }
  }
  out.push_back('\0');
  out.push_back('\0');
  return out + position.range;
}

Item key_of(const KeySchema& schema, const Item& item) {
  Item key;
  if (const auto found = item.find(schema.hash.name); found != item.end()) {
    key.emplace(*found);
  }
  if (schema.range) {
    if (const auto found = item.find(schema.range->name); found != item.end()) {
      key.emplace(*found);
    }
  }
  return key;
}

void check_key(const KeySchema& schema, const Item& key) {
  if (key.size() != (schema.range ? 2u : 1u)) {
    throw no_match();
  }
  check_part_of_key(schema.hash, key, false);
  if (schema.range) {
    check_part_of_key(*schema.range, key, true);
  }
}

void check_item_key(const KeySchema& schema, const Item& item) {
  check_part_of_item(schema.hash, item, false);
  if (schema.range) {
    check_part_of_item(*schema.range, item, true);
  }
}

}  // namespace sluice::test::model
