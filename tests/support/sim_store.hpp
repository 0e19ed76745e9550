#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/store.hpp"
#include "tests/support/sim_records.hpp"

namespace sluice::test {

/// A method of Store.
enum class StoreCall { claim, settle, extend, send, get, list, stats, overview, change, edit, put };

/// How a call goes wrong.
struct StoreFault {
  Error error;
  bool applied = false;  ///< true: the call takes effect first, and its caller does not learn of it
};

/// One call as it happened.
struct StoreCallRecord {
  StoreCall call = StoreCall::claim;
  queue::QueueAddress address;
  std::size_t items = 0;  ///< claim: the maximum asked for; otherwise messages, receipts or settlements given
  SteadyTime started{};
  Duration latency{};          ///< what `set_latency` says; nothing slept
  std::optional<Error> error;  ///< of the fault that hit the call as a whole
};

/// A Store in memory, for unit tests and the simulation. Thread-safe. Never blocks and never sleeps; moves only with
/// its Clock. Faults are asked for by the test:
///
///     store.fail_next(StoreCall::settle, 2, Error(ErrorCode::throttled, "slow down"));
///     store.apply_then_fail_next(StoreCall::claim, 1);   // unknown outcome: claimed, but nobody knows
///     store.fail_message(StoreCall::settle, "A-1", 1, Error(ErrorCode::unavailable, "down"));
///     store.lose_receipts({"orders"});                   // another host has claimed what is in flight
///
/// A deadline that has passed fails a call with ErrorCode::timeout before anything happens.
class SimStore final : public queue::Store {
 public:
  SimStore(const Clock& clock, Random& random) : clock_(clock), random_(random) {}

  // Faults. They are used up in the order in which they were asked for.

  /// The next `times` calls fail, and nothing is written.
  void fail_next(StoreCall call, std::size_t times, Error error);
  /// The next `times` calls take effect, and their caller gets the error: the answer was lost on its way.
  void apply_then_fail_next(StoreCall call, std::size_t times,
                            Error error = Error(ErrorCode::unknown_outcome, "the answer was lost"));
  /// The next `times` times that this one message is in such a call (settle, extend, send, change or put), it
  /// alone fails.
  void fail_message(StoreCall call, const std::string& id, std::size_t times, Error error, bool applied = false);
  /// Asked before each call that no fault above hits; for the simulation, which decides by its seed.
  using FaultSource = std::function<std::optional<StoreFault>(StoreCall call, const queue::QueueAddress& address)>;
  void set_fault_source(FaultSource source);
  /// Voids every receipt of this half, as if another host had claimed these messages for `visibility`. Returns how
  /// many.
  std::size_t lose_receipts(const queue::QueueAddress& address, Duration visibility = std::chrono::seconds(30));
  /// What a call takes. It is put down in the call's record; whoever steps the clock decides whether to add it.
  void set_latency(StoreCall call, Duration latency);

  // Observation.

  std::vector<StoreCallRecord> calls() const;
  std::size_t count(StoreCall call) const;
  void forget_calls();

  Result<std::vector<queue::Claim>> claim(const queue::QueueAddress& address, std::size_t max, Duration visibility,
                                          Deadline deadline) override;
  std::vector<queue::SettleResult> settle(const queue::QueueAddress& address,
                                          std::span<const queue::Settlement> settlements, Deadline deadline) override;
  std::vector<queue::ExtendResult> extend(const queue::QueueAddress& address, std::span<const queue::Receipt> receipts,
                                          Duration visibility, Deadline deadline) override;
  std::vector<queue::SendResult> send(const std::string& queue, std::span<const queue::NewMessage> messages,
                                      Deadline deadline) override;
  Result<queue::StoredMessage> get(const std::string& queue, const std::string& id, Deadline deadline) override;
  Result<queue::ListPage> list(const queue::ListRequest& request, Deadline deadline) override;
  Result<queue::QueueStats> stats(const queue::QueueAddress& address, Deadline deadline) override;
  Result<queue::QueueOverview> overview(const queue::OverviewRequest& request, Deadline deadline) override;
  std::vector<queue::ChangeResult> change(const std::string& queue, std::span<const queue::Change> changes,
                                          Deadline deadline) override;
  Result<queue::StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                                    std::span<const queue::ContentEdit> edits, Deadline deadline) override;
  std::vector<queue::PutResult> put(const std::string& queue, std::span<const queue::StoredMessage> records,
                                    queue::PutMode mode, Deadline deadline) override;

 private:
  struct PlannedFault {
    StoreCall call;
    std::string id;  ///< empty: the whole call
    std::size_t times;
    StoreFault fault;
  };

  std::optional<StoreFault> begin(StoreCall call, const queue::QueueAddress& address, std::size_t items,
                                  Deadline deadline);
  std::optional<StoreFault> planned(StoreCall call, const std::string& id) SLUICE_REQUIRES(mutex_);
  std::optional<StoreFault> fate(const std::optional<StoreFault>& whole, StoreCall call, const std::string& id)
      SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const Clock& clock_;
  // Synchronises itself.
  Random& random_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, SimRecords> queues_ SLUICE_GUARDED_BY(mutex_);
  std::vector<PlannedFault> planned_ SLUICE_GUARDED_BY(mutex_);
  FaultSource source_ SLUICE_GUARDED_BY(mutex_);
  std::map<StoreCall, Duration> latency_ SLUICE_GUARDED_BY(mutex_);
  std::vector<StoreCallRecord> calls_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::test
