#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/client.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {

/// Where a message lies, as its id and its alias say. Consistent reads, a hundred at a time. Thread-safe.
class LeasedLookup {
 public:
  using Items = std::map<Place, dynamo::Item>;

  LeasedLookup(dynamo::Client& client, const table::QueueTable& place) : client_(client), place_(place) {}

  /// The items that are there.
  dynamo::Result<Items> read(const std::set<Place>& places, Deadline deadline) const;

  /// What there is of one id. A value.
  struct Found {
    std::optional<Place> alias{};  ///< where its alias leads to, be the message there or not
    dynamo::Item item{};           ///< the message; empty: it is in neither half
    bool there() const { return !item.empty(); }
  };
  /// By id, each of them once.
  dynamo::Result<std::map<std::string, Found>> find(const std::set<std::string>& ids, Deadline deadline) const;

 private:
  dynamo::Client& client_;
  const table::QueueTable& place_;
};

}  // namespace sluice::queue::leased
