#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/queue/message.hpp"

namespace sluice::test {

/// A method of Source, Sender or Operator, or any one of NoticeBoard.
enum class StoreCall { claim, settle, extend, send, get, list, stats, overview, change, edit, put, board };

/// How a call goes wrong.
struct StoreFault {
  Error error;
  bool applied = false;  ///< true: the call takes effect first, and its caller does not learn of it
};

/// One call as it happened.
struct StoreCallRecord {
  StoreCall call = StoreCall::claim;
  queue::QueueAddress address;
  std::size_t items = 0;  ///< claim: the maximum asked for; otherwise messages, receipts or completions given
  SteadyTime started{};
  Duration latency{};          ///< what `set_latency` says; nothing slept
  std::optional<Error> error;  ///< of the fault that hit the call as a whole
};

/// What goes wrong with simulated queues, and what was asked of them. Thread-safe. Faults are used up in the order in
/// which they were asked for:
///
///     sim.fail_next(StoreCall::settle, 2, Error(ErrorCode::throttled, "slow down"));
///     sim.apply_then_fail_next(StoreCall::claim, 1);   // unknown outcome: claimed, but nobody knows
///     sim.fail_message(StoreCall::settle, "A-1", 1, Error(ErrorCode::unavailable, "down"));
///
/// A deadline that has passed fails a call with ErrorCode::timeout before anything happens.
class SimFaults {
 public:
  explicit SimFaults(const Clock& clock) : clock_(clock) {}

  /// The next `times` calls fail, and nothing is written.
  void fail_next(StoreCall call, std::size_t times, Error error);
  /// The next `times` calls take effect, and their caller gets the error: the answer was lost on its way.
  void apply_then_fail_next(StoreCall call, std::size_t times,
                            Error error = Error(ErrorCode::unknown_outcome, "the answer was lost"));
  /// The next `times` times that this one message is in such a call (settle, extend, send, change or put), it
  /// alone fails.
  void fail_message(StoreCall call, const std::string& id, std::size_t times, Error error, bool applied = false);
  /// Forgets the faults that were asked for and have not happened.
  void heal();
  /// Asked before each call that no fault above hits; for whoever decides by a seed, or has a call wait.
  using FaultSource = std::function<std::optional<StoreFault>(StoreCall call, const queue::QueueAddress& address)>;
  void set_fault_source(FaultSource source);
  /// What a call takes. It is put down in the call's record; whoever steps the clock decides whether to add it.
  void set_latency(StoreCall call, Duration latency);

  std::vector<StoreCallRecord> calls() const;
  std::size_t count(StoreCall call) const;
  void forget_calls();

  // For the queues.

  /// A call begins: puts it down, and says what hits it as a whole.
  std::optional<StoreFault> begin(StoreCall call, const queue::QueueAddress& address, std::size_t items,
                                  Deadline deadline);
  /// What hits one message of a call that `whole` hits as a whole.
  std::optional<StoreFault> fate(const std::optional<StoreFault>& whole, StoreCall call, const std::string& id);

 private:
  struct PlannedFault {
    StoreCall call;
    std::string id;  ///< empty: the whole call
    std::size_t times;
    StoreFault fault;
  };

  std::optional<StoreFault> planned(StoreCall call, const std::string& id) SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const Clock& clock_;

  mutable Mutex mutex_;
  std::vector<PlannedFault> planned_ SLUICE_GUARDED_BY(mutex_);
  FaultSource source_ SLUICE_GUARDED_BY(mutex_);
  std::map<StoreCall, Duration> latency_ SLUICE_GUARDED_BY(mutex_);
  std::vector<StoreCallRecord> calls_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::test
