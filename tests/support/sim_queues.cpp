#include "tests/support/sim_queues.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/mutex.hpp"
#include "base/uuid.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/writes.hpp"
#include "tests/support/sim_board.hpp"
#include "tests/support/sim_keys.hpp"
#include "tests/support/sim_records.hpp"
#include "tests/support/sim_send_marks.hpp"

namespace sluice::test {

using queue::ExtendResult;
using queue::QueueAddress;
using queue::SendResult;
using queue::SendStatus;
using queue::SettleResult;
using queue::SettleStatus;
namespace core = queue::core;

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

// What all roles of all queues share.
class SimQueues::Shelf {
 public:
  Shelf(const Clock& its_clock, Random& its_random, SimFaults& its_faults)
      : clock(its_clock), random(its_random), faults(its_faults) {}

  // Fixed after construction.
  const Clock& clock;
  // Synchronise themselves.
  Random& random;
  SimFaults& faults;
  queue::Doorbell doorbell;
  SimNotices notices;

  Mutex mutex;
  std::map<std::string, SimRecords> queues SLUICE_GUARDED_BY(mutex);
  std::map<std::string, SimSendMarks> sent SLUICE_GUARDED_BY(mutex);
  std::map<std::string, SimKeyTable> keys SLUICE_GUARDED_BY(mutex);

  SimKeyTable& keys_of(const std::string& queue) SLUICE_REQUIRES(mutex) {
    return keys.try_emplace(queue, clock).first->second;
  }
  SimAccounts accounts SLUICE_GUARDED_BY(mutex);

  SettleResult settle(const QueueAddress& address, const queue::Completion& completion, WallTime now)
      SLUICE_REQUIRES(mutex);
  /// Why this part of its transaction cannot be made; otherwise `after` is the table as its writes leave it.
  std::optional<SettleResult> stop_at(core::TransactionPart part, const QueueAddress& address,
                                      const queue::Completion& completion, SimAccounts& after, WallTime now)
      SLUICE_REQUIRES(mutex);
};

// All of it, or nothing.
SettleResult SimQueues::Shelf::settle(const QueueAddress& address, const queue::Completion& completion, WallTime now) {
  const queue::Effects* effects = completion.effects.get();
  if (effects == nullptr) {
    const bool held = queues[address.queue].settle(address.half, completion, now);
    return {held ? SettleStatus::applied : SettleStatus::lost, {}};
  }
  if (auto refused = core::refused_at_once(*effects, core::WriteKind::sql)) {
    return std::move(*refused);
  }
  SimAccounts after = accounts;
  for (const core::TransactionPart part : core::kTransactionOrder) {
    if (auto stopped = stop_at(part, address, completion, after, now)) {
      return std::move(*stopped);
    }
  }
  accounts = std::move(after);
  queues[address.queue].settle(address.half, completion, now);
  for (const queue::EmittedMessage& emitted : effects->messages) {
    SimRecords& records = queues[emitted.queue];
    SimSendMarks& marks = sent[emitted.queue];
    const auto find = [&records](const std::string& id) { return records.find(id); };
    if (!marks.first_of(emitted.message, now, find)) {
      records.send(emitted.message, emitted.message.id, now);
      marks.note(emitted.message, *records.find(emitted.message.id));
    }
  }
  if (effects->key) {
    keys_of(address.queue).record(*effects->key, completion.receipt.id);
  }
  return {SettleStatus::applied, {}};
}

std::optional<SettleResult> SimQueues::Shelf::stop_at(core::TransactionPart part, const QueueAddress& address,
                                                      const queue::Completion& completion, SimAccounts& after,
                                                      WallTime now) {
  const queue::Effects& effects = *completion.effects;
  switch (part) {
    case core::TransactionPart::end:
      if (!queues[address.queue].holds(address.half, completion.receipt)) {
        return SettleResult{SettleStatus::lost, {}};
      }
      break;
    case core::TransactionPart::key:
      if (effects.key && !keys_of(address.queue).may_record(*effects.key, completion.receipt.id)) {
        return SettleResult{SettleStatus::refused, queue::taken_key()};
      }
      break;
    case core::TransactionPart::writes:
      for (std::size_t i = 0; i < effects.writes.size(); ++i) {
        if (auto why = after.run(effects.writes[i], i)) {
          return SettleResult{SettleStatus::refused,
                              {ErrorCode::conflict, std::move(*why)},
                              effects.writes[i].on_refusal == queue::OnRefusal::reject};
        }
      }
      break;
    case core::TransactionPart::messages:
      for (const queue::EmittedMessage& emitted : effects.messages) {
        SimRecords& records = queues[emitted.queue];
        const auto find = [&records](const std::string& id) { return records.find(id); };
        if (records.find(emitted.message.id) != nullptr && !sent[emitted.queue].first_of(emitted.message, now, find)) {
          return core::refused_message(emitted, queue::taken_id());
        }
      }
      break;
  }
  return std::nullopt;
}

class SimQueues::SimSource final : public queue::Source {
 public:
  SimSource(Shelf& shelf, QueueAddress address) : shelf_(shelf), address_(std::move(address)) {}

  const queue::SourceTraits& traits() const override {
    static const queue::SourceTraits kTraits{
        .groups = true, .sequence = true, .priorities = true, .transactions = true, .checkpoints = true};
    return kTraits;
  }
  void start(queue::SourceEvents events) override {
    if (events.on_ready) {
      const MutexLock lock(mutex_);
      subscription_ = shelf_.doorbell.subscribe(address_, std::move(events.on_ready));
    }
  }
  void stop() override {
    queue::Doorbell::Subscription ended;
    const MutexLock lock(mutex_);
    std::swap(ended, subscription_);
  }
  Result<queue::Claimed> claim(const queue::ClaimRequest& request, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const queue::Completion> completions, Deadline deadline) override;
  std::vector<ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                   Deadline deadline) override;

 private:
  Shelf& shelf_;
  const QueueAddress address_;
  Mutex mutex_;
  queue::Doorbell::Subscription subscription_ SLUICE_GUARDED_BY(mutex_);
};

class SimQueues::SimSender final : public queue::Sender {
 public:
  SimSender(Shelf& shelf, std::string queue) : shelf_(shelf), queue_(std::move(queue)) {}
  std::vector<SendResult> send(std::span<const queue::NewMessage> messages, Deadline deadline) override;

 private:
  static void put_down(const queue::NewMessage& message, SimRecords& records, SimSendMarks& marks, WallTime now,
                       SendResult& result);

  Shelf& shelf_;
  const std::string queue_;
};

class SimQueues::SimOperator final : public queue::Operator {
 public:
  SimOperator(Shelf& shelf, std::string queue) : shelf_(shelf), queue_(std::move(queue)) {}

  Result<queue::StoredMessage> get(const std::string& id, Deadline deadline) override;
  Result<queue::ListPage> list(const queue::ListRequest& request, Deadline deadline) override;
  Result<queue::QueueStats> stats(const queue::StatsRequest& request, Deadline deadline) override;
  Result<queue::QueueOverview> overview(const queue::OverviewRequest& request, Deadline deadline) override;
  std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline deadline) override;
  Result<queue::StoredMessage> edit(const std::string& id, std::int64_t version,
                                    std::span<const queue::ContentEdit> edits, Deadline deadline) override;
  std::vector<queue::PutResult> put(std::span<const queue::StoredMessage> records, queue::PutMode mode,
                                    Deadline deadline) override;

 private:
  Shelf& shelf_;
  const std::string queue_;
};

SimQueues::SimQueues(const Clock& clock, Random& random)
    : SimFaults(clock), shelf_(std::make_unique<Shelf>(clock, random, *this)) {}

SimQueues::~SimQueues() = default;

Result<std::unique_ptr<queue::Source>> SimQueues::open_source(const QueueAddress& address) {
  return std::unique_ptr<queue::Source>(std::make_unique<SimSource>(*shelf_, address));
}

Result<std::unique_ptr<queue::Sender>> SimQueues::open_sender(const std::string& queue) {
  return std::unique_ptr<queue::Sender>(std::make_unique<SimSender>(*shelf_, queue));
}

Result<std::unique_ptr<queue::Operator>> SimQueues::open_operator(const std::string& queue) {
  return std::unique_ptr<queue::Operator>(std::make_unique<SimOperator>(*shelf_, queue));
}

Result<std::unique_ptr<queue::NoticeBoard>> SimQueues::open_board(const std::string&) {
  return std::make_unique<SimBoard>(shelf_->notices, shelf_->doorbell, *this, shelf_->clock);
}

Result<std::unique_ptr<queue::IdempotencyKeys>> SimQueues::open_keys(const std::string& queue) {
  const MutexLock lock(shelf_->mutex);
  return std::unique_ptr<queue::IdempotencyKeys>(std::make_unique<SimKeys>(shelf_->keys_of(queue)));
}

SimAccounts SimQueues::accounts() {
  const MutexLock lock(shelf_->mutex);
  return shelf_->accounts;
}

queue::Doorbell& SimQueues::doorbell() { return shelf_->doorbell; }

std::size_t SimQueues::lose_receipts(const QueueAddress& address, Duration visibility) {
  const WallTime now = shelf_->clock.wall_now();
  const MutexLock lock(shelf_->mutex);
  return shelf_->queues[address.queue].take_away(address.half, queue::later(now, visibility), now);
}

Result<queue::Claimed> SimQueues::SimSource::claim(const queue::ClaimRequest& request, Deadline deadline) {
  const SteadyTime asked_at = shelf_.clock.steady_now();
  const auto fault = shelf_.faults.begin(StoreCall::claim, address_, request.max, deadline);
  if (fault && !fault->applied) {
    return fault->error;
  }
  const WallTime now = shelf_.clock.wall_now();
  const MutexLock lock(shelf_.mutex);
  SimRecords& records = shelf_.queues[address_.queue];
  queue::ClaimRequest allowed = request;
  if (const std::uint64_t limit = request.rules.max_in_flight; limit > 0 && request.max > 0) {
    const std::uint64_t flying = records.stats(address_.half, now).in_flight;
    if (flying >= limit) {
      return queue::in_flight_limit(address_.queue, limit);
    }
    allowed.max = static_cast<std::size_t>(std::min<std::uint64_t>(request.max, limit - flying));
  }
  queue::Claimed claimed = records.claim(address_.half, allowed, now);
  for (queue::Delivery& delivery : claimed.deliveries) {
    delivery.leased_until = asked_at + request.visibility;
    if (!request.own_ids_of.empty()) {
      delivery.own_id = shelf_.keys_of(address_.queue).own_id(request.own_ids_of, delivery.message.id);
    }
  }
  if (fault) {
    return fault->error;
  }
  return claimed;
}

std::vector<SettleResult> SimQueues::SimSource::settle(std::span<const queue::Completion> completions,
                                                       Deadline deadline) {
  const auto fault = shelf_.faults.begin(StoreCall::settle, address_, completions.size(), deadline);
  const WallTime now = shelf_.clock.wall_now();
  std::vector<SettleResult> results;
  results.reserve(completions.size());
  {
    const MutexLock lock(shelf_.mutex);
    for (const queue::Completion& completion : completions) {
      const auto hit = shelf_.faults.fate(fault, StoreCall::settle, completion.receipt.id);
      SettleResult result;
      if (!hit || hit->applied) {
        result = shelf_.settle(address_, completion, now);
        result.version = completion.receipt.version + 1;
      }
      results.push_back(hit ? SettleResult{SettleStatus::failed, hit->error} : std::move(result));
    }
  }
  shelf_.doorbell.ring_settled(address_, completions, results);
  return results;
}

std::vector<ExtendResult> SimQueues::SimSource::extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                                       Deadline deadline) {
  const SteadyTime asked_at = shelf_.clock.steady_now();
  const auto fault = shelf_.faults.begin(StoreCall::extend, address_, receipts.size(), deadline);
  const WallTime now = shelf_.clock.wall_now();
  const WallTime until = queue::later(now, visibility);
  const MutexLock lock(shelf_.mutex);
  SimRecords& records = shelf_.queues[address_.queue];
  std::vector<ExtendResult> results;
  results.reserve(receipts.size());
  for (const queue::Receipt& receipt : receipts) {
    const auto hit = shelf_.faults.fate(fault, StoreCall::extend, receipt.id);
    std::optional<queue::Receipt> renewed;
    if (!hit || hit->applied) {
      renewed = records.extend(address_.half, receipt, until, now);
    }
    ExtendResult result{.status = SettleStatus::lost, .receipt = receipt, .leased_until = {}, .error = {}};
    if (hit) {
      result.status = SettleStatus::failed;
      result.error = hit->error;
    } else if (renewed) {
      result.status = SettleStatus::applied;
      result.receipt = *renewed;
      result.leased_until = asked_at + visibility;
    }
    results.push_back(std::move(result));
  }
  return results;
}

void SimQueues::SimSender::put_down(const queue::NewMessage& message, SimRecords& records, SimSendMarks& marks,
                                    WallTime now, SendResult& result) {
  const auto find = [&records](const std::string& id) { return records.find(id); };
  if (auto first = marks.first_of(message, now, find)) {
    result.status = SendStatus::deduplicated;
    result.id = std::move(*first);
  } else if (!records.send(message, result.id, now)) {
    result.status = SendStatus::duplicate_id;
  } else {
    marks.note(message, *records.find(result.id));
  }
}

std::vector<SendResult> SimQueues::SimSender::send(std::span<const queue::NewMessage> messages, Deadline deadline) {
  const auto fault = shelf_.faults.begin(StoreCall::send, {queue_}, messages.size(), deadline);
  const WallTime now = shelf_.clock.wall_now();
  std::vector<SendResult> results;
  results.reserve(messages.size());
  {
    const MutexLock lock(shelf_.mutex);
    SimRecords& records = shelf_.queues[queue_];
    SimSendMarks& marks = shelf_.sent[queue_];
    for (const queue::NewMessage& message : messages) {
      SendResult result;
      result.id = message.id.empty() ? make_uuid(shelf_.random) : message.id;
      const auto hit = shelf_.faults.fate(fault, StoreCall::send, result.id);
      if (message.id.size() > kIdLimit) {
        result.status = SendStatus::failed;
        result.error = Error(ErrorCode::invalid, "a message id has at most 2048 bytes; this one has " +
                                                     std::to_string(message.id.size()) + "; make it shorter");
      } else if (message.body.size() > kSimBodyLimit) {
        result.status = SendStatus::failed;
        result.error =
            Error(ErrorCode::invalid, "a body has at most 400 KiB; keep the data elsewhere and send its place");
      } else if (auto refused = queue::refused_send_keys(message)) {
        result.status = SendStatus::failed;
        result.error = std::move(*refused);
      } else if (!hit || hit->applied) {
        put_down(message, records, marks, now, result);
      }
      if (hit) {
        result.status = SendStatus::failed;
        result.error = hit->error;
      }
      results.push_back(std::move(result));
    }
  }
  shelf_.doorbell.ring_sent(queue_, messages, results);
  return results;
}

Result<queue::StoredMessage> SimQueues::SimOperator::get(const std::string& id, Deadline deadline) {
  if (const auto fault = shelf_.faults.begin(StoreCall::get, {queue_}, 1, deadline)) {
    return fault->error;
  }
  const MutexLock lock(shelf_.mutex);
  const queue::StoredMessage* stored = shelf_.queues[queue_].find(id);
  if (stored == nullptr) {
    return queue::no_message(queue_, id);
  }
  queue::StoredMessage shown = *stored;
  shown.native.clear();
  return shown;
}

Result<queue::ListPage> SimQueues::SimOperator::list(const queue::ListRequest& request, Deadline deadline) {
  if (const auto fault = shelf_.faults.begin(StoreCall::list, {queue_, request.half}, request.limit, deadline)) {
    return fault->error;
  }
  std::optional<SimRecords::Place> after;
  if (!request.cursor.empty()) {
    after = read_cursor(request.cursor);
    if (!after) {
      return Error(ErrorCode::invalid, "\"" + request.cursor + "\" is not a cursor of this list; start without one");
    }
  }
  const MutexLock lock(shelf_.mutex);
  const auto found = shelf_.queues[queue_].list(request.half, after, request.limit + 1, request.newest_first);
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

Result<queue::QueueStats> SimQueues::SimOperator::stats(const queue::StatsRequest& request, Deadline deadline) {
  if (const auto fault = shelf_.faults.begin(StoreCall::stats, {queue_, request.half}, 1, deadline)) {
    return fault->error;
  }
  const MutexLock lock(shelf_.mutex);
  return shelf_.queues[queue_].stats(request.half, shelf_.clock.wall_now());
}

Result<queue::QueueOverview> SimQueues::SimOperator::overview(const queue::OverviewRequest& request,
                                                              Deadline deadline) {
  if (const auto fault = shelf_.faults.begin(StoreCall::overview, {queue_, request.half}, 1, deadline)) {
    return fault->error;
  }
  const MutexLock lock(shelf_.mutex);
  return shelf_.queues[queue_].overview(request, shelf_.clock.wall_now());
}

std::vector<queue::ChangeResult> SimQueues::SimOperator::change(std::span<const queue::Change> changes,
                                                                Deadline deadline) {
  const auto fault = shelf_.faults.begin(StoreCall::change, {queue_}, changes.size(), deadline);
  const WallTime now = shelf_.clock.wall_now();
  std::vector<queue::ChangeResult> results;
  results.reserve(changes.size());
  {
    const MutexLock lock(shelf_.mutex);
    SimRecords& records = shelf_.queues[queue_];
    for (const queue::Change& change : changes) {
      const auto hit = shelf_.faults.fate(fault, StoreCall::change, change.id);
      queue::ChangeResult result;
      if (!hit || hit->applied) {
        result = records.change(queue_, change, now);
      }
      results.push_back(hit ? queue::ChangeResult{queue::ChangeStatus::failed, 0, hit->error} : std::move(result));
    }
  }
  shelf_.doorbell.ring_changed(queue_, changes, results);
  return results;
}

Result<queue::StoredMessage> SimQueues::SimOperator::edit(const std::string& id, std::int64_t version,
                                                          std::span<const queue::ContentEdit> edits,
                                                          Deadline deadline) {
  const auto fault = shelf_.faults.begin(StoreCall::edit, {queue_}, edits.size(), deadline);
  if (fault && !fault->applied) {
    return fault->error;
  }
  const MutexLock lock(shelf_.mutex);
  auto result = shelf_.queues[queue_].edit(queue_, id, version, edits, shelf_.clock.wall_now());
  if (fault) {
    return fault->error;
  }
  return result;
}

std::vector<queue::PutResult> SimQueues::SimOperator::put(std::span<const queue::StoredMessage> records,
                                                          queue::PutMode mode, Deadline deadline) {
  const auto fault = shelf_.faults.begin(StoreCall::put, {queue_}, records.size(), deadline);
  std::vector<queue::PutResult> results;
  results.reserve(records.size());
  {
    const MutexLock lock(shelf_.mutex);
    SimRecords& kept = shelf_.queues[queue_];
    for (const queue::StoredMessage& record : records) {
      const auto hit = shelf_.faults.fate(fault, StoreCall::put, record.message.id);
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
  }
  shelf_.doorbell.ring_put(queue_, results);
  return results;
}

}  // namespace sluice::test
