#pragma once

#include <span>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"
#include "host/stores/outbox/rows.hpp"

namespace sluice::queue::outbox {

/// Writes what became of rows. A row that was sent is deleted, 25 of them a request; one that failed is updated by a
/// request of its own; one that is given up moves to the dead letters. Made for one call.
class Marks {
 public:
  explicit Marks(OutboxPlace& place) : place_(place) {}

  /// As LockSession::mark.
  Result<std::vector<MarkStatus>> write(std::span<const Mark> marks, Deadline deadline);

 private:
  /// Marks of one kind, by their places among all of them.
  using Places = std::vector<std::size_t>;

  Result<void> write_sent(const Places& places, Deadline deadline);
  Result<void> write_each(const Places& places, Deadline deadline);
  Result<void> write_dead(const Places& places, Deadline deadline);
  dynamo::ItemWrite write_of(const Mark& mark) const;
  Result<MarkStatus> status_of(const dynamo::Error& error) const;
  dynamo::Item key(const Mark& mark) const;

  OutboxPlace& place_;
  std::span<const Mark> marks_;
  std::vector<MarkStatus> statuses_;
};

}  // namespace sluice::queue::outbox
