#pragma once

#include <cstddef>

#include "host/queue/error_groups.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::queue::table {

/// Adds up an overview, record by record in claiming order. A value; not thread-safe.
class OverviewCount {
 public:
  OverviewCount(const OverviewRequest& request, WallTime now)
      : most_ids_(request.ids), most_errors_(request.errors), now_(now), errors_(now) {}

  void add(const StoredMessage& record);
  QueueOverview finish() &&;

 private:
  void count(const StoredMessage& record, MessageState state);

  std::size_t most_ids_;
  std::size_t most_errors_;
  WallTime now_;
  QueueOverview overview_;
  ErrorGroups errors_;
};

}  // namespace sluice::queue::table
