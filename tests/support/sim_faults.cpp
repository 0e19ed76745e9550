#include "tests/support/sim_faults.hpp"

#include <algorithm>
#include <utility>

namespace sluice::test {

void SimFaults::fail_next(StoreCall call, std::size_t times, Error error) {
  const MutexLock lock(mutex_);
  planned_.push_back({call, {}, times, {std::move(error), false}});
}

void SimFaults::apply_then_fail_next(StoreCall call, std::size_t times, Error error) {
  const MutexLock lock(mutex_);
  planned_.push_back({call, {}, times, {std::move(error), true}});
}

void SimFaults::fail_message(StoreCall call, const std::string& id, std::size_t times, Error error, bool applied) {
  const MutexLock lock(mutex_);
  planned_.push_back({call, id, times, {std::move(error), applied}});
}

void SimFaults::heal() {
  const MutexLock lock(mutex_);
  planned_.clear();
}

void SimFaults::set_fault_source(FaultSource source) {
  const MutexLock lock(mutex_);
  source_ = std::move(source);
}

void SimFaults::set_latency(StoreCall call, Duration latency) {
  const MutexLock lock(mutex_);
  latency_[call] = latency;
}

std::vector<StoreCallRecord> SimFaults::calls() const {
  const MutexLock lock(mutex_);
  return calls_;
}

std::size_t SimFaults::count(StoreCall call) const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::count_if(calls_.begin(), calls_.end(),
                                                [call](const StoreCallRecord& record) { return record.call == call; }));
}

void SimFaults::forget_calls() {
  const MutexLock lock(mutex_);
  calls_.clear();
}

std::optional<StoreFault> SimFaults::planned(StoreCall call, const std::string& id) {
  const auto found = std::find_if(planned_.begin(), planned_.end(), [&](const PlannedFault& fault) {
    return fault.call == call && fault.id == id && fault.times > 0;
  });
  if (found == planned_.end()) {
    return std::nullopt;
  }
  const StoreFault fault = found->fault;
  if (--found->times == 0) {
    planned_.erase(found);
  }
  return fault;
}

std::optional<StoreFault> SimFaults::fate(const std::optional<StoreFault>& whole, StoreCall call,
                                          const std::string& id) {
  if (whole) {
    return whole;
  }
  const MutexLock lock(mutex_);
  return planned(call, id);
}

std::optional<StoreFault> SimFaults::begin(StoreCall call, const queue::QueueAddress& address, std::size_t items,
                                           Deadline deadline) {
  const SteadyTime now = clock_.steady_now();
  std::optional<StoreFault> fault;
  FaultSource source;
  {
    const MutexLock lock(mutex_);
    if (deadline.passed(now)) {
      fault = StoreFault{Error(ErrorCode::timeout, "the deadline passed before the store was asked"), false};
    } else {
      fault = planned(call, {});
    }
    source = source_;
  }
  if (!fault && source) {
    fault = source(call, address);
  }
  const MutexLock lock(mutex_);
  const auto latency = latency_.find(call);
  calls_.push_back({.call = call,
                    .address = address,
                    .items = items,
                    .started = now,
                    .latency = latency == latency_.end() ? Duration::zero() : latency->second,
                    .error = fault ? std::optional<Error>(fault->error) : std::nullopt});
  return fault;
}

}  // namespace sluice::test
