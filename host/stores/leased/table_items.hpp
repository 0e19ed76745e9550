#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "dynamo/client.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {

/// What a look at the items of a leased table has found.
struct TableItems {
  static constexpr std::size_t kNamed = 10;

  std::uint64_t read = 0;     ///< items looked at
  std::uint64_t foreign = 0;  ///< of these: nothing of this layout, or messages that nobody can hand out
  bool whole = true;          ///< there are no more items
  double read_units = 0;
  std::set<std::string> queues;  ///< those that have anything in it
  std::vector<table::TableFinding> findings;
};

/// Judges the items of a table one by one, by the time `now`. Not thread-safe.
class TableItemsExamination {
 public:
  explicit TableItemsExamination(std::string table, WallTime now) : table_(std::move(table)), now_(now) {}

  void add(const dynamo::Item& item);
  TableItems finish() &&;

 private:
  void add_message(const dynamo::Item& item);
  void add_heartbeat(const dynamo::Item& item, const std::string& host);
  void add_ownership(const dynamo::Item& item, const std::string& queue, const std::string& sort);
  void note_foreign(const dynamo::Item& item, const std::string& why);
  void advise(std::string what, std::string mend);

  const std::string table_;
  const WallTime now_;
  TableItems found_;
  std::string foreign_names_;
  std::map<std::string, std::set<std::string>> living_;  ///< incarnations, by the host's name
};

/// Reads the items of a table, a megabyte a request, and at most so many requests: each costs up to 128 read units.
Result<TableItems> examine_items(dynamo::Client& client, const std::string& table, std::size_t most_requests,
                                 WallTime now, Deadline deadline);

}  // namespace sluice::queue::leased
