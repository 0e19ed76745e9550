#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "host/fleet/audit.hpp"
#include "host/queue/queues.hpp"

namespace sluice::operate {

/// What came of it. A value.
struct DeedCount {
  std::uint64_t changed = 0;
  std::uint64_t skipped = 0;
  std::uint64_t failed = 0;
};

/// A queue as operators have it: all that changes messages by their hand goes through here, and leaves a line in the
/// audit of the queue's board. It is begun there before the first message is changed, and finished after the last: what
/// stays begun was cut off. Where it cannot be begun nothing is changed.
///
/// What is changed between `begin` and `finish` is one deed; any other call is one by itself. Changes are for one
/// thread, looks for any.
class AuditedOperator final : public queue::Operator {
 public:
  /// `queues` and `random` outlive it.
  static Result<std::unique_ptr<AuditedOperator>> open(queue::Queues& queues, const std::string& queue, std::string who,
                                                       Random& random);

  /// What is about to be done: its `what`, filter and reason, and of a move `to`, whose board shows it too.
  void begin(fleet::AuditEntry deed);
  /// Writes that it is begun, as the first change does by itself; for who changes something past this object.
  Result<void> note_begun(Deadline deadline);
  /// `stopped_by`: why it has not come to its end; empty: it has. Writes nothing for a deed that changed nothing.
  Result<void> finish(const DeedCount& count, const std::string& stopped_by, Deadline deadline);

  Result<queue::StoredMessage> get(const std::string& id, Deadline deadline) override;
  Result<queue::ListPage> list(const queue::ListRequest& request, Deadline deadline) override;
  Result<queue::QueueStats> stats(const queue::StatsRequest& request, Deadline deadline) override;
  Result<queue::QueueOverview> overview(const queue::OverviewRequest& request, Deadline deadline) override;
  std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline deadline) override;
  Result<queue::StoredMessage> edit(const std::string& id, std::int64_t version,
                                    std::span<const queue::ContentEdit> edits, Deadline deadline) override;
  std::vector<queue::PutResult> put(std::span<const queue::StoredMessage> records, queue::PutMode mode,
                                    Deadline deadline) override;
  Result<std::optional<queue::PartOwner>> owner_of(const std::string& id, Deadline deadline) override;

 private:
  AuditedOperator(std::unique_ptr<queue::Operator> queue, queue::Queues& queues, std::string name, std::string who,
                  Random& random);

  /// Notes that the deed which is under way is begun, or else one by itself, which is `alone` and is to be ended.
  Result<void> enter(const std::string& what, bool& alone, Deadline deadline);
  void leave(bool alone, const DeedCount& count, Deadline deadline);
  Result<void> open_boards();
  /// Writes the line as it stands, on every board.
  Result<void> write_line(Deadline deadline);

  const std::unique_ptr<queue::Operator> queue_;
  queue::Queues& queues_;
  const std::string name_;
  const std::string who_;
  Random& random_;

  std::vector<std::unique_ptr<queue::NoticeBoard>> boards_;  // of the deed, from its first change on
  bool under_way_ = false;
  bool noted_ = false;         ///< the line stands on every board
  bool may_be_noted_ = false;  ///< or on some, or may, where the answer was lost
  fleet::AuditEntry entry_;
};

}  // namespace sluice::operate
