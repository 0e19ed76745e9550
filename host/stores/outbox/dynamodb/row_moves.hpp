#pragma once

#include <optional>
#include <string>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"

namespace sluice::queue::outbox {

/// A row's way from among the pending ones to the dead letters, or back. The two lie in different partitions, so that
/// what is given up is never read again by those who look for work; a move is one transaction of two writes.
class RowMove {
 public:
  enum class Outcome { done, gone, in_the_way };

  /// `row` as it was just read.
  RowMove(OutboxPlace& place, const dynamo::Item& row);

  /// Given up after so many tries.
  Result<Outcome> to_dead_letters(std::uint32_t retries, const std::string& error, Deadline deadline);
  /// As if it had never been tried.
  Result<Outcome> to_pending(Deadline deadline);

 private:
  Result<Outcome> move(const std::string& partition, dynamo::Item item, Deadline deadline);

  OutboxPlace& place_;
  const dynamo::Item& row_;
};

/// The condition that a row is still there with so many tries; `names` and `values` are added to.
std::string still_tried(const Columns& columns, std::optional<std::uint32_t> retries,
                        std::map<std::string, std::string>& names, dynamo::Item& values);

}  // namespace sluice::queue::outbox
