#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/stores/outbox/rows.hpp"
#include "host/stores/outbox/settings.hpp"

/// Rows of an outbox as items of a DynamoDB table. Pure functions.
///
/// The table's partition key is `bucket` (S), its sort key the row's id (N). Whoever writes a row names its bucket,
/// "0", "1", ...: the same one for all rows of one aggregate. A row that has been sent is deleted; a dead letter lies
/// in its bucket's partition for such.
namespace sluice::queue::outbox {

inline constexpr std::string_view kBucket = "bucket";

std::string partition_of(std::uint32_t bucket);       // "3"
std::string dead_partition_of(std::uint32_t bucket);  // "dead#3"
/// The bucket of either; nothing for another text ("03" is none).
std::optional<std::uint32_t> bucket_in(std::string_view partition);

/// Both attributes of an item's key.
dynamo::Item key_of(const Columns& columns, const std::string& partition, std::int64_t id);

/// Reads items by the names of the columns. A value; thread-safe.
class RowItems {
 public:
  /// The settings must outlive it.
  explicit RowItems(const TableSettings& table) : table_(table) {}

  /// The row's id; nothing where it is no whole number of 64 bits, and so no row that anybody could name.
  std::optional<std::int64_t> id_of(const dynamo::Item& item) const;
  /// As of `now` on DynamoDB's clock. For an item that has an id.
  Row row_of(const dynamo::Item& item, WallTime now) const;
  StoredRow stored_row_of(const dynamo::Item& item, WallTime now) const;

 private:
  const TableSettings& table_;
};

/// Whether the filter wants rows of that type and event.
bool wants(const Filter& filter, const std::string& type, const std::string& event);

}  // namespace sluice::queue::outbox
