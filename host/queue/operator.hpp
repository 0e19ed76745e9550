#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::queue {

/// What operators do to messages that nobody hands them: by id, in batches. Values.
enum class ChangeAction {
  remove,          ///< delete the record
  set_visibility,  ///< visible again after `after` (at once when it is zero or negative); nothing else moves. Any state
  delay,           ///< put back as if it had been sent with the delay `after`; its receive count stays
  move_to_front,   ///< visible now, and the oldest of its half: the next to be claimed
  dead_letter,     ///< to the DLQ with `failure` (empty: what the record says stays). There already: applied, unchanged
  redrive,         ///< from the DLQ back, as newly sent, receive count zero. Elsewhere, or in flight there: conflict
  reset,           ///< as if it had just been sent: standard half, receive count zero, all times now, no failure
};

/// One change of one message. Each is conditional on `version` where that is given, and then fails as a conflict when
/// anybody has changed the record since it was read; without it the record is changed as it stands.
/// A change never rewrites the content: every digit, set, binary and unknown attribute stays as it is.
/// The version grows by one with each change, `reset` included, so that a stale holder can never settle.
struct Change {
  std::string id;
  ChangeAction action = ChangeAction::remove;
  /// The version as `StoredMessage` gave it. 0 stands for a record that has none, or one that is no whole number.
  std::optional<std::int64_t> version;
  Duration after{};  ///< set_visibility and delay
  Failure failure;   ///< dead_letter
};

enum class ChangeStatus {
  applied,
  not_found,  ///< no message of that id
  conflict,   ///< not of that version any more, or its state forbids the change; see `error` for which
  failed,     ///< see `error`; nothing is known to have been written unless its code is unknown_outcome
};

struct ChangeResult {
  ChangeStatus status = ChangeStatus::applied;
  std::int64_t version = 0;  ///< of the record after the change; 0 when it was removed or is not known
  Error error;               ///< for every status but applied: one line for a person
};

/// One step into a JSON document: a key of an object, or an index of an array.
using PathStep = std::variant<std::string, std::size_t>;

/// One edit of a message's content. The path begins with "data" (the body), "attributes" (then the attribute's name),
/// "content_type", "group" or "priority"; what lies beside the path keeps every digit and type it has.
///
/// `json` is the new value as JSON text, or nothing to take the value away. Objects on the way must exist; an index may
/// be the array's length, which appends. The whole body (path "data" alone) may be replaced whatever it was: a JSON
/// string becomes text where the message is text/plain, everything else JSON.
struct ContentEdit {
  std::vector<PathStep> path;
  std::optional<std::string> json;
};

/// A part of a queue, and the host that hands out what lies in it. A value.
struct PartOwner {
  std::string part;                  ///< "shard 3"
  std::optional<std::string> owner;  ///< as its store knows it: "host web-1"; empty: nobody. Nothing: it does not tell
};

enum class PutMode {
  insert,   ///< only where the id is free
  replace,  ///< whatever is there under that id goes
};

enum class PutStatus { written, exists, failed };

struct PutResult {
  PutStatus status = PutStatus::written;
  Error error;
};

/// Looks at one queue and changes what lies in it, for commands and consoles; none of it is on a message's path.
/// Thread-safe. Each method blocks and has returned by its deadline; results come in the order of the request.
class Operator : boost::noncopyable {
 public:
  virtual ~Operator() = default;

  /// One message wherever it lies in the queue, DLQ included; ErrorCode::not_found when absent.
  virtual Result<StoredMessage> get(const std::string& id, Deadline deadline) = 0;
  virtual Result<ListPage> list(const ListRequest& request, Deadline deadline) = 0;
  virtual Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) = 0;
  /// Reads the whole half once, without bodies where the store can do so.
  virtual Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) = 0;

  /// Applies changes, each by itself; one result each. At most one change an id in one call.
  virtual std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) = 0;
  /// Edits the content of a message if the record still has `version`, all edits or none, and returns the record
  /// afterwards. ErrorCode::conflict for another version, not_found when absent, invalid for a path that leads nowhere
  /// or content that the store cannot hold. What the edits do not name stays exactly as it is.
  virtual Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                                     Deadline deadline) = 0;
  /// Writes whole records as they stand: times, counts, state, failure and version included. The queue is made where
  /// the store can make queues.
  virtual std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) = 0;

  /// Where hosts own parts of the queue and write nothing when they hand a message out: whose part this one lies in.
  /// Nothing: the queue's records say themselves which of them are in flight.
  virtual Result<std::optional<PartOwner>> owner_of(const std::string& /*id*/, Deadline /*deadline*/) {
    return std::optional<PartOwner>();
  }
};

/// Removes messages that were listed in the half `half`, whatever has become of them since, as long as they lie in that
/// half: one that somebody moved to the other half meanwhile stays there, and its result is a conflict that says so.
///
/// Each of `removals` names the version that was listed. They go out as one call of the operator; only those that
/// somebody has changed in between are looked at again, one by one, and tried anew a few times.
std::vector<ChangeResult> remove_from_half(Operator& queue, Half half, std::vector<Change> removals, Deadline deadline);

/// A queue whose hosts own its parts and hand out what they have read without asking the store again, as somebody has
/// it who carries its messages elsewhere: the hosts hand part after part over to him, once they have settled what is
/// out of it, and get them back at the end. A resource; it is for one thread.
class MoveOwnership : boost::noncopyable {
 public:
  virtual ~MoveOwnership() = default;

  /// How a half stands. A value.
  struct Progress {
    std::size_t held = 0;       ///< parts that nobody else hands anything out of
    std::size_t all = 0;        ///< 0: not known yet
    std::uint64_t changes = 0;  ///< grows whenever one comes or goes
    bool whole() const { return all > 0 && held == all; }
  };

  /// Does what is due before anything can be taken. What fails is tried again by the next call.
  virtual void tend(Deadline deadline) = 0;
  virtual Progress standing(Half half) const = 0;
  /// The queue's operator, which lists what lies in the parts that are held, and nothing else.
  virtual Operator& oper() = 0;
  /// Whether messages may be taken now: what the operator changes until `end_taking` is in parts that are held, and
  /// nobody else hands it out. Nothing of that is begun after `relied_until`.
  virtual bool begin_taking() = 0;
  virtual SteadyTime relied_until() = 0;
  virtual void end_taking() = 0;
  /// Gives all of it back. False: some of it could not be, and the hosts wait until the lease on it has run out.
  virtual bool give_back() = 0;
};

}  // namespace sluice::queue
