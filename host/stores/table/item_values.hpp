#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/message.hpp"

/// What an item and a request may hold, and what of a failure is kept.
namespace sluice::queue::table {

/// DynamoDB's limits.
inline constexpr std::size_t kMaxItemBytes = 400 * 1024;
inline constexpr std::size_t kMaxIdBytes = 2048;
/// Of values in one batch: a request holds 16 MB, and JSON may write a byte as six.
inline constexpr std::size_t kMaxBatchBytes = 2'500'000;
/// Of all items of a transaction, those that are only changed or removed included. DynamoDB's limit is 4 MB.
inline constexpr std::size_t kMaxTransactionBytes = 3'000'000;

/// How many of these one transaction takes: at most so many, no more than it holds, and the first in any case.
template <typename One, typename BytesOf>
std::size_t fitting(std::span<One> all, std::size_t most, const BytesOf& bytes_of) {
  std::size_t count = 0;
  for (std::size_t bytes = 0; count < std::min(all.size(), most); ++count) {
    bytes += bytes_of(all[count]);
    if (count > 0 && bytes > kMaxTransactionBytes) {
      break;
    }
  }
  return count;
}

/// Longest failure text that is kept with a message, in bytes.
inline constexpr std::size_t kMaxFailureBytes = 1024;
/// The same of an attempt before the last one: four of them and their names stay within a write unit.
inline constexpr std::size_t kMaxEarlierFailureBytes = 120;

// Reads values of items, whatever stands there, and weighs them. Pure functions.

/// The time that an attribute spells; nothing: it spells none.
std::optional<WallTime> time_of(const dynamo::Item& item, std::string_view name);
/// Empty for what is no bytes.
std::string bytes_of(const dynamo::Item& item, std::string_view name);
/// A whole number of 31 bits; what is less or more counts as the least or the most, what is none as 0.
std::uint32_t count_of(const dynamo::AttributeValue* value);

/// Makes the attribute of that name what it is in `from`; takes it away where it is not there.
void take_over(dynamo::Item& into, const dynamo::Item& from, std::string_view name);

/// DynamoDB's size of an item: names and values. Numbers are counted at their highest.
std::size_t item_bytes(const dynamo::Item& item);
std::size_t value_bytes(const dynamo::AttributeValue& value);

/// The version of a record as it stands: what a conditional write compares with.
struct VersionMark {
  std::optional<dynamo::AttributeValue> stored;  ///< nothing: the item has none
  std::int64_t number = 0;                       ///< 0 for what is no whole number of 64 bits
  std::int64_t least_next = 1;                   ///< 2 where 1 is spelt by its absence

  /// Of the attribute's value; null: the item has none.
  static VersionMark of(const dynamo::AttributeValue* stored);
  static VersionMark number_of(std::int64_t version) { return VersionMark().at(version); }
  /// That version of the same record.
  VersionMark at(std::int64_t version) const;
  /// What the next write makes of it.
  std::int64_t next() const;
};

// A message's attributes as items hold them: a map of texts, the same in every layout. Pure functions.

/// ErrorCode::invalid for a name or a value that is not UTF-8.
Result<dynamo::Map> encode_attributes(const Attributes& attributes);

/// What of an attribute's value is text; none where it is no map, or where there is no value. Never fails.
Attributes decode_attributes(const dynamo::AttributeValue* value);

// What is kept with a message of its failed attempts: a map, the same in every layout. Pure functions.

/// A failure as the record keeps it, its text cut to kMaxFailureBytes.
dynamo::AttributeValue encode_failure(const Failure& failure);

/// What an attribute's value says; empty where it says none, or where there is no value. Never fails.
Failure decode_failure(const dynamo::AttributeValue* value);

}  // namespace sluice::queue::table
