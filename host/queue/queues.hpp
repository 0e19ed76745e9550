#pragma once

#include <boost/core/noncopyable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/idempotency.hpp"
#include "host/queue/message.hpp"
#include "host/queue/notice_board.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/sender.hpp"
#include "host/queue/source.hpp"
#include "host/queue/wake/announcement.hpp"

namespace sluice::queue {

/// Which messages of its queue a job takes, and whose they are then: all hosts that run this job share them. Of a queue
/// that can be chosen from (an outbox); empty lists: all. A value.
struct Selection {
  std::string job;
  std::vector<std::string> types;
  std::vector<std::string> deny_types;
  std::vector<std::string> events;
  std::vector<std::string> skip_events;
  bool hold_dead = false;  ///< a dead letter's group waits for an operator
  /// The handler does nothing but send, so that several messages of a group may be with it: see Source::send_order.
  bool side_by_side = false;
};

/// A process that has ended, as its machine knows for certain. A value.
struct EndedOwner {
  std::string incarnation;          ///< as Owners::incarnation said in it
  std::vector<std::string> queues;  ///< that it worked on
  bool settled = false;             ///< nothing that it had handed out is in doubt
};

/// Stores in which a process owns parts of queues by a lease, seen by who keeps the crash ledgers. Thread-safe.
class Owners : boost::noncopyable {
 public:
  virtual ~Owners() = default;

  /// What tells this process from all others, those before it on this machine included.
  virtual const std::string& incarnation() const = 0;
  /// Says in the stores of those queues that the process has ended, so that nobody waits for its leases. Nothing to do
  /// is well done.
  virtual Result<void> ended(const EndedOwner& owner, Deadline deadline) = 0;
};

/// Opens the sides of queues by name. One of the seams.
///
/// Thread-safe. Opening does not look whether the queue is there; that is what the first call tells. It fails where the
/// name itself is refused, or its store cannot be opened. What was opened must not outlive the Queues it came from;
/// what was opened twice shares what the store knows of the queue.
class Queues : boost::noncopyable {
 public:
  virtual ~Queues() = default;

  virtual Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) = 0;
  /// The same for a job that takes some of its messages only, where the queue can be chosen from; elsewhere all.
  virtual Result<std::unique_ptr<Source>> open_selected(const QueueAddress& address, const Selection& /*selection*/) {
    return open_source(address);
  }
  virtual Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) = 0;
  virtual Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) = 0;
  /// The board of the file or table that the queue lies in; another queue may have the same one.
  virtual Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) = 0;
  /// The idempotency keys of the queue's jobs. ErrorCode::invalid where the store keeps none.
  virtual Result<std::unique_ptr<IdempotencyKeys>> open_keys(const std::string& queue) {
    return Error(ErrorCode::invalid, "the store of queue " + queue + " keeps no idempotency keys");
  }
  /// Where hosts that work on the queue announce how they are woken from other machines; null where the store has no
  /// such place, because it needs none or because nobody else writes to it.
  virtual Result<std::unique_ptr<wake::WakePlace>> open_wake_place(const std::string& /*queue*/) {
    return std::unique_ptr<wake::WakePlace>();
  }
  /// The queues that messages have made, where a store can have such: it then knows them by itself. Elsewhere none.
  virtual Result<std::vector<std::string>> made_by_messages(Deadline /*deadline*/) {
    return std::vector<std::string>();
  }
};

}  // namespace sluice::queue
