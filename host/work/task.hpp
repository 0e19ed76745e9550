#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/queue/idempotency.hpp"
#include "host/queue/source.hpp"
#include "host/work/disposition.hpp"

namespace sluice::work {

/// The right to work on a message until a time, on this process's own monotonic clock, as the source has granted it.
struct Lease {
  queue::Receipt receipt;
  SteadyTime ends_at{};
  SteadyTime extend_at{};
  SteadyTime begun_at{};  ///< when it was claimed; the epoch: not known
};

enum class TaskStage {
  queued,    ///< waits for a worker
  dealt,     ///< with a worker: about to be started, running, or finished and not collected yet
  disposed,  ///< its disposition waits to be written
  parked,    ///< the same, and waits for the receipt that an extension under way will bring
  settling,  ///< in a settle call
  ended,     ///< its ending is in the account
};

enum class ReceiptState {
  ours,
  extending,  ///< in an extend call: void once that has taken effect
  unsure,     ///< a settle call may have taken effect: to be repeated before anything else touches it
};

/// A claim of an idempotency key, and whose: the part of the source that its message is of.
struct KeyMark {
  queue::KeyClaim claim;
  std::uint16_t part = 0;
};

/// What a message holds of its idempotency key, once it was let in.
struct KeyHold {
  std::string key{};       ///< empty where it is the message's own id
  std::int64_t fence = 0;  ///< of the mark
  bool held = false;       ///< a record is due when the message is done
  bool marked = false;     ///< a mark is to be renewed, and released unless it becomes the record
  SteadyTime renew_at = SteadyTime::max();
};

/// One claimed message on its way through a job. Lives in the job's InFlightTable. Its stage changes only as the
/// methods below say; anything else is a defect and ends the process.
class Task {
 public:
  // Read by the worker that has it; nobody writes them meanwhile.
  queue::Message message;
  isolation::HeldSlot slot = 0;  ///< in the crash ledger
  bool suspect = false;
  std::uint16_t part = 0;  ///< of the source, as Receipt's

  Lease lease;
  Disposition disposition;
  std::uint32_t seat = 0;         ///< of the worker that has or had it
  std::uint32_t tries = 0;        ///< settle calls that failed
  SteadyTime finished_at{};       ///< when it got its disposition
  SteadyTime not_before{};        ///< of the next settle call
  bool finished_here = false;     ///< its disposition is what its handler came to
  std::uint64_t fingerprint = 0;  ///< of its content, once that is no longer kept
  std::size_t place = 0;          ///< in the holdings
  KeyHold key;
  std::shared_ptr<const std::string> first_result{};  ///< what the message's duplicate gave back; null: it is none
  /// This host has claimed the message once more while a call with the receipt before was under way. Null: it has not.
  std::unique_ptr<queue::Delivery> newer{};

  TaskStage stage() const { return stage_; }
  ReceiptState receipt_state() const { return receipt_state_; }
  bool open() const { return stage_ != TaskStage::ended; }
  /// A worker has it, whatever has become of it otherwise.
  bool in_hand() const { return in_hand_; }
  /// A call with its receipt has not been answered.
  bool in_call() const { return stage_ == TaskStage::settling || receipt_state_ == ReceiptState::extending; }
  /// It was lost while its handler ran, and that has not come to an end yet.
  bool runs_on() const { return runs_on_ && in_hand_; }
  /// Its end has this process run statements of its handler's.
  bool commits_statements() const;
  /// What may have ended a host before, and may end this one, is written when nothing else can be lost by it.
  bool settles_alone() const { return suspect && commits_statements(); }
  /// Its place may be used again.
  bool over() const { return !open() && !in_hand_ && !asked_ && receipt_state_ != ReceiptState::extending; }

  void deal(std::uint32_t to_seat);                  ///< queued -> dealt
  void recall();                                     ///< dealt, not started -> queued
  void leave_hand();                                 ///< its worker has given it back
  void dispose(Disposition&& what, SteadyTime now);  ///< queued or dealt -> disposed
  void park();                                       ///< disposed -> parked
  void unpark();                                     ///< parked -> disposed
  void begin_settling();                             ///< disposed -> settling
  void settling_failed(bool may_have_happened);      ///< settling -> disposed
  void begin_asking() { asked_ = true; }             ///< for its key: until then its place and its message stay
  void end_asking() { asked_ = false; }
  void begin_extending();
  void end_extending();
  /// The receipt is a newer one, under which nothing has been tried: settling -> disposed, or any other stage as it is.
  void go_on();
  void end();                             ///< any but ended -> ended
  void end_lost();                        ///< the same; where its handler runs on it may be taken up again
  void take_up();                         ///< ended, and runs on -> dealt
  void write_off() { runs_on_ = false; }  ///< its handler is not waited for any more

 private:
  void go(TaskStage from, TaskStage to);

  TaskStage stage_ = TaskStage::queued;
  ReceiptState receipt_state_ = ReceiptState::ours;
  bool in_hand_ = false;
  bool asked_ = false;
  bool runs_on_ = false;
};

}  // namespace sluice::work
