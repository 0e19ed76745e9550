#pragma once

#include <array>
#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/idempotency.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue {

/// The fencing token of a delivery: whatever is written with it takes effect only while nobody else has claimed or
/// changed the message since. A value.
struct Receipt {
  std::string id;
  std::int64_t version = 0;
  std::int64_t locator = 0;  ///< the source's own short cut to the record; 0 where it needs none
  std::uint16_t part = 0;    ///< of a source that is made of several: which of them it is of

  friend bool operator==(const Receipt&, const Receipt&) = default;
};

/// What a claim found of the record of a message's own id (ClaimRequest::own_ids_of). A value.
struct OwnIdFound {
  bool asked = false;  ///< false: the source has not looked, who wants to know asks the keys
  std::shared_ptr<const KeyAnswer> done = nullptr;  ///< the record; null: there is none
};

/// A message that this host may work on. A value.
struct Delivery {
  Message message;
  Receipt receipt;
  /// Until when nobody else is given the message, on this process's monotonic clock: counted from before the write that
  /// granted it, however late that was recognised, so that it never ends later here than in the store.
  /// SteadyTime::max() where the source itself holds the lease.
  SteadyTime leased_until{};
  WallTime invisible_until{};  ///< what the record says of it; for people, never compared with a clock here
  /// Whoever had the message before ended without an outcome, and nobody knows why: it may be what ended him. To be run
  /// where it can hurt nobody but itself.
  bool suspect = false;
  OwnIdFound own_id{};
};

/// What one claim brought.
struct Claimed {
  std::vector<Delivery> deliveries;
  /// With fewer deliveries than were asked for: how long until the next message comes due by itself (a delay, a retry,
  /// a lease that runs out), where the source knows it. Nothing: not known, or nothing waits.
  std::optional<Duration> next_due;
};

/// What a source does with a message once its handler has come to an end, or `keep`, while it works.
enum class CompletionAction {
  remove,       ///< done or discarded: delete it
  retry,        ///< visible again after `delay`; the attempt counts
  release,      ///< visible again after `delay`; the attempt is given back (receive count - 1)
  dead_letter,  ///< move it to the DLQ with its failure; in the DLQ itself it becomes visible there again
  keep,         ///< it stays with whoever has it, and the checkpoint is stored: see Source::checkpoint
};

struct Effects;  // host/queue/effects.hpp

/// What is to become of one delivery, committed as one. A value; it grows by what is to be committed with it.
struct Completion {
  Receipt receipt;
  CompletionAction action = CompletionAction::remove;
  Duration delay{};  ///< for retry and release; never negative
  Failure failure;   ///< for retry and dead_letter; empty: what the record says stays
  /// For retry and release: what the record says of the message from now on. What is not named here ends, such as the
  /// suspicion of a message whose handler has come to an end. Nothing: all of it stays, as no handler has.
  std::optional<Marks> marks = 0;
  /// What is committed together with it, or not at all; null: nothing else. For a source that has transactions.
  std::shared_ptr<const Effects> effects{};
  /// For dead_letter: the message's group stays where it is until an operator has dealt with this message.
  bool hold_group = false;
  std::string checkpoint{};  ///< for keep: in place of the one before; empty: there is none any more
};

/// The fate of one completion or extension.
enum class SettleStatus {
  applied,
  lost,  ///< the receipt is no longer ours: somebody else claimed, changed or removed the message. Final
  /// Nothing was committed, because one of its effects cannot be: `error` names it, and says why. The delivery is as it
  /// was; the same completion would be refused again.
  refused,
  failed,  ///< see `error`; nothing is known to have been written unless its code is unknown_outcome
};

struct SettleResult {
  SettleStatus status = SettleStatus::applied;
  Error error;
  bool reject = false;  ///< refused, by an effect whose message is to be rejected then (OnRefusal)
  /// refused, for something that is to be mended elsewhere: the message waits for this long, and no attempt counts.
  std::optional<Duration> wait{};
  /// failed, because others of the call took its time, or others are to go first: it was not tried, and may be asked
  /// for again at once, or after `wait`.
  bool left = false;
  std::int64_t version = 0;  ///< applied, of `keep`: the receipt's from now on; the one before is void
  bool frees_group = false;  ///< applied, to a dead letter that its group has waited for
};

/// Of completions whose messages are sent before they are settled: which may be sent now. Places in what was asked;
/// those that are in neither list follow others that have not been sent.
struct SendOrder {
  std::vector<std::vector<std::size_t>> now;  ///< of each group in order: none behind one that could not be sent
  std::vector<std::size_t> never;             ///< one that they follow has failed, or they are no longer ours
};

/// The delivery has come to its end with that.
inline bool has_ended(const Completion& completion, const SettleResult& result) {
  return result.status == SettleStatus::applied && completion.action != CompletionAction::keep;
}

struct ExtendResult {
  SettleStatus status = SettleStatus::applied;
  Receipt receipt;            ///< when applied: the one to use from now on
  SteadyTime leased_until{};  ///< when applied: as Delivery's
  Error error;
};

/// What a source can do. A value; the same for the source's whole life.
struct SourceTraits {
  bool groups = false;        ///< keeps the order within a message's group, and gives turns by group
  bool sequence = false;      ///< hands out one message after the other
  bool priorities = false;    ///< hands out by priority
  bool transactions = false;  ///< commits effects together with a completion
  bool runs_ahead = false;    ///< wants to be told what was handled: see Source::handled
  bool checkpoints = false;   ///< stores progress with a message (CompletionAction::keep)
};

/// What a source tells its job, from any thread and without waiting for what is called. Either may be empty.
struct SourceEvents {
  std::function<void()> on_ready;                      ///< something may be claimable now
  std::function<void(std::span<const Receipt>)> lost;  ///< these deliveries are no longer ours
  /// Who is told claims now and then, as if the source had not been started: each claim is written and ends with its
  /// visibility timeout, and nothing is owned in between.
  bool by_call = false;
};

/// In which order messages are handed out.
enum class Order : std::uint8_t {
  none,   ///< about as they were sent
  group,  ///< within a group, strictly: the next one once the one before is done or dead-lettered
  queue,  ///< the whole queue as if it were one group: DynamoMQ's FIFO mode
};

/// How a job wants its claims made. All hosts that work on a queue should want the same. A value.
struct ClaimRules {
  Order order = Order::none;
  bool fair = false;  ///< turns by group although there is no order within them
  /// How often each priority has its turn, by `Priority`, where messages of all of them wait.
  std::array<std::uint16_t, kPriorities> weights{8, 4, 2, 1};
  std::uint64_t max_in_flight = 0;  ///< of the whole half, everybody's; 0: no limit. At it: ErrorCode::over_limit

  friend bool operator==(const ClaimRules&, const ClaimRules&) = default;
};

struct ClaimRequest {
  std::size_t max = 1;
  std::size_t bytes = std::numeric_limits<std::size_t>::max();  ///< payload_bytes, about: the last one may go beyond
  Duration visibility{};                                        ///< how long a lease lasts unless extended
  /// A suspect is claimed alone: it is the only delivery of its claim. False: suspects are passed over.
  bool suspects = true;
  /// Whoever claims is at work with a message as soon as he has it, so that each claim counts as a start, a suspect's
  /// first one too. False: that one takes the place of the start that nobody knows of.
  bool counts = false;
  ClaimRules rules{};
  /// The job whose idempotency keys are its messages' own ids: a source that can do so looks up, in the same work,
  /// which of what it claims is done already, and says so in each delivery. Empty: nothing is looked up.
  std::string own_ids_of{};
};

/// A job's side of a queue half: where its messages come from, and what is told of their end.
///
/// `claim`, `settle` and `extend` are thread-safe, block, and have returned by their deadline; what they write may
/// still take effect after that and is then an unknown outcome. Results come in the order of the request. Batches of
/// any size are accepted; the source cuts them as it must. A resource: its job's, until `stop` has returned.
class Source : boost::noncopyable {
 public:
  virtual ~Source() = default;

  virtual const SourceTraits& traits() const = 0;

  /// Begins what the source does by itself: listening, heartbeats, leases. Called at most once, before any claim of a
  /// job; one that only claims now and then (a command) need not.
  virtual void start(SourceEvents events) = 0;
  /// Ends it. Idempotent, from any thread; once it has returned no event is told any more. What was handed out can
  /// still be settled.
  virtual void stop() = 0;

  /// Claims due messages, oldest first. Nothing when none is due: a queue that nobody has sent to is empty, where the
  /// store can make queues; where it cannot, its absence is ErrorCode::queue_missing. A message that somebody else
  /// takes first, or whose record nobody can read, is passed over and never stops the queue.
  virtual Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) = 0;

  /// Commits what became of deliveries, each by itself. A completion whose first try had an unknown outcome is safe to
  /// repeat.
  virtual std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) = 0;

  /// The handlers of these have ended them well, and they will be settled by their removal with nothing that is
  /// committed beside. A source may hand out what follows them in their groups before that is written.
  virtual void handled(std::span<const Receipt> /*receipts*/) {}

  /// For whoever sends what completions emit before he settles them: a source that has handed out several messages of a
  /// group knows which of them goes first. What was sent is `handled`.
  virtual SendOrder send_order(std::span<const Receipt> receipts);

  /// Whether what this part of it has handed out for as long as the source holds it (`leased_until` is
  /// SteadyTime::max()) is still its own, as far as it knows without asking anybody: looked at before each start, for a
  /// process may have slept meanwhile.
  virtual bool holds(std::uint32_t /*part*/) { return true; }

  /// Stores progress with a delivery that goes on, and commits effects (or null) with it, as one. Its lease ends when
  /// it did. Applied: the receipt's version is the result's from now on. Refused: the store keeps none, it is too long,
  /// it does not fit into the record, or one of the effects cannot be committed. What was asked for together with
  /// effects and has an unknown outcome must not be asked for again: the next claim shows whether it holds.
  SettleResult checkpoint(const Receipt& receipt, std::string bytes, std::shared_ptr<const Effects> effects,
                          Deadline deadline);

  /// Prolongs leases to now + `visibility`. The old receipts are void afterwards.
  virtual std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility,
                                           Deadline deadline) = 0;
};

}  // namespace sluice::queue
