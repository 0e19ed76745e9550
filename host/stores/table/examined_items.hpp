#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/client.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {

/// An item that no queue shows or hands out, and why.
struct OutsideItem {
  std::string id;
  std::string why;  ///< a clause, such as "it has no queue_type"
};

/// What a look at the items of a table has found.
struct ExaminedItems {
  static constexpr std::size_t kNamed = 10;

  std::uint64_t read = 0;     ///< items looked at
  std::uint64_t outside = 0;  ///< of these: they are nothing of the layout's, or no message that anybody can see
  std::uint64_t ours = 0;     ///< of these: not in the index, as records of hosts and keys do not belong there
  bool whole = true;          ///< there are no more items
  double read_units = 0;
  std::vector<OutsideItem> first{};  ///< at most kNamed of those outside
  std::vector<TableFinding> findings{};

  void note_outside(std::string id, std::string why);
  void advise(std::string what, std::string mend);
  /// "'a' (it has no queue_type), 'b' (it has no sent_at), ..."
  std::string named() const;
};

/// Reads the items of a table, a megabyte a request, and at most so many requests: each costs up to 128 read units.
/// `each` judges them one by one.
Result<ExaminedItems> examine_each(dynamo::Client& client, dynamo::ScanRequest scan, std::size_t most_requests,
                                   Deadline deadline,
                                   const std::function<void(ExaminedItems& found, const dynamo::Item& item)>& each);

}  // namespace sluice::queue::table
