#include "tests/support/sim_store.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/uuid.hpp"
#include "host/queue/message_errors.hpp"

namespace sluice::test {

using queue::Claim;
using queue::ExtendResult;
using queue::QueueAddress;
using queue::SendResult;
using queue::SendStatus;
using queue::SettleResult;
using queue::SettleStatus;

namespace {

constexpr std::size_t kIdLimit = 2048;

std::string write_cursor(const SimRecords::Place& place) {
  return std::to_string(place.first.time_since_epoch().count()) + ":" + std::to_string(place.second);
}

std::optional<SimRecords::Place> read_cursor(const std::string& cursor) {
  std::int64_t time = 0;
  std::uint64_t sequence = 0;
  const char* end = cursor.data() + cursor.size();
  const auto first = std::from_chars(cursor.data(), end, time);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') {
    return std::nullopt;
  }
  const auto second = std::from_chars(first.ptr + 1, end, sequence);
  if (second.ec != std::errc() || second.ptr != end) {
    return std::nullopt;
  }
  return SimRecords::Place(WallTime(Duration(time)), sequence);
}

}  // namespace

void SimStore::fail_next(StoreCall call, std::size_t times, Error error) {
  const MutexLock lock(mutex_);
  planned_.push_back({call, {}, times, {std::move(error), false}});
}

void SimStore::apply_then_fail_next(StoreCall call, std::size_t times, Error error) {
  const MutexLock lock(mutex_);
  planned_.push_back({call, {}, times, {std::move(error), true}});
}

void SimStore::fail_message(StoreCall call, const std::string& id, std::size_t times, Error error, bool applied) {
  const MutexLock lock(mutex_);
  planned_.push_back({call, id, times, {std::move(error), applied}});
}

void SimStore::set_fault_source(FaultSource source) {
  const MutexLock lock(mutex_);
  source_ = std::move(source);
}

std::size_t SimStore::lose_receipts(const QueueAddress& address, Duration visibility) {
  const WallTime now = clock_.wall_now();
  const MutexLock lock(mutex_);
  return queues_[address.queue].take_away(address.type, later(now, visibility), now);
}

void SimStore::set_latency(StoreCall call, Duration latency) {
  const MutexLock lock(mutex_);
  latency_[call] = latency;
}

std::vector<StoreCallRecord> SimStore::calls() const {
  const MutexLock lock(mutex_);
  return calls_;
}

std::size_t SimStore::count(StoreCall call) const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::count_if(calls_.begin(), calls_.end(),
                                                [call](const StoreCallRecord& record) { return record.call == call; }));
}

void SimStore::forget_calls() {
  const MutexLock lock(mutex_);
  calls_.clear();
}

std::optional<StoreFault> SimStore::planned(StoreCall call, const std::string& id) {
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

std::optional<StoreFault> SimStore::fate(const std::optional<StoreFault>& whole, StoreCall call,
                                         const std::string& id) {
  return whole ? whole : planned(call, id);
}

std::optional<StoreFault> SimStore::begin(StoreCall call, const QueueAddress& address, std::size_t items,
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

Result<std::vector<Claim>> SimStore::claim(const QueueAddress& address, std::size_t max, Duration visibility,
                                           Deadline deadline) {
  const auto fault = begin(StoreCall::claim, address, max, deadline);
  const WallTime now = clock_.wall_now();
  const MutexLock lock(mutex_);
  if (fault && !fault->applied) {
    return fault->error;
  }
  std::vector<Claim> claims = queues_[address.queue].claim(address.type, max, visibility, now);
  if (fault) {
    return fault->error;
  }
  return claims;
}

std::vector<SettleResult> SimStore::settle(const QueueAddress& address, std::span<const queue::Settlement> settlements,
                                           Deadline deadline) {
  const auto fault = begin(StoreCall::settle, address, settlements.size(), deadline);
  const WallTime now = clock_.wall_now();
  const MutexLock lock(mutex_);
  SimRecords& records = queues_[address.queue];
  std::vector<SettleResult> results;
  results.reserve(settlements.size());
  for (const queue::Settlement& settlement : settlements) {
    const auto hit = fate(fault, StoreCall::settle, settlement.receipt.id);
    SettleStatus status = SettleStatus::failed;
    if (!hit || hit->applied) {
      status = records.settle(address.type, settlement, now) ? SettleStatus::applied : SettleStatus::lost;
    }
    results.push_back(hit ? SettleResult{SettleStatus::failed, hit->error} : SettleResult{status, {}});
  }
  return results;
}

std::vector<ExtendResult> SimStore::extend(const QueueAddress& address, std::span<const queue::Receipt> receipts,
                                           Duration visibility, Deadline deadline) {
  const auto fault = begin(StoreCall::extend, address, receipts.size(), deadline);
  const WallTime now = clock_.wall_now();
  const WallTime until = later(now, visibility);
  const MutexLock lock(mutex_);
  SimRecords& records = queues_[address.queue];
  std::vector<ExtendResult> results;
  results.reserve(receipts.size());
  for (const queue::Receipt& receipt : receipts) {
    const auto hit = fate(fault, StoreCall::extend, receipt.id);
    std::optional<queue::Receipt> renewed;
    if (!hit || hit->applied) {
      renewed = records.extend(address.type, receipt, until, now);
    }
    ExtendResult result;
    if (hit) {
      result = {.status = SettleStatus::failed, .receipt = receipt, .invisible_until = {}, .error = hit->error};
    } else if (renewed) {
      result = {.status = SettleStatus::applied, .receipt = *renewed, .invisible_until = until, .error = {}};
    } else {
      result = {.status = SettleStatus::lost, .receipt = receipt, .invisible_until = {}, .error = {}};
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<SendResult> SimStore::send(const std::string& queue, std::span<const queue::NewMessage> messages,
                                       Deadline deadline) {
  const auto fault = begin(StoreCall::send, {queue}, messages.size(), deadline);
  const WallTime now = clock_.wall_now();
  const MutexLock lock(mutex_);
  SimRecords& records = queues_[queue];
  std::vector<SendResult> results;
  results.reserve(messages.size());
  for (const queue::NewMessage& message : messages) {
    SendResult result;
    result.id = message.id.empty() ? make_uuid(random_) : message.id;
    const auto hit = fate(fault, StoreCall::send, result.id);
    if (message.id.size() > kIdLimit) {
      result.status = SendStatus::failed;
      result.error = Error(ErrorCode::invalid, "a message id has at most 2048 bytes; this one has " +
                                                   std::to_string(message.id.size()) + "; make it shorter");
    } else if (message.body.size() > kSimBodyLimit) {
      result.status = SendStatus::failed;
      result.error =
          Error(ErrorCode::invalid, "a body has at most 400 KiB; keep the data elsewhere and send its place");
    } else if ((!hit || hit->applied) && !records.send(message, result.id, now)) {
      result.status = SendStatus::duplicate_id;
    }
    if (hit) {
      result.status = SendStatus::failed;
      result.error = hit->error;
    }
    results.push_back(std::move(result));
  }
  return results;
}

Result<queue::StoredMessage> SimStore::get(const std::string& queue, const std::string& id, Deadline deadline) {
  if (const auto fault = begin(StoreCall::get, {queue}, 1, deadline)) {
    return fault->error;
  }
  const MutexLock lock(mutex_);
  const queue::StoredMessage* stored = queues_[queue].find(id);
  if (stored == nullptr) {
    return queue::no_message(queue, id);
  }
  queue::StoredMessage shown = *stored;
  shown.native.clear();
  return shown;
}

Result<queue::ListPage> SimStore::list(const queue::ListRequest& request, Deadline deadline) {
  if (const auto fault = begin(StoreCall::list, request.address, request.limit, deadline)) {
    return fault->error;
  }
  std::optional<SimRecords::Place> after;
  if (!request.cursor.empty()) {
    after = read_cursor(request.cursor);
    if (!after) {
      return Error(ErrorCode::invalid, "\"" + request.cursor + "\" is not a cursor of this list; start without one");
    }
  }
  const MutexLock lock(mutex_);
  const auto found = queues_[request.address.queue].list(request.address.type, after, request.limit + 1);
  queue::ListPage page;
  for (std::size_t i = 0; i < std::min(found.size(), request.limit); ++i) {
    queue::StoredMessage& shown = page.messages.emplace_back(*found[i].second);
    if (!request.content) {
      shown.message.body.clear();
    }
    if (!request.native) {
      shown.native.clear();
    }
  }
  if (found.size() > request.limit && request.limit > 0) {
    page.next = write_cursor(found[request.limit - 1].first);
  }
  return page;
}

Result<queue::QueueStats> SimStore::stats(const QueueAddress& address, Deadline deadline) {
  if (const auto fault = begin(StoreCall::stats, address, 1, deadline)) {
    return fault->error;
  }
  const MutexLock lock(mutex_);
  return queues_[address.queue].stats(address.type, clock_.wall_now());
}

Result<queue::QueueOverview> SimStore::overview(const queue::OverviewRequest& request, Deadline deadline) {
  if (const auto fault = begin(StoreCall::overview, request.address, 1, deadline)) {
    return fault->error;
  }
  const MutexLock lock(mutex_);
  return queues_[request.address.queue].overview(request, clock_.wall_now());
}

std::vector<queue::ChangeResult> SimStore::change(const std::string& queue, std::span<const queue::Change> changes,
                                                  Deadline deadline) {
  const auto fault = begin(StoreCall::change, {queue}, changes.size(), deadline);
  const WallTime now = clock_.wall_now();
  const MutexLock lock(mutex_);
  SimRecords& records = queues_[queue];
  std::vector<queue::ChangeResult> results;
  results.reserve(changes.size());
  for (const queue::Change& change : changes) {
    const auto hit = fate(fault, StoreCall::change, change.id);
    queue::ChangeResult result;
    if (!hit || hit->applied) {
      result = records.change(queue, change, now);
    }
    results.push_back(hit ? queue::ChangeResult{queue::ChangeStatus::failed, 0, hit->error} : std::move(result));
  }
  return results;
}

Result<queue::StoredMessage> SimStore::edit(const std::string& queue, const std::string& id, std::int64_t version,
                                            std::span<const queue::ContentEdit> edits, Deadline deadline) {
  const auto fault = begin(StoreCall::edit, {queue}, edits.size(), deadline);
  const MutexLock lock(mutex_);
  if (fault && !fault->applied) {
    return fault->error;
  }
  auto result = queues_[queue].edit(queue, id, version, edits, clock_.wall_now());
  if (fault) {
    return fault->error;
  }
  return result;
}

std::vector<queue::PutResult> SimStore::put(const std::string& queue, std::span<const queue::StoredMessage> records,
                                            queue::PutMode mode, Deadline deadline) {
  const auto fault = begin(StoreCall::put, {queue}, records.size(), deadline);
  const MutexLock lock(mutex_);
  SimRecords& kept = queues_[queue];
  std::vector<queue::PutResult> results;
  results.reserve(records.size());
  for (const queue::StoredMessage& record : records) {
    const auto hit = fate(fault, StoreCall::put, record.message.id);
    queue::PutResult result;
    if (record.message.id.empty() || record.message.id.size() > kIdLimit) {
      result = {queue::PutStatus::failed, Error(ErrorCode::invalid, "a message id has 1 to 2048 bytes")};
    } else if (record.message.body.size() > kSimBodyLimit) {
      result = {queue::PutStatus::failed, Error(ErrorCode::invalid, "a body has at most 400 KiB")};
    } else if (!hit || hit->applied) {
      result.status = kept.put(record, mode);
    }
    results.push_back(hit ? queue::PutResult{queue::PutStatus::failed, hit->error} : std::move(result));
  }
  return results;
}

}  // namespace sluice::test
