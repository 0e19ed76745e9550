#pragma once

#include <cstdint>
#include <optional>

#include "dynamo/attribute_value.hpp"

namespace sluice::queue::table {

/// The version of a record as it stands: what a conditional write compares with.
struct VersionMark {
  std::optional<dynamo::AttributeValue> stored;  ///< nothing: the item has none
  std::int64_t number = 0;                       ///< 0 for what is no whole number of 64 bits

  /// Of the attribute's value; null: the item has none.
  static VersionMark of(const dynamo::AttributeValue* stored);
  static VersionMark number_of(std::int64_t version);
  /// What the next write makes of it.
  std::int64_t next() const;
};

}  // namespace sluice::queue::table
