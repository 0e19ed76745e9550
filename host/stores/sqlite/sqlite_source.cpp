#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "host/stores/sqlite/roles.hpp"
#include "host/stores/sqlite/shared_store.hpp"
#include "host/stores/sqlite/store_lock_file.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kBatchItems = 1'000;  // of one transaction
// A call makes no further transaction once it has lasted so long, so that its caller hears of what is done.
constexpr Duration kLongestCall = std::chrono::milliseconds(500);

Error time_is_up() {
  return {
      ErrorCode::unavailable,
      "the effects of other messages took the time of this settlement; their SQL statements are slow, see what they "
      "wait for"};
}

struct Claiming {
  Claimed claimed;
  bool over_limit = false;
  std::optional<Kept> overruled{};
};

std::string by(Kept kept) {
  return kept == Kept::queue ? "one after the other" : kept == Kept::group ? "in order by group" : "in turns by group";
}

/// What a claim may take beside what is in flight; false: nothing.
bool make_room(Records& records, std::int64_t half, ClaimRequest& request, WallTime now) {
  if (request.rules.max_in_flight == 0 || request.max == 0) {
    return true;
  }
  const std::uint64_t room = records.ready().room(half, request.rules.max_in_flight, now);
  request.max = static_cast<std::size_t>(std::min<std::uint64_t>(request.max, room));
  return room > 0;
}

/// What one call settles. It is the call's and the store's together, for the caller may leave before the disk answers.
struct Settling {
  explicit Settling(std::span<const Completion> batch)
      : completions(batch.begin(), batch.end()),
        results(completions.size()),
        effects(std::any_of(completions.begin(), completions.end(),
                            [](const Completion& one) { return one.effects != nullptr; })) {
    course.todo.resize(completions.size());
    std::iota(course.todo.begin(), course.todo.end(), std::size_t{0});
  }
  /// After a transaction that failed: whether another one may go through.
  bool goes_on(const Error& error) { return effects && course.goes_on(error); }

  std::vector<Completion> completions;
  std::vector<SettleResult> results;
  const bool effects;  ///< some have them; without, all is done in one transaction
  EffectWriter::Course course;
  // Something can be claimed that waited for one of these: in this half, or in the standard one.
  bool offered = false;
  bool let_go = false;
};

class SqliteSource final : public Source {
 public:
  SqliteSource(SharedStore& store, QueueAddress address) : store_(store), address_(std::move(address)) {}
  ~SqliteSource() override { stop(); }

  const SourceTraits& traits() const override { return kSqliteTraits; }
  void start(SourceEvents events) override;
  void stop() override;

  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override;
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override;

 private:
  Result<Claimed> look(const ClaimRequest& request, Deadline deadline);
  std::vector<SettleResult> settle_batch(std::span<const Completion> completions, Deadline deadline);
  Result<void> settle_some(const std::shared_ptr<Settling>& settling, Deadline deadline);
  std::vector<ExtendResult> extend_batch(std::span<const Receipt> receipts, Duration visibility, Deadline deadline);
  std::shared_ptr<BellWatch> watch() {
    const MutexLock lock(mutex_);
    return watch_;
  }

  // Fixed after construction.
  SharedStore& store_;
  const QueueAddress address_;
  // Synchronises itself.
  std::atomic<bool> limited_{false};  ///< the last claim had a limit of what may be in flight
  std::atomic<bool> told_of_order_{false};

  Mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<BellWatch> watch_ SLUICE_GUARDED_BY(mutex_);
  Doorbell::Subscription listening_ SLUICE_GUARDED_BY(mutex_);
};

void SqliteSource::start(SourceEvents events) {
  if (!events.on_ready) {
    return;
  }
  const auto watch = std::make_shared<BellWatch>(store_.lock_file(), address_, std::move(events.on_ready));
  auto listening = store_.doorbell().subscribe(address_, [watch = watch.get()] { watch->ring(); });
  const MutexLock lock(mutex_);
  watch_ = watch;
  listening_ = std::move(listening);
}

void SqliteSource::stop() {
  // The last to go is the watch, which waits for its thread.
  std::shared_ptr<BellWatch> watch;
  Doorbell::Subscription ended;
  const MutexLock lock(mutex_);
  ended = std::move(listening_);
  watch = std::move(watch_);
}

Result<Claimed> SqliteSource::claim(const ClaimRequest& request, Deadline deadline) {
  const auto watch = this->watch();
  // In this order: whoever sends has written before he rings.
  const std::uint64_t heard = watch ? watch->heard() : 0;
  auto claimed = look(request, deadline);
  const bool over_limit = !claimed && claimed.error().code() == ErrorCode::over_limit;
  if (watch && (over_limit || (claimed && claimed->deliveries.size() < request.max))) {
    watch->arm(heard);
  }
  return claimed;
}

Result<Claimed> SqliteSource::look(const ClaimRequest& request, Deadline deadline) {
  const auto work = [request, address = address_, &clock = store_.clock()](Writer& writer) {
    Claiming claiming;
    const Lease lease(clock, request.visibility);
    writer.records.ready().look(lease.now, lease.from);
    if (const std::int64_t queue = writer.records.queue(address.queue); queue != 0) {
      const std::int64_t half = half_of(queue, address.half);
      ClaimRequest fitting = request;
      claiming.over_limit = !make_room(writer.records, half, fitting, lease.now);
      if (!claiming.over_limit) {
        claiming.claimed = writer.claimer.claim(half, fitting, lease);
        claiming.overruled = writer.claimer.overruled();
        if (!fitting.own_ids_of.empty()) {
          writer.keys.look_up(queue, fitting.own_ids_of, claiming.claimed.deliveries, lease.now);
        }
      }
    }
    return claiming;
  };
  // What was claimed for somebody who has left is given back.
  const auto undo = [address = address_, &clock = store_.clock()](Writer& writer, const Claiming& claiming) {
    const std::int64_t half = half_of(writer.records.queue(address.queue), address.half);
    for (const Delivery& delivery : claiming.claimed.deliveries) {
      writer.records.settle(half,
                            {.receipt = delivery.receipt, .action = CompletionAction::release, .marks = std::nullopt},
                            clock.wall_now());
    }
  };
  SLUICE_TRY(claiming, store_.write<Claiming>({.work = work, .flush = false, .undo = undo}, deadline));
  if (claiming->overruled && !told_of_order_.exchange(true)) {
    store_.report("queue '" + address_.queue + "' is handed out " + by(*claiming->overruled) +
                  ", as another job asks for, or has asked for; what this one asks for is less, and holds once the "
                  "queue has been empty and nobody asks for more; give both jobs the same order");
  }
  limited_ = request.rules.max_in_flight > 0;
  if (claiming->over_limit) {
    return in_flight_limit(address_.queue, request.rules.max_in_flight);
  }
  return std::move(claiming->claimed);
}

std::vector<SettleResult> SqliteSource::settle(std::span<const Completion> completions, Deadline deadline) {
  return in_batches<SettleResult>(completions, kBatchItems,
                                  [&](std::span<const Completion> batch) { return settle_batch(batch, deadline); });
}

std::vector<SettleResult> SqliteSource::settle_batch(std::span<const Completion> completions, Deadline deadline) {
  const auto settling = std::make_shared<Settling>(completions);
  EffectWriter::Course& course = settling->course;
  const SteadyTime enough = machine_after(kLongestCall);
  while (!course.todo.empty()) {
    const auto done = settle_some(settling, deadline);
    if (!done && settling->goes_on(done.error())) {
      continue;
    }
    // Those that are left go into a transaction of their own, or, once something is done, into another call.
    if (done) {
      course.committed();
    }
    const bool late = course.todo.size() < completions.size() && machine_now() >= enough;
    if (!done || late) {
      // The store may be at the rest yet, so that its results are not touched.
      std::vector<SettleResult> results(
          completions.size(), done ? SettleResult{.status = SettleStatus::failed, .error = time_is_up(), .left = true}
                                   : SettleResult{.status = SettleStatus::failed, .error = done.error()});
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (!std::binary_search(course.todo.begin(), course.todo.end(), i)) {
          results[i] = settling->results[i];
        }
      }
      return results;
    }
  }
  return std::move(settling->results);
}

/// One transaction.
Result<void> SqliteSource::settle_some(const std::shared_ptr<Settling>& settling, Deadline deadline) {
  settling->course.begun = 0;  // Where none begins.
  auto& unconfirmed = store_.unconfirmed();
  const auto work = [settling, address = address_, &clock = store_.clock(), &unconfirmed](Writer& writer) {
    auto& batch = settling->completions;
    auto& outcomes = settling->results;
    for (const std::size_t i : settling->course.todo) {
      batch[i].receipt = unconfirmed.current(std::move(batch[i].receipt));
    }
    const std::int64_t queue = writer.records.queue(address.queue);
    const std::int64_t half = half_of(queue, address.half);
    if (settling->effects) {
      writer.effects.settle(half, batch, outcomes, settling->course, clock.wall_now());
    } else {
      writer.records.settle(half, batch, outcomes, clock.wall_now());
    }
    settling->offered = writer.records.groups().take_offered(half);
    settling->let_go = writer.records.groups().take_offered(half_of(queue, Half::standard));
    for (const std::size_t i : settling->course.todo) {
      if (outcomes[i].status == SettleStatus::lost && unconfirmed.settled(batch[i].receipt)) {
        outcomes[i].status = SettleStatus::applied;
      }
      outcomes[i].version = batch[i].receipt.version + 1;
    }
    return settling;
  };
  using Settled = std::shared_ptr<Settling>;
  const auto ring = [address = address_, limited = limited_.load(),
                     &doorbell = store_.doorbell()](const Settled& settled) {
    if (settled->offered) {
      doorbell.ring(address);
    }
    if (settled->let_go) {
      doorbell.ring({address.queue, Half::standard});
    }
    doorbell.ring_settled(address, settled->completions, settled->results);
    const auto ended = [](const Completion& one) { return one.action != CompletionAction::keep; };
    if (limited && std::any_of(settled->completions.begin(), settled->completions.end(), ended)) {
      doorbell.ring(address);  // there may be room in flight again
    }
  };
  const auto remember = [&unconfirmed](const Settled& settled) {
    for (const std::size_t i : settled->course.todo) {
      const Completion& completion = settled->completions[i];
      if (has_ended(completion, settled->results[i])) {
        unconfirmed.add_settled(completion.receipt);
      } else if (settled->results[i].status == SettleStatus::applied) {
        unconfirmed.add_extended(completion.receipt);
      }
    }
  };
  SLUICE_PASS_ON(store_.write<Settled>({.work = work, .committed = ring, .unconfirmed = remember}, deadline));
  return {};
}

std::vector<ExtendResult> SqliteSource::extend(std::span<const Receipt> receipts, Duration visibility,
                                               Deadline deadline) {
  return in_batches<ExtendResult>(
      receipts, kBatchItems, [&](std::span<const Receipt> batch) { return extend_batch(batch, visibility, deadline); });
}

std::vector<ExtendResult> SqliteSource::extend_batch(std::span<const Receipt> receipts, Duration visibility,
                                                     Deadline deadline) {
  struct Extended {
    std::vector<Receipt> before;
    std::vector<ExtendResult> results;
  };
  auto& unconfirmed = store_.unconfirmed();
  const auto work = [receipts = std::vector<Receipt>(receipts.begin(), receipts.end()), address = address_, visibility,
                     &clock = store_.clock(), &unconfirmed](Writer& writer) {
    Extended extended;
    const Lease lease(clock, visibility);
    const std::int64_t half = half_of(writer.records.queue(address.queue), address.half);
    for (const Receipt& given : receipts) {
      const Receipt& receipt = extended.before.emplace_back(unconfirmed.current(given));
      const auto renewed = writer.records.extend(half, receipt, lease);
      extended.results.push_back(renewed ? ExtendResult{SettleStatus::applied, *renewed, lease.held_until, {}}
                                         : ExtendResult{SettleStatus::lost, receipt, {}, {}});
    }
    return extended;
  };
  const auto remember = [&unconfirmed](const Extended& extended) {
    for (std::size_t i = 0; i < extended.results.size(); ++i) {
      if (extended.results[i].status == SettleStatus::applied) {
        unconfirmed.add_extended(extended.before[i]);
      }
    }
  };
  auto extended = store_.write<Extended>({.work = work, .flush = false, .unconfirmed = remember}, deadline);
  if (extended) {
    return std::move(extended->results);
  }
  std::vector<ExtendResult> failed;
  for (const Receipt& receipt : receipts) {
    failed.push_back({SettleStatus::failed, receipt, {}, extended.error()});
  }
  return failed;
}

}  // namespace

std::unique_ptr<Source> make_source(SharedStore& store, QueueAddress address) {
  return std::make_unique<SqliteSource>(store, std::move(address));
}

}  // namespace sluice::queue::sqlite
