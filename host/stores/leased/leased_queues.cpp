#include "host/stores/leased/leased_queues.hpp"

#include <utility>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_operator.hpp"
#include "host/stores/leased/leased_sender.hpp"
#include "host/stores/leased/leased_source.hpp"
#include "host/stores/leased/leased_wake_place.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/leased/shard_move_ownership.hpp"
#include "host/stores/table/ringers.hpp"
#include "host/stores/table/table_board.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::leased {
namespace {

constexpr Duration kShardsTime = std::chrono::seconds(5);

const LeasedLocation& location_of(const LeasedOptions& options, const std::string& queue) {
  static const LeasedLocation kDefault;
  const auto found = options.queues.find(queue);
  return found == options.queues.end() ? kDefault : found->second;
}

// Without an index, by which messages about the table tell the layout.
table::QueueTable locate(const LeasedOptions& options, const std::string& queue) {
  return {queue, location_of(options, queue).table, {}, options.region};
}

/// What one queue is known by, with what its halves' writers remember.
struct QueueState {
  QueueState(const LeasedOptions& options, const std::string& name, const table::StoreParts& parts,
             LeasedQueue::OwnWordOf own_word)
      : queue(locate(options, name), location_of(options, name).shards, parts, std::move(own_word)) {}

  WriterState& writer(Half half) { return half == Half::dlq ? dlq : standard; }

  LeasedQueue queue;
  WriterState standard;
  WriterState dlq;
};

class AllLeasedQueues final : public LeasedQueues {
 public:
  AllLeasedQueues(LeasedOptions options, dynamo::Client& client, const Clock& clock, Random& random)
      : options_(std::move(options)),
        client_(client),
        machine_(clock),
        random_(random),
        nonces_(options_.host, random),
        clock_(client, clock, options_.warn),
        runner_(client, clock, random, options_.warn),
        locate_([this](const std::string& queue) { return locate(options_, queue); }),
        layouts_([this](const std::string& queue) { return layout_of(queue); }),
        store_{client, clock_, runner_, nonces_, locate_, layouts_},
        parts_{store_, random_},
        ringers_({.read = [this](const table::QueueTable& place,
                                 Deadline deadline) { return read_bells(store_, place, deadline); },
                  .bell = bell_of},
                 options_.ring, clock_, random),
        doorbell_([this](const QueueAddress& address) {
          // A handler here may have sent to a queue of the other layout.
          if (!options_.ring_elsewhere || !options_.ring_elsewhere(address)) {
            ringers_.rang(locate(options_, address.queue), address.half);
          }
        }) {}

  void ring(const QueueAddress& address) override { doorbell_.ring(address); }

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override {
    QueueState& state = this->state(address.queue);
    WriterState& writer = state.writer(address.half);
    OwnedTable& table = table_of(state.queue.place);
    OwnedHalf& half = table.half(
        {.address = address,
         .shards = location_of(options_, address.queue).shards,
         .strict_fence = location_of(options_, address.queue).strict_fence,
         .warn = options_.warn},
        state.queue.place,
        {.settle =
             [this, &state, &writer, half = address.half](std::span<const Completion> completions,
                                                          std::span<const std::optional<Held>> held,
                                                          Deadline deadline) {
               return LeasedWriter(store_, state.queue.place, half, writer).settle(completions, held, deadline);
             },
         .note_failure = [&writer](const std::string& id,
                                   const Failure& failure) { writer.failures.note(id, failure); }});
    auto borrower = std::make_unique<DirectClaimer>(
        store_, state.queue.place, address.half, writer, [&state](Deadline deadline) -> Result<std::uint32_t> {
          const auto shards = state.queue.shards.get(deadline);
          return shards ? Result<std::uint32_t>(shards->most_ever) : shards.error();
        });
    return std::unique_ptr<Source>(std::make_unique<LeasedSource>(table, half, std::move(borrower), doorbell_));
  }

  std::unique_ptr<table::RecordLayout> layout_of(const std::string& queue) override {
    if (auto other = options_.other_layouts ? options_.other_layouts(queue) : nullptr) {
      return other;
    }
    return make_leased_layout(store_, locate(options_, queue), [this, queue](const NewMessage& message, WallTime now) {
      // Where the number cannot be read, the configured one is as good: a shard that is beyond it is drained.
      LeasedQueue& known = state(queue).queue;
      const auto shards = known.shards.settled(Deadline::after(machine_, kShardsTime));
      const std::uint32_t count = shards ? shards->count : location_of(options_, queue).shards;
      return Place{partition_of(queue, Half::standard, shard_of(message.group, count, random_)),
                   known.keys.next(message.priority, later(known.keys.stamp(now), message.delay), random_)};
    });
  }

  Result<void> owner_ended(const std::string& queue, const std::string& incarnation, bool settled,
                           Deadline deadline) override {
    return mark_ended(client_, locate(options_, queue), incarnation, settled, deadline);
  }

  std::unique_ptr<MoveOwnership> take_custody(const std::string& queue, const std::vector<Half>& halves) override {
    QueueState& state = this->state(queue);
    return std::make_unique<ShardMoveOwnership>(
        ShardMoveOwnership::Settings{.halves = halves,
                                     .shards = location_of(options_, queue).shards,
                                     .keeping = {.table = state.queue.place.table,
                                                 .host = make_incarnation(options_.host + ":move", random_),
                                                 .lease = options_.lease,
                                                 .warn = options_.warn,
                                                 .own_thread = options_.own_threads}},
        parts_, state.queue, doorbell_, machine_);
  }

  Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) override {
    return std::unique_ptr<Sender>(std::make_unique<LeasedSender>(parts_, state(queue).queue, doorbell_));
  }

  Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) override {
    return std::unique_ptr<Operator>(std::make_unique<LeasedOperator>(parts_, state(queue).queue, doorbell_));
  }

  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) override {
    return std::unique_ptr<NoticeBoard>(
        std::make_unique<table::TableBoard>(store_, locate(options_, queue), kLoneNames));
  }

  Result<std::unique_ptr<IdempotencyKeys>> open_keys(const std::string& queue) override {
    return std::unique_ptr<IdempotencyKeys>(
        std::make_unique<table::TableKeys>(store_, locate(options_, queue), table::KeyScope{kLoneNames, queue}));
  }

  Result<std::unique_ptr<wake::WakePlace>> open_wake_place(const std::string& queue) override {
    table::QueueTable place = locate(options_, queue);
    wake::Ringer* const ringer = ringers_.of(place);
    OwnedTable& table = table_of(place);
    return std::unique_ptr<wake::WakePlace>(
        std::make_unique<LeasedWakePlace>(store_, std::move(place), table, doorbell_, ringer));
  }

 private:
  QueueState& state(const std::string& queue) {
    const MutexLock lock(mutex_);
    auto& known = states_[queue];
    if (!known) {
      known = std::make_unique<QueueState>(options_, queue, store_, [this, queue](Half half) {
        return own_word({queue, half});
      });
    }
    return *known;
  }

  std::optional<OwnWord> own_word(const QueueAddress& address) {
    OwnedTable* table = nullptr;
    {
      const MutexLock lock(mutex_);
      const auto found = tables_.find(location_of(options_, address.queue).table);
      table = found == tables_.end() ? nullptr : found->second.get();
    }
    return table == nullptr ? std::nullopt : table->word_of(address);
  }

  // Everything that this process owns of a table has one lease.
  OwnedTable& table_of(const table::QueueTable& place) {
    const MutexLock lock(mutex_);
    auto& known = tables_[place.table];
    if (!known) {
      const std::string incarnation =
          options_.incarnation.empty() ? make_incarnation(options_.host, random_) : options_.incarnation;
      known = std::make_unique<OwnedTable>(OwnershipCoordinator::Settings{.table = place.table,
                                                                          .host = incarnation,
                                                                          .lease = options_.lease,
                                                                          .warn = options_.warn,
                                                                          .own_thread = options_.own_threads},
                                           store_, machine_, random_);
    }
    return *known;
  }

  // Fixed after construction.
  const LeasedOptions options_;
  dynamo::Client& client_;
  const Clock& machine_;
  Random& random_;
  table::NonceSource nonces_;
  table::TableClock clock_;
  table::StatementRunner runner_;
  const table::QueueLocator locate_;
  const table::RecordLayouts layouts_;
  const table::StoreParts store_;
  const LeasedParts parts_;

  // Synchronise themselves.
  table::Ringers ringers_;
  Doorbell doorbell_;

  Mutex mutex_;
  // Guarded by mutex_. States are never removed, so that references to them live as long as the queues.
  std::map<std::string, std::unique_ptr<QueueState>> states_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<OwnedTable>> tables_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<LeasedQueues> make_leased_queues(LeasedOptions options, dynamo::Client& client, const Clock& clock,
                                                 Random& random) {
  return std::make_unique<AllLeasedQueues>(std::move(options), client, clock, random);
}

}  // namespace sluice::queue::leased
