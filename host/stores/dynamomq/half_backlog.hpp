#pragma once

#include <boost/multi_index/hashed_index.hpp>
#include <boost/multi_index/key.hpp>
#include <boost/multi_index/ordered_index.hpp>
#include <boost/multi_index_container.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/dynamomq/head_scanner.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {

/// Records that are known without reading them again. Within a limit: what does not fit is found by the next sweep. A
/// value; not thread-safe.
class KnownRecords {
 public:
  explicit KnownRecords(std::size_t most) : most_(most) {}

  /// Replaces what was known of that id. False when there is no room.
  bool put(Candidate record);
  void erase(const std::string& id) { records_.erase(id); }
  const Candidate* find(const std::string& id) const;
  void clear() { records_.clear(); }

  /// Takes out at most `count` for which `wanted` holds, the oldest first, beginning at the `skip`-th of all.
  std::vector<Candidate> take_if(std::size_t count, const std::function<bool(const Candidate&)>& wanted,
                                 std::size_t skip = 0);
  /// Takes out at most `count` that are due, the longest due first.
  std::vector<Candidate> take_due(WallTime now, std::size_t count);
  /// The oldest; null when there is none.
  const Candidate* front() const { return empty() ? nullptr : &*records_.get<1>().begin(); }
  /// When the first one comes due; nothing when there is none.
  std::optional<WallTime> first_due() const {
    return empty() ? std::nullopt : std::optional(records_.get<2>().begin()->due_at());
  }
  std::size_t suspects() const;

  std::size_t size() const { return records_.size(); }
  bool empty() const { return records_.empty(); }

 private:
  // By sent_at and id, as times sort rightly and their spellings do not.
  struct Older {
    bool operator()(const Candidate& a, const Candidate& b) const {
      return std::tie(a.state.sent_at, a.id) < std::tie(b.state.sent_at, b.id);
    }
  };

  std::size_t most_;
  boost::multi_index_container<Candidate,
                               boost::multi_index::indexed_by<
                                   boost::multi_index::hashed_unique<boost::multi_index::key<&Candidate::id>>,
                                   boost::multi_index::ordered_unique<boost::multi_index::identity<Candidate>, Older>,
                                   boost::multi_index::ordered_non_unique<boost::multi_index::key<&Candidate::due_at>>>>
      records_;
};

/// How a host gets out of the way of others that work on the same table. A value; not thread-safe.
///
/// While races are lost, the hosts share the candidates out among themselves: each takes those whose id it comes first
/// for, by a hash that all compute alike, and leaves the others alone until they have waited for kPatience, in case
/// their host has no hands free; of those it takes some at a random place. Peers are known by the nonces they leave.
/// Against consumers without nonces (DynamoMQ's own) it takes all from random places. Without lost races none of this
/// happens.
class Contention {
 public:
  static constexpr double kThreshold = 8;  ///< lost races, of late
  static constexpr Duration kHalfLife = std::chrono::seconds(3);
  static constexpr Duration kPatience = std::chrono::seconds(1);
  static constexpr Duration kPeerLife = std::chrono::seconds(30);
  static constexpr std::size_t kMaxPeers = 256;
  static constexpr std::size_t kMaxPutOff = 4'096;

  /// `tag` is what this host's nonces begin with.
  explicit Contention(std::string tag) : tag_(std::move(tag)) {}

  void lost(std::size_t races, SteadyTime now);
  void saw_peer(std::string_view tag, SteadyTime now);
  bool active(SteadyTime now) const;
  bool knows_peers(SteadyTime now) const;

  /// Whether to leave this record to its own host for now. Remembers since when it has been left.
  bool leave(const Candidate& candidate, SteadyTime now);
  /// Whether this host comes first for that id, among those it knows.
  bool comes_first(const std::string& id, SteadyTime now) const;

 private:
  double recent_losses(SteadyTime now) const;

  std::string tag_;
  double losses_ = 0;
  SteadyTime losses_at_{};
  std::map<std::string, SteadyTime, std::less<>> peers_;
  std::unordered_map<std::string, SteadyTime> left_since_;
};

/// How many candidates a claim asks for, and of which kind.
struct Pick {
  std::size_t count = 0;
  bool suspects = true;  ///< false: they are passed over
  core::ClaimTerms terms{};
};

/// What a store knows about one half of one queue, between its calls: what to claim next, where to read, what is
/// leased. Thread-safe; never blocks but for `begin_scan`.
class HalfBacklog {
 public:
  static constexpr Duration kLonelyBufferLife = std::chrono::seconds(60);
  static constexpr Duration kBufferLife = std::chrono::seconds(10);
  static constexpr Duration kContendedBufferLife = std::chrono::seconds(1);
  static constexpr std::size_t kMostReady = 2'000;
  static constexpr std::size_t kMostSuspects =
      1'000;  ///< of those: they may have to wait, and must not keep others out
  static constexpr std::size_t kMostLeases = 20'000;
  static constexpr std::size_t kMaxLate = 1'000;
  static constexpr std::size_t kStretchItems = 100;
  static constexpr Duration kIndexDelay = std::chrono::seconds(3);  ///< so long it may show what is so no more

  /// `tag` is what this store's nonces begin with; `random` must outlive it.
  HalfBacklog(std::string tag, Random& random);

  // Claiming.

  /// Takes candidates, oldest first, and notes them as claimed on those terms, so that no other thread of this store
  /// sees them. A suspect that is the oldest is taken alone; any other waits until it is.
  std::vector<Candidate> pick(const Pick& wanted, table::Moment now);
  /// True when records may be due that are not in the buffer: a scan is worth its request.
  bool backlog_unread() const;
  /// Waits for the scan of another thread. The step to take, or nothing when that other scan found candidates or the
  /// deadline passed. A step must be followed by `end_scan`.
  std::optional<ScanStep> begin_scan(table::Moment now, std::size_t want, Deadline deadline);
  /// `page` is null where it could not be read.
  void end_scan(const ScanStep& step, const dynamo::Page* page);
  /// The step that is due beside those that claims ask for, if there is one and nobody reads.
  std::optional<ScanStep> begin_side_scan(table::Moment now);

  // What became of picked candidates.

  /// It is claimed, and this is the record that the claim has left.
  void claimed(Candidate record);
  /// Others had them first.
  void lost(const std::vector<Candidate>& candidates, table::Moment now);
  void put_back(std::vector<Candidate> candidates, table::Moment now);
  /// Keeps a record to be claimed once it is due, without reading it again.
  void keep(Candidate candidate);
  /// A claim that had not taken effect when it was looked up, but still may; this is the record as it was found. If the
  /// claim's nonce turns up on it once its lease has run out, that delivery never reached anybody and is not counted.
  void disown(const Candidate& record, const std::string& nonce);
  /// How long until something that is hidden now may be claimable, as far as that is known.
  std::optional<Duration> next_due(table::Moment now) const;

  // What became of claims.

  /// The record as this receipt has it; nothing where the backlog does not know the claim any more.
  std::optional<Candidate> lease_of(const Receipt& receipt) const;
  /// A write about the message of this receipt has left that version of its record.
  void written(const Receipt& receipt, std::int64_t version, const core::StateChange& change, WallTime now);
  /// Nothing that is known of that message holds any more.
  void forget(const std::string& id);
  /// Forgets the lease that this receipt stood for, but not a later one.
  void forget_receipt(const Receipt& receipt);
  /// Something comes due then; nobody knows where it lies.
  void expect(WallTime due);
  void restart();

 private:
  std::vector<Candidate> take(const Pick& wanted) SLUICE_REQUIRES(mutex_);
  std::vector<Candidate> take_beside_others(const Pick& wanted, table::Moment now) SLUICE_REQUIRES(mutex_);

  Duration buffer_life(table::Moment now) const SLUICE_REQUIRES(mutex_);
  /// False when it is there already or there is no room.
  bool add_ready(Candidate candidate, SteadyTime now) SLUICE_REQUIRES(mutex_);
  /// Drops all in the buffer when the last one added has been there since before `time`, to be read again.
  void drop_stale(SteadyTime time) SLUICE_REQUIRES(mutex_);
  ScanFinding finding_of(const ScanStep& step, const dynamo::Page& page) SLUICE_REQUIRES(mutex_);
  /// No record is any more what `record` says, which the index may still show: kept in `gone` until it has seen it.
  static void supersede(KnownRecords& gone, Candidate record, WallTime now);
  /// Takes a record that is due, and whose reading took those units, into the buffer, unless it is known to be so no
  /// more. It lies in the last stretch.
  void admit(Candidate candidate, double units, table::Moment now, ScanFinding& finding) SLUICE_REQUIRES(mutex_);

  Random& random_;

  mutable Mutex mutex_;
  Condition scan_ended_;
  // Guarded by mutex_.
  bool scanning_ SLUICE_GUARDED_BY(mutex_) = false;
  HeadScanner scanner_ SLUICE_GUARDED_BY(mutex_);
  /// Seen ready and not yet claimed; one Query fills it for many claims. A guess that ages: a claim finds out whether
  /// the record still is as it was.
  KnownRecords buffer_ SLUICE_GUARDED_BY(mutex_){kMostReady};
  SteadyTime filled_at_ SLUICE_GUARDED_BY(mutex_){};
  /// What this store claimed, put off or gave back: it comes due and can be claimed again, as its version is known.
  KnownRecords leases_ SLUICE_GUARDED_BY(mutex_){kMostLeases};
  Contention contention_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::string> late_ SLUICE_GUARDED_BY(mutex_);  // nonces of claims that may still arrive
  KnownRecords removed_ SLUICE_GUARDED_BY(mutex_){kMostLeases};
  KnownRecords taken_ SLUICE_GUARDED_BY(mutex_){kMostLeases};  // by others; looked at again once the index has seen it
};

}  // namespace sluice::queue::dynamomq
