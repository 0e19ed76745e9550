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

/// What a process owns in all leased tables. Thread-safe.
class OwnedTables : boost::noncopyable {
 public:
  OwnedTables(const LeasedOptions& given, const Clock& clock)
      : options(given), machine(clock), remarks(given.warn, clock) {}

  /// Everything that this process owns of a table has one lease. Of that queue and others.
  OwnedTable& table_of(LeasedQueue& queue) {
    const MutexLock lock(mutex_);
    queues_.emplace(queue.place.queue, &queue);
    auto& known = tables_[queue.place.table];
    if (!known) {
      const std::string incarnation =
          options.incarnation.empty() ? make_incarnation(options.host, queue.parts.random) : options.incarnation;
      known = std::make_unique<OwnedTable>(keeping(queue.place.table, incarnation), queue.parts, remarks, machine,
                                           [this](const std::string& name) -> LeasedQueue& {
                                             const MutexLock alone(mutex_);
                                             return *queues_.at(name);
                                           });
    }
    return *known;
  }
  owned::OwnershipCoordinator::Settings keeping(const std::string& table, std::string incarnation) const {
    return {.table = table, .host = std::move(incarnation), .lease = options.lease, .own_thread = options.own_threads};
  }

  const LeasedOptions options;
  const Clock& machine;
  owned::Remarks remarks;  // synchronises itself

 private:
  Mutex mutex_;
  // Guarded by mutex_. None is ever removed.
  std::map<std::string, LeasedQueue*> queues_ SLUICE_GUARDED_BY(mutex_);  ///< whose halves may be owned
  std::map<std::string, std::unique_ptr<OwnedTable>> tables_ SLUICE_GUARDED_BY(mutex_);
};

/// One of the queues in these tables.
class QueueInLeasedTable final : public table::TableQueue {
 public:
  /// The tables outlive it but for its end.
  QueueInLeasedTable(const table::StoreParts& parts, OwnedTables& tables, const std::string& name)
      : tables_(tables),
        location_(location_of(tables.options, name)),
        queue_(locate(tables.options, name), location_.shards, parts,
               [this](std::vector<Heartbeat>& beats) { bring_up_to_date(beats); }) {}

  const table::RecordLayout& layout() const override { return *queue_.layout; }
  std::unique_ptr<Source> source(Half half) override {
    OwnedTable& table = owned_table();
    const MutexLock lock(mutex_);
    auto& known = halves_[half];
    if (!known) {
      known = std::make_unique<LeasedHalf>(table, queue_, half, location_.strict_fence);
    }
    return make_leased_source(*known);
  }
  std::unique_ptr<Sender> sender() override { return make_leased_sender(queue_); }
  std::unique_ptr<Operator> oper() override { return make_leased_operator(queue_); }

  std::string bell(Half half) const override {
    return bell_of_name(place().table, owned::half_name({place().queue, half}));
  }
  // What the heartbeats of the table say of where its hosts are woken, for half a read unit for each 4 KB of them.
  // Hosts that leave, and heartbeats that nobody can read, are not among it.
  Result<std::vector<wake::Announcement>> bells(Deadline deadline) const override {
    SLUICE_TRY(beats, table::checked(place(), read_beats(queue_.parts.client, place().table, deadline)));
    std::vector<wake::Announcement> announcements;
    for (const Heartbeat& beat : *beats) {
      if (auto told = announcement_of(place().table, beat)) {
        announcements.push_back(std::move(*told));
      }
    }
    return announcements;
  }
  std::string announced_as(const std::string& /*host*/) override { return owned_table().coordinator.host(); }
  // Heartbeats, which are written in any case, say it; which queues a host is woken for is what it works on. One write
  // unit where the address is another than before.
  Result<double> announce(const wake::Announcement& announcement, Deadline deadline) override {
    SLUICE_PASS_ON(listen_at(announcement.address, deadline));
    return 0.0;
  }
  Result<void> withdraw(const std::string& /*host*/, Deadline deadline) override { return listen_at({}, deadline); }

  Result<void> owner_ended(const std::string& incarnation, bool settled, Deadline deadline) override {
    return mark_ended(queue_.parts.client, place(), incarnation, settled, deadline);
  }
  std::unique_ptr<MoveOwnership> take_ownership(const std::vector<Half>& halves) override {
    const std::string incarnation = make_incarnation(tables_.options.host + ":move", queue_.parts.random);
    return own_to_move(halves, tables_.keeping(place().table, incarnation), queue_, tables_.remarks, tables_.machine);
  }
  // Those in other tables are named in files, which alone say where they lie.
  Result<std::vector<std::string>> made_by_messages(Deadline deadline) const override {
    SLUICE_TRY(made, table::checked(place(), read_queues(queue_.parts.client, place().table, deadline)));
    std::erase_if(*made,
                  [&](const std::string& queue) { return location_of(tables_.options, queue).table != place().table; });
    return made;
  }

 private:
  const table::QueueTable& place() const { return queue_.place; }
  OwnedTable& owned_table() { return tables_.table_of(queue_); }

  Result<void> listen_at(const std::string& address, Deadline deadline) {
    if (owned_table().coordinator.listen_at(address, deadline)) {
      return {};
    }
    return Error(ErrorCode::unavailable, "no heartbeat can be written to table '" + place().table + "'" +
                                             (place().region.empty() ? "" : " in " + place().region) +
                                             "; the next one will say it");
  }

  void bring_up_to_date(std::vector<Heartbeat>& beats) {
    const MutexLock lock(mutex_);
    for (const auto& [half, mine] : halves_) {
      const std::string& host = mine->table.coordinator.host();
      const auto own = [&host](const Heartbeat& beat) { return beat.host == host; };
      if (const auto beat = std::find_if(beats.begin(), beats.end(), own); beat != beats.end()) {
        beat->written_at = queue_.parts.clock.wall_now();
        mine->owned.put_figures(*beat);
      }
    }
  }

  OwnedTables& tables_;
  const LeasedLocation& location_;
  LeasedQueue queue_;

  Mutex mutex_;
  // Guarded by mutex_. None is ever removed, so that references to them live as long as the queue.
  std::map<Half, std::unique_ptr<LeasedHalf>> halves_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

table::TableQueues::Make in_leased_tables(const LeasedOptions& options, const Clock& machine) {
  return [tables = std::make_shared<OwnedTables>(options, machine)](const auto& parts, const std::string& queue) {
    return std::make_unique<QueueInLeasedTable>(parts, *tables, queue);
  };
}

}  // namespace sluice::queue::leased
