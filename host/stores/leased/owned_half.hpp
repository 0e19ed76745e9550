#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/leased_writer.hpp"
#include "host/stores/owned/backlog.hpp"
#include "host/stores/owned/event_gate.hpp"
#include "host/stores/owned/ownership_coordinator.hpp"
#include "host/stores/owned/part_reader.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::leased {

using owned::ShardHolder;

/// What this process owns of one half of a queue: what has been read of its shards and what is out. All sources of the
/// half share it. A coordinator tells it which shards are its own; it knows no more of that one than the lease.
/// Thread-safe.
class OwnedHalf final : public ShardHolder {
 public:
  /// Of dead letters so many are counted of a shard, and again after that.
  static constexpr std::size_t kMostDeadOfAShard = 100;
  static constexpr Duration kDeadPause = std::chrono::seconds(60);

  struct Settings {
    Half half = Half::standard;
    bool strict_fence = false;  ///< what is committed with effects holds only while the shard is this host's
    std::function<void(const std::string&)> warn{};
  };
  /// Lets everybody know how far what is out lies behind the head. False: it could not.
  using Announce = std::function<bool(InFlightBound)>;

  /// The references outlive it.
  OwnedHalf(Settings settings, LeasedQueue& queue, owned::HostLease& lease, const Clock& machine);

  /// A source's way to be told; and out.
  std::uint32_t enter(SourceEvents events);
  /// Returns once nothing is told any more. True: it was the last one.
  bool exit(std::uint32_t source);
  bool has_sources() const;
  void rung();

  Result<Claimed> claim(std::uint32_t source, const ClaimRequest& request, const Announce& announce, Deadline deadline);
  /// It owns shards, and may hand something out.
  bool works();
  /// As Source::holds.
  bool holds() { return lease_.holds(); }
  /// This process has handed it out.
  bool knows(const Receipt& receipt) const;
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline);
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts);
  LeasedQueue& queue() { return queue_; }

  // ShardHolder
  const QueueAddress& address() const override { return address_; }
  void own(std::span<const ShardHolder::Shard> shards, std::uint32_t all, SteadyTime now) override;
  std::optional<InFlightBound> left_in(std::uint32_t shard) override;
  bool is_empty(std::uint32_t shard) const override;
  bool busy(SteadyTime now) const override;
  InFlightBound in_flight_bound() override;
  OwnerFigures figures(SteadyTime now) const override;
  /// Counts dead letters, where it is time to.
  void spare_time(Deadline deadline) override;

 private:
  /// The dead letters of a shard of a standard half, as the last look has found them.
  struct DeadLetters {
    SteadyTime due_at{};
    std::optional<SteadyTime> looked_at{};
    std::size_t records = 0;
    bool more = false;
  };
  struct Shard {
    owned::PartReader reader;
    std::uint64_t number = 0;  ///< each time that it is taken, or read anew, it is another one
    std::int64_t epoch = 0;
    bool closing = false;
    bool holds_read = false;
    bool throttled = false;          ///< its last page was refused as one too many
    std::optional<Error> trouble{};  ///< why its last read failed
    SteadyTime holds_again_at{};     ///< when the groups that are held are read again, where there are any
    DeadLetters dead{};
  };
  struct Out {
    owned::Spot spot;
    Held held;
    std::string id;
    std::string group;
    std::optional<Failure> failure{};
    std::uint32_t source = 0;
    bool lost = false;
    bool writes_claim = false;  ///< before it is handed out
    bool may_be_held = false;   ///< its group is, if the dead letter was written that has had no answer
  };
  /// A page to be read, and of what.
  struct Job {
    std::uint32_t shard = 0;
    std::uint64_t number = 0;
    std::optional<owned::ReadOrder> order;  ///< nothing: the groups that are held are to be read
    bool throttled = false;                 ///< others do not wait for its retries
  };
  /// What is to be told once no lock is held.
  struct News {
    bool ready = false;
    std::map<std::uint32_t, std::vector<Receipt>> lost;
  };

  void gain(const ShardHolder::Shard& shard, SteadyTime now) SLUICE_REQUIRES(mutex_);
  void lose(std::uint32_t shard, News& news) SLUICE_REQUIRES(mutex_);
  void tell(const News& news);
  /// That shard, as it was when `number` was given; null: it has been lost, or is read anew.
  Shard* shard_of(std::uint32_t shard, std::uint64_t number) SLUICE_REQUIRES(mutex_);

  Result<void> check(const ClaimRules& rules) const SLUICE_REQUIRES(mutex_);
  /// What a source asks for, in the order that the strictest of all sources asks for.
  ClaimRules rules_for(std::uint32_t source, const ClaimRules& asked) SLUICE_REQUIRES(mutex_);
  void follow_rules(std::uint32_t source, const ClaimRules& asked) SLUICE_REQUIRES(mutex_);
  bool keeps_order() const SLUICE_REQUIRES(mutex_);
  void mark_ordered(Deadline deadline);
  std::size_t budget(const ClaimRequest& request) const SLUICE_REQUIRES(mutex_);

  void read(const ClaimRequest& request, Deadline deadline);
  std::vector<Job> next_jobs(const ClaimRequest& request, std::size_t most) SLUICE_REQUIRES(mutex_);
  void read_each(const std::vector<Job>& jobs, Deadline deadline);
  dynamo::QueryRequest page_query(const Job& job) const;
  void page_read(const Job& job, dynamo::Page page);
  void item_read(const Job& job, dynamo::Item item, table::Moment now, owned::ReadAnswer& answer)
      SLUICE_REQUIRES(mutex_);
  void read_holds(const Job& job, Deadline deadline);
  void read_failed(const Job& job, const dynamo::Error& error);

  /// Returns what would have had to be announced for the first one that is not among them.
  std::optional<InFlightBound> take(std::uint32_t source, const ClaimRequest& request, std::size_t most,
                                    std::vector<Delivery>& deliveries) SLUICE_REQUIRES(mutex_);
  Delivery deliver(std::uint32_t source, const owned::Backlog::Taken& taken, const ClaimRequest& request)
      SLUICE_REQUIRES(mutex_);
  Held held_of(const owned::Entry& entry) const SLUICE_REQUIRES(mutex_);
  /// Leaves those whose claim has been written, and those that need none.
  void write_claims(std::vector<Delivery>& deliveries, Deadline deadline);
  bool claim_written(Delivery& delivery, bool written) SLUICE_REQUIRES(mutex_);
  std::optional<Duration> next_due(table::Moment now) const SLUICE_REQUIRES(mutex_);

  void ended(std::int64_t locator, const Completion& completion, const SettleResult& result, table::Moment now)
      SLUICE_REQUIRES(mutex_);
  void returned(const Out& out, const Completion& completion, table::Moment now) SLUICE_REQUIRES(mutex_);
  void read_anew(const Out& out, table::Moment now) SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const Settings settings_;
  LeasedQueue& queue_;
  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  const QueueAddress address_;
  owned::HostLease& lease_;
  const Clock& machine_;
  const std::int64_t locator_base_;
  const std::string name_;
  owned::Remarks remarks_;

  Mutex reading_;  // one reads at a time; taken before mutex_

  mutable Mutex mutex_;
  // Guarded by mutex_.
  owned::Backlog backlog_ SLUICE_GUARDED_BY(mutex_);
  bool counting_ SLUICE_GUARDED_BY(mutex_) = false;  ///< dead letters
  ClaimRules rules_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, ClaimRules> asked_ SLUICE_GUARDED_BY(mutex_);  ///< by source
  std::map<std::uint32_t, Shard> shards_ SLUICE_GUARDED_BY(mutex_);
  std::uint64_t taken_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint32_t next_shard_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< where reading goes on
  std::uint32_t count_ SLUICE_GUARDED_BY(mutex_) = 0;       ///< of shards; 0: not known yet
  std::unordered_map<std::int64_t, Out> outs_ SLUICE_GUARDED_BY(mutex_);
  std::deque<std::int64_t> lost_ SLUICE_GUARDED_BY(mutex_);
  bool ordered_ SLUICE_GUARDED_BY(mutex_) = false;  ///< the table says that groups go in order
  std::uint32_t handed_out_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::optional<SteadyTime> handed_out_at_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::shared_ptr<owned::EventGate>> sources_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t entered_ SLUICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::queue::leased
