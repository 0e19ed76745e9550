#pragma once

#include <optional>
#include <string>

#include "host/queue/stored_message.hpp"
#include "host/stores/table/overview_count.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Where a list goes on, as opaque text: the key of the last message shown.
std::string encode_cursor(const dynamo::Item& last_key);
/// ErrorCode::invalid for text that is no cursor of that half.
Result<dynamo::Item> decode_cursor(std::string_view cursor, Half half);

/// Looks at one queue and changes nothing. Thread-safe.
class Inspector {
 public:
  Inspector(table::StoreParts parts, const table::QueueTable& place) : parts_(parts), place_(place) {}

  /// Consistent.
  Result<StoredMessage> get(const std::string& id, Deadline deadline) const;
  /// The item itself, for those who change it; ErrorCode::not_found when absent.
  Result<dynamo::Item> record(const std::string& id, Deadline deadline) const;
  /// From the index, oldest first; a consistent look reads the whole table, in no order.
  Result<ListPage> list(const ListRequest& request, Deadline deadline) const;
  /// Reads the whole partition once, or with a consistent look the whole table, both halves, at twice the price.
  /// DynamoDB bills whole items, however little of them it is asked to return.
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) const;
  /// The same pass, and what else it can tell.
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) const;
  /// When the first message of that half was sent, as far as its record says so; nothing for an empty half.
  Result<std::optional<WallTime>> oldest_sent_at(Half half, Deadline deadline) const;

 private:
  Result<ListPage> list_index(const ListRequest& request, Deadline deadline) const;
  Result<ListPage> list_table(const ListRequest& request, Deadline deadline) const;
  void add_page(std::optional<table::OverviewCount>& count, const OverviewRequest& request,
                const dynamo::Page& page) const;

  table::StoreParts parts_;
  const table::QueueTable& place_;
};

}  // namespace sluice::queue::dynamomq
