#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/dynamodb_model/values.hpp"

namespace sluice::test::model {

/// A stored item. Never changed: a write makes a new one, so that indexes may still show the old one.
struct Record {
  explicit Record(Item content) : item(std::move(content)), bytes(item_bytes(item)) {}
  Item item;
  std::size_t bytes;
};
using RecordPtr = std::shared_ptr<const Record>;

struct KeyAttribute {
  std::string name;
  std::string type = "S";  ///< "S", "N" or "B"
};
struct KeySchema {
  KeyAttribute hash;
  std::optional<KeyAttribute> range;

  bool is_key(std::string_view name) const { return name == hash.name || (range && name == range->name); }
};

/// Where an item lies in a table or index: by partition in scattered order, inside of it by sort key.
struct Position {
  std::uint64_t scatter = 0;
  std::string hash;
  std::string range;
  std::string tail;  ///< in an index: the key in the table

  friend auto operator<=>(const Position&, const Position&) = default;
};

/// Whether it is an empty string or binary, which no key may be.
bool is_empty(const AttributeValue& value);

/// The position of a partition's first possible item.
Position start_of(const AttributeValue& hash);
Position position_of(const KeySchema& schema, const Item& item);
/// One string for a position in a table, different for different ones.
std::string tail_of(const Position& position);

using Records = std::map<Position, RecordPtr>;

/// The attributes of the schema's key out of an item.
Item key_of(const KeySchema& schema, const Item& item);

// They throw Failures with DynamoDB's words.
/// For "Key" members: exactly the key's attributes, of their types, none empty.
void check_key(const KeySchema& schema, const Item& key);
/// For items that are to be stored.
void check_item_key(const KeySchema& schema, const Item& item);

}  // namespace sluice::test::model
