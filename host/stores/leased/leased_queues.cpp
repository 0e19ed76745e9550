#include "host/stores/leased/leased_queues.hpp"

#include <algorithm>
#include <utility>

#include "base/mutex.hpp"
#include "host/queue/message.hpp"
#include "host/queue/wake/datagram.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_operator.hpp"
#include "host/stores/leased/leased_source.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/leased/shard_move_ownership.hpp"

namespace sluice::queue::leased {
namespace {

const LeasedLocation& location_of(const LeasedOptions& options, const std::string& queue) {
  static const LeasedLocation kDefault;
  const auto found = options.queues.find(queue);
  return found == options.queues.end() ? kDefault : found->second;
}

// Without an index, by which messages about the table tell the layout.
table::QueueTable locate(const LeasedOptions& options, const std::string& queue) {
  return {queue, location_of(options, queue).table, {}, options.region};
}

/// How hosts and producers name a half of a queue to each other: many queues lie in one table.
std::string bell_of_name(const std::string& table, const std::string& half) { return table + "/" + half; }
std::string bell_of(const table::QueueTable& place, Half half) {
  return bell_of_name(place.table, owned::half_name({place.queue, half}));
}

// A heartbeat says nothing of when the next one comes; a third of the lease is usual, and a lease is what it may take.
std::optional<wake::Announcement> announcement_of(const std::string& table, const Heartbeat& beat) {
  const auto address = wake::parse_address(beat.bell);
  if (!beat.written_at || beat.leaving || !address || address->address().is_unspecified() || address->port() == 0) {
    return std::nullopt;
  }
  wake::Announcement told{
      .host = beat.host, .address = wake::text_of(*address), .queues = {}, .at = *beat.written_at, .every = beat.lease};
  for (const std::string& half : beat.works_on) {
    std::string bell = bell_of_name(table, half);
    if (bell.size() <= wake::kMostNameBytes) {
      told.queues.push_back(std::move(bell));
    }
  }
  return told;
}

/// What the heartbeats of a table say of where its hosts are woken, for half a read unit for each 4 KB of them. Hosts
/// that leave, and heartbeats that nobody can read, are not among it.
Result<std::vector<wake::Announcement>> read_bells(const table::StoreParts& parts, const table::QueueTable& place,
                                                   Deadline deadline) {
  SLUICE_TRY(beats, table::checked(place, read_beats(parts.client, place.table, deadline)));
  std::vector<wake::Announcement> announcements;
  for (const Heartbeat& beat : *beats) {
    if (auto told = announcement_of(place.table, beat)) {
      announcements.push_back(std::move(*told));
    }
  }
  return announcements;
}

class AllLeasedQueues final : public LeasedQueues {
 public:
  AllLeasedQueues(const LeasedOptions& options, dynamo::Client& client, const Clock& clock, Random& random)
      : LeasedQueues({.options = static_cast<const table::TableOptions&>(options),
                      .locate = [options](const std::string& queue) { return locate(options, queue); },
                      .names = kNames,
                      .bells = {.read = read_bells, .bell = bell_of}},
                     client, clock, random),
        options_(options),
        machine_(clock),
        remarks_(options.warn, clock) {}

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override {
    LeasedQueue& queue = state(address.queue);
    OwnedTable& table = table_of(queue.place);
    const MutexLock lock(mutex_);
    auto& half = halves_[address];
    if (!half) {
      const bool strict_fence = location_of(options_, address.queue).strict_fence;
      half = std::make_unique<LeasedHalf>(table, queue, address.half, strict_fence);
    }
    return make_leased_source(*half, doorbell_);
  }
  Result<void> owner_ended(const std::string& queue, const std::string& incarnation, bool settled,
                           Deadline deadline) override {
    return mark_ended(parts_.client, locate(options_, queue), incarnation, settled, deadline);
  }

  // Of the table for queues that nobody names: those in other tables are named in files, which alone say where they
  // lie.
  Result<std::vector<std::string>> made_by_messages(Deadline deadline) override {
    const table::QueueTable place = locate(options_, {});
    SLUICE_TRY(made, table::checked(place, read_queues(parts_.client, place.table, deadline)));
    std::erase_if(*made, [&](const std::string& queue) { return location_of(options_, queue).table != place.table; });
    return made;
  }
  std::unique_ptr<MoveOwnership> take_ownership(const std::string& queue, const std::vector<Half>& halves) override {
    LeasedQueue& known = state(queue);
    return own_to_move(halves, keeping(known.place.table, make_incarnation(options_.host + ":move", random_)), known,
                       doorbell_, remarks_, machine_);
  }
  Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) override {
    return make_leased_sender(state(queue), doorbell_);
  }

  Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) override {
    return make_leased_operator(state(queue), doorbell_);
  }

 private:
  std::unique_ptr<table::RecordLayout> own_layout(const std::string& queue) override {
    return make_leased_layout(state(queue));
  }

  // Heartbeats, which are written in any case, say it; which queues a host is woken for is what it works on. One write
  // unit where the address is another than before.
  Result<double> announce(const table::QueueTable& place, const wake::Announcement& announcement,
                          Deadline deadline) override {
    leave_out(place, table_of(place).coordinator.host());
    SLUICE_PASS_ON(listen_at(place, announcement.address, deadline));
    return 0.0;
  }
  Result<void> withdraw(const table::QueueTable& place, const std::string& /*host*/, Deadline deadline) override {
    return listen_at(place, {}, deadline);
  }
  Result<void> listen_at(const table::QueueTable& place, const std::string& address, Deadline deadline) {
    if (table_of(place).coordinator.listen_at(address, deadline)) {
      return {};
    }
    return Error(ErrorCode::unavailable, "no heartbeat can be written to table '" + place.table + "'" +
                                             (place.region.empty() ? "" : " in " + place.region) +
                                             "; the next one will say it");
  }

  LeasedQueue& state(const std::string& queue) {
    const MutexLock lock(mutex_);
    auto& known = states_[queue];
    if (!known) {
      known = std::make_unique<LeasedQueue>(
          locate(options_, queue), location_of(options_, queue).shards, parts_, random_,
          [this, queue](std::vector<Heartbeat>& beats) { bring_up_to_date(queue, beats); });
    }
    return *known;
  }

  void bring_up_to_date(const std::string& queue, std::vector<Heartbeat>& beats) {
    const MutexLock lock(mutex_);
    for (const Half half : {Half::standard, Half::dlq}) {
      const auto mine = halves_.find({queue, half});
      const auto own = [&](const Heartbeat& beat) { return beat.host == mine->second->table.coordinator.host(); };
      const auto beat = mine == halves_.end() ? beats.end() : std::find_if(beats.begin(), beats.end(), own);
      if (beat == beats.end()) {
        continue;
      }
      beat->written_at = parts_.clock.wall_now();
      mine->second->owned.put_figures(*beat);
    }
  }

  owned::OwnershipCoordinator::Settings keeping(const std::string& table, std::string incarnation) const {
    return {
        .table = table, .host = std::move(incarnation), .lease = options_.lease, .own_thread = options_.own_threads};
  }

  // Everything that this process owns of a table has one lease.
  OwnedTable& table_of(const table::QueueTable& place) {
    const MutexLock lock(mutex_);
    auto& known = tables_[place.table];
    if (!known) {
      const std::string incarnation =
          options_.incarnation.empty() ? make_incarnation(options_.host, random_) : options_.incarnation;
      known = std::make_unique<OwnedTable>(keeping(place.table, incarnation), parts_, remarks_, machine_,
                                           [this](const std::string& queue) -> LeasedQueue& { return state(queue); });
    }
    return *known;
  }

  // Fixed after construction.
  const LeasedOptions options_;
  const Clock& machine_;

  owned::Remarks remarks_;  // synchronises itself

  Mutex mutex_;
  // Guarded by mutex_. None is ever removed, so that references to them live as long as the queues. The threads of
  // tables end before there are no halves any more.
  std::map<std::string, std::unique_ptr<LeasedQueue>> states_ SLUICE_GUARDED_BY(mutex_);
  std::map<QueueAddress, std::unique_ptr<LeasedHalf>> halves_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<OwnedTable>> tables_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<LeasedQueues> make_leased_queues(const LeasedOptions& options, dynamo::Client& client,
                                                 const Clock& clock, Random& random) {
  return std::make_unique<AllLeasedQueues>(options, client, clock, random);
}

}  // namespace sluice::queue::leased
