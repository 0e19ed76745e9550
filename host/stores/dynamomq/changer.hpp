#pragma once

#include <optional>
#include <span>
#include <vector>

#include "host/queue/operator.hpp"
#include "host/stores/dynamomq/inspector.hpp"
#include "host/stores/dynamomq/outcome_recovery.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/record_changes.hpp"

namespace sluice::queue::dynamomq {

/// Changes messages of one queue by id, as operators ask for it. Thread-safe.
///
/// A change whose version is given is written at once, conditional on it; any other is first read, a hundred at a time,
/// and written conditional on what was read. Only where a condition does not hold is the record looked at again: to
/// tell a message that is gone from one that was changed, to recognise a write of our own whose answer was lost, and to
/// try again where no version was asked for.
class Changer {
 public:
  static constexpr int kMaxRaces = 5;  ///< lost in a row against others who change the same message

  Changer(table::StoreParts parts, const table::QueueTable& place)
      : parts_(parts), place_(place), inspector_(parts, place), build_(place.table) {}

  /// A record that was put where it is to be claimed next.
  struct Due {
    Half half = Half::standard;
    Candidate record;
  };

  /// As Operator::change. Adds to `due` what was moved to the front, so that this host need not find it.
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline, std::vector<Due>& due) const;

 private:
  struct Task;
  class Front;

  void look(std::vector<Task>& tasks, Deadline deadline) const;
  void judge(Task& task, const dynamo::Item* record) const;
  void write(std::vector<Task>& tasks, Front& front, Deadline deadline) const;
  std::optional<table::RecordWrite> statement(Task& task, Front& front, WallTime now, Deadline deadline) const;
  void note(Task& task, table::StatementOutcome& outcome) const;

  table::StoreParts parts_;
  const table::QueueTable& place_;
  Inspector inspector_;
  WriteBuilder build_;
};

}  // namespace sluice::queue::dynamomq
