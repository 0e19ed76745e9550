#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/event_gate.hpp"
#include "host/queue/source.hpp"
#include "host/stores/owned/backlog.hpp"
#include "host/stores/owned/message_records.hpp"
#include "host/stores/owned/ownership_coordinator.hpp"
#include "host/stores/owned/part_reader.hpp"

namespace sluice::queue::owned {

/// What this process owns of one half of a queue: what has been read of its parts and what is out. All sources of the
/// half share it. A coordinator tells it which parts are its own; it knows no more of that one than the lease.
/// Thread-safe.
class OwnedHalf final : public ShardHolder {
 public:
  /// Of dead letters so many are counted of a part, and again after that.
  static constexpr std::size_t kMostDeadOfAPart = 100;
  static constexpr Duration kDeadPause = std::chrono::seconds(60);

  /// Lets everybody know how far what is out lies behind the head. False: it could not.
  using Announce = std::function<bool(InFlightBound)>;

  /// The references outlive it.
  OwnedHalf(QueueAddress address, MessageRecords& records, HostLease& lease, Remarks& remarks, const Clock& clock,
            Random& random);

  /// A source's way to be told; and out.
  std::uint32_t enter(SourceEvents events);
  /// Returns once nothing is told any more. True: it was the last one.
  bool exit(std::uint32_t source);
  void rung();

  Result<Claimed> claim(std::uint32_t source, const ClaimRequest& request, const Announce& announce, Deadline deadline);
  /// It owns parts, and may hand something out.
  bool works();
  /// As Source::holds.
  bool holds() { return lease_.holds(); }
  /// Of what was handed out here, which alone can tell whether it is still its own: an owner who has it by now has
  /// written nothing. What was lost may be taken away all the same by who has done it.
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline);
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts);

  // ShardHolder
  const QueueAddress& address() const override { return address_; }
  void own(std::span<const ShardHolder::Shard> parts, std::uint32_t all) override;
  std::optional<InFlightBound> left_in(std::uint32_t part) override;
  bool is_empty(std::uint32_t part) const override;
  bool busy() const override;
  InFlightBound in_flight_bound() override;
  OwnerFigures figures() const override;
  OwnerFigures dead_letters() const override;
  /// Counts dead letters, where it is time to.
  void spare_time(Deadline deadline) override;

 private:
  /// The dead letters of a part of a standard half, as the last look has found them.
  struct DeadLetters {
    SteadyTime due_at{};
    std::optional<SteadyTime> looked_at{};
    MessageRecords::Count count{};
  };
  struct Part {
    PartReader reader;
    std::uint64_t number = 0;  ///< each time that it is taken, or read anew, it is another one
    std::int64_t epoch = 0;
    bool throttled = false;          ///< its last page was refused as one too many
    std::optional<Error> trouble{};  ///< why its last read failed
    DeadLetters dead{};
  };
  struct SourceOfHalf {
    std::shared_ptr<EventGate> gate;
    ClaimRules asked{};  ///< by its last claim
  };
  struct Job {
    MessageRecords::Query query;
    std::uint64_t number = 0;  ///< of the part
    bool throttled = false;    ///< others do not wait for its retries
  };
  /// What is to be told once no lock is held.
  struct News {
    bool ready = false;
    std::map<std::uint32_t, std::vector<Receipt>> lost;
  };

  Moment moment() const { return {clock_.wall_now(), clock_.steady_now()}; }
  void lose(std::uint32_t part, News& news) SLUICE_REQUIRES(mutex_);
  void tell(const News& news);
  /// That part, as it was when `number` was given; null: it has been lost, or is read anew.
  Part* part_of(std::uint32_t part, std::uint64_t number) SLUICE_REQUIRES(mutex_);

  Result<void> check(const ClaimRules& rules) const SLUICE_REQUIRES(mutex_);
  /// By what a source asks for, in the order that the strictest of all sources asks for.
  void follow_rules(std::uint32_t source, const ClaimRules& asked) SLUICE_REQUIRES(mutex_);
  bool keeps_order() const SLUICE_REQUIRES(mutex_);
  std::size_t budget(const ClaimRequest& request) const SLUICE_REQUIRES(mutex_);

  void read(const ClaimRequest& request, Deadline deadline);
  std::vector<Job> next_jobs(const ClaimRequest& request, std::size_t most) SLUICE_REQUIRES(mutex_);
  void read_each(const std::vector<Job>& jobs, Deadline deadline);
  void page_read(const Job& job, MessageRecords::Page page);
  void take_up(const Job& job, Found found, Moment now, ReadAnswer& answer) SLUICE_REQUIRES(mutex_);
  void read_holds(const Job& job, Deadline deadline);
  void read_failed(const Job& job, const Error& error);

  /// Returns what would have had to be announced for the first one that is not among them.
  std::optional<InFlightBound> take(std::uint32_t source, const ClaimRequest& request, std::size_t most,
                                    std::vector<Delivery>& deliveries) SLUICE_REQUIRES(mutex_);
  Delivery deliver(std::uint32_t source, const Entry& entry, const ClaimRequest& request) SLUICE_REQUIRES(mutex_);
  /// Leaves those whose claim has been written, and those that need none.
  void write_claims(std::vector<Delivery>& deliveries, Deadline deadline);
  bool claim_written(Delivery& delivery, const core::StateChange& change, bool written) SLUICE_REQUIRES(mutex_);
  std::optional<Duration> next_due(Moment now) const SLUICE_REQUIRES(mutex_);

  void ended(std::int64_t locator, const Completion& completion, const SettleResult& result, Moment now)
      SLUICE_REQUIRES(mutex_);
  void returned(Out out, const Completion& completion, Moment now) SLUICE_REQUIRES(mutex_);
  void read_anew(const Out& out, Moment now) SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const QueueAddress address_;
  MessageRecords& records_;
  HostLease& lease_;
  Remarks& remarks_;
  const Clock& clock_;
  const std::string name_;

  Mutex reading_;  // one reads at a time; taken before mutex_

  mutable Mutex mutex_;
  // Guarded by mutex_.
  Backlog backlog_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Part> parts_ SLUICE_GUARDED_BY(mutex_);
  std::uint64_t taken_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint32_t next_part_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< where reading goes on
  std::uint32_t count_ SLUICE_GUARDED_BY(mutex_) = 0;      ///< of parts; 0: not known yet
  std::unordered_map<std::int64_t, Out> outs_ SLUICE_GUARDED_BY(mutex_);
  std::deque<std::int64_t> lost_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t handed_out_ SLUICE_GUARDED_BY(mutex_);  ///< from a number by chance on
  std::optional<SteadyTime> handed_out_at_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, SourceOfHalf> sources_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t entered_ SLUICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::queue::owned
