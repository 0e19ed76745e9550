#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/stores/dynamomq/candidate_buffer.hpp"
#include "host/stores/dynamomq/contention.hpp"
#include "host/stores/dynamomq/head_scanner.hpp"
#include "host/stores/dynamomq/lease_index.hpp"
#include "host/stores/dynamomq/removals.hpp"

namespace sluice::queue::dynamomq {

/// How many candidates a claim asks for, and of which kind.
struct Pick {
  std::size_t count = 0;
  bool suspects = true;  ///< false: they are passed over
  WallTime lease_until{};
  bool counts = false;  ///< as ClaimRequest's
};

/// How a message was put back.
struct PutOff {
  bool attempt_given_back = false;
  bool suspect = false;
};

/// What a store knows about one half of one queue, between its calls: what to claim next, where to read, what is
/// leased. Thread-safe; never blocks but for `begin_scan`.
class HalfBacklog {
 public:
  static constexpr Duration kLonelyBufferLife = std::chrono::seconds(60);
  static constexpr Duration kBufferLife = std::chrono::seconds(10);
  static constexpr Duration kContendedBufferLife = std::chrono::seconds(1);
  static constexpr Duration kWinnerLookInterval = std::chrono::seconds(1);
  static constexpr Duration kFirstWinnerLookInterval = std::chrono::milliseconds(20);  ///< while no peer is known
  static constexpr std::size_t kMaxLate = 1'000;
  static constexpr std::size_t kStretchItems = 100;

  /// `tag` is what this store's nonces begin with; `random` must outlive the lane.
  HalfBacklog(std::string tag, Random& random);

  // Claiming.

  /// Takes candidates, oldest first, and notes them as leased until `lease_until`, so that no other thread of this
  /// store sees them. A suspect that is the oldest is taken alone; any other waits until it is.
  std::vector<Candidate> pick(const Pick& wanted, table::Moment now);
  /// True when records may be due that are not in the buffer: a scan is worth its request.
  bool backlog_unread() const;
  /// Waits for the scan of another thread. The step to take, or nothing when that other scan found candidates or the
  /// deadline passed. A step must be followed by `end_scan` or `abandon_scan`.
  std::optional<ScanStep> begin_scan(table::Moment now, std::size_t want, Deadline deadline);
  void end_scan(const ScanStep& step, const dynamo::Page& page);
  void abandon_scan();
  /// The step that is due beside those that claims ask for, if there is one and nobody reads.
  std::optional<ScanStep> begin_side_scan(table::Moment now);

  // What became of picked candidates.

  /// They are claimed, until the times that were really written.
  void claimed(const std::vector<Delivery>& deliveries);
  /// Others had them first. True: it is time to look who.
  bool lost(const std::vector<Candidate>& candidates, table::Moment now);
  void put_back(std::vector<Candidate> candidates, table::Moment now);
  /// Keeps a record to be claimed once it is due, without reading it again.
  void keep(Candidate candidate);
  /// A claim that had not taken effect when it was looked up, but still may; this is the record as it was found. If the
  /// claim's nonce turns up on it once its lease has run out, that delivery never reached anybody and is not counted.
  void disown(const Candidate& record, const std::string& nonce);
  void saw_peer(std::string_view nonce, table::Moment now);
  /// How long until something that is hidden now may be claimable, as far as that is known.
  std::optional<Duration> next_due(table::Moment now) const;

  // What became of claims.

  /// When the message of this receipt was sent, as it is spelt; empty where the id is a later message's by now, and so
  /// no time at all; nothing where the lane does not know the claim any more.
  std::optional<std::string> sent_at_of(const Receipt& receipt) const;
  void removed(const std::string& id, SteadyTime now);
  void extended(const std::string& id, std::int64_t version, WallTime until);
  void put_off(const std::string& id, std::int64_t version, std::optional<WallTime> due, const PutOff& how);
  /// Nothing that is known of that message holds any more.
  void forget(const std::string& id);
  /// Forgets the lease that this receipt stood for, but not a later one.
  void forget_receipt(const Receipt& receipt);
  /// Something comes due then; nobody knows where it lies.
  void expect(WallTime due);
  void restart();

 private:
  std::vector<Candidate> take(const Pick& wanted, table::Moment now) SLUICE_REQUIRES(mutex_);
  std::vector<Candidate> take_beside_others(const Pick& wanted, table::Moment now) SLUICE_REQUIRES(mutex_);

  /// What is known of a lease after a write that left `version`; nothing where it is not known.
  std::optional<Candidate> lease_before(const std::string& id, std::int64_t version, std::optional<WallTime> due)
      SLUICE_REQUIRES(mutex_);
  /// What a record looked like when it was read.
  struct Sight {
    bool hidden = false;
    bool future = false;
    std::optional<WallTime> due{};  ///< when to look again
  };

  Duration buffer_life(table::Moment now) const SLUICE_REQUIRES(mutex_);
  Sight absorb_candidate(Candidate candidate, table::Moment now, ScanFinding& finding) SLUICE_REQUIRES(mutex_);

  // Fixed after construction.
  const std::string tag_;
  Random& random_;

  mutable Mutex mutex_;
  Condition scan_ended_;
  // Guarded by mutex_.
  bool scanning_ SLUICE_GUARDED_BY(mutex_) = false;
  HeadScanner scanner_ SLUICE_GUARDED_BY(mutex_);
  CandidateBuffer buffer_ SLUICE_GUARDED_BY(mutex_);
  LeaseIndex leases_ SLUICE_GUARDED_BY(mutex_);
  Contention contention_ SLUICE_GUARDED_BY(mutex_);
  SteadyTime next_winner_look_ SLUICE_GUARDED_BY(mutex_){};
  std::set<std::pair<std::string, std::string>> late_ SLUICE_GUARDED_BY(mutex_);  // id and nonce
  Removals removals_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::dynamomq
