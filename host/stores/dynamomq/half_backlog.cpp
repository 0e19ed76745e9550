#include "host/stores/dynamomq/half_backlog.hpp"

#include <algorithm>
#include <cmath>

#include "base/guard.hpp"
#include "base/ranges.hpp"
#include "base/timestamp.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/nonce.hpp"

namespace sluice::queue::dynamomq {
namespace {

bool is_innocent(const Candidate& candidate) { return !candidate.suspect(); }

}  // namespace

bool KnownRecords::put(Candidate record) {
  if (!record.state.received_at) {
    record.state.failure = {};  // whoever claims it is told anew
  }
  records_.erase(record.id);
  return records_.size() < most_ && records_.insert(std::move(record)).second;
}

const Candidate* KnownRecords::find(const std::string& id) const {
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : &*found;
}

std::vector<Candidate> KnownRecords::take_if(std::size_t count, const std::function<bool(const Candidate&)>& wanted,
                                             std::size_t skip) {
  std::vector<Candidate> taken;
  auto& in_order = records_.get<1>();
  auto next = std::next(in_order.begin(), static_cast<std::ptrdiff_t>(std::min(skip, size())));
  while (next != in_order.end() && taken.size() < count) {
    if (wanted(*next)) {
      taken.push_back(*next);
      next = in_order.erase(next);
    } else {
      ++next;
    }
  }
  return taken;
}

std::vector<Candidate> KnownRecords::take_due(WallTime now, std::size_t count) {
  std::vector<Candidate> due;
  auto& by_due = records_.get<2>();
  while (due.size() < count && !by_due.empty() && by_due.begin()->due(now)) {
    due.push_back(*by_due.begin());
    by_due.erase(by_due.begin());
  }
  return due;
}

std::size_t KnownRecords::suspects() const {
  return static_cast<std::size_t>(std::count_if(records_.begin(), records_.end(), std::mem_fn(&Candidate::suspect)));
}

double Contention::recent_losses(SteadyTime now) const {
  const auto halvings = std::chrono::duration<double>(now - losses_at_) / std::chrono::duration<double>(kHalfLife);
  return losses_ * std::exp2(-std::max(0.0, halvings));
}

void Contention::lost(std::size_t races, SteadyTime now) {
  losses_ = recent_losses(now) + static_cast<double>(races);
  losses_at_ = now;
}

void Contention::saw_peer(std::string_view tag, SteadyTime now) {
  if (tag.empty() || tag == tag_) {
    return;
  }
  std::erase_if(peers_, [&](const auto& peer) { return now - peer.second > kPeerLife; });
  if (const auto known = peers_.find(tag); known != peers_.end()) {
    known->second = now;
  } else if (peers_.size() < kMaxPeers) {
    peers_.emplace(tag, now);
  }
}

bool Contention::active(SteadyTime now) const { return recent_losses(now) >= kThreshold; }

bool Contention::knows_peers(SteadyTime now) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& peer) { return now - peer.second <= kPeerLife; });
}

bool Contention::comes_first(const std::string& id, SteadyTime now) const {
  const std::uint64_t seed = table::stable_hash(id);
  const std::uint64_t own = table::stable_hash(tag_, seed);
  return std::none_of(peers_.begin(), peers_.end(), [&](const auto& peer) {
    return now - peer.second <= kPeerLife && table::stable_hash(peer.first, seed) > own;
  });
}

bool Contention::leave(const Candidate& candidate, SteadyTime now) {
  if (!active(now) || comes_first(candidate.id, now)) {
    return false;
  }
  if (left_since_.size() >= kMaxPutOff) {
    std::erase_if(left_since_, [&](const auto& left) { return now - left.second > 2 * kPatience; });
    if (left_since_.size() >= kMaxPutOff) {
      left_since_.clear();
    }
  }
  return now - left_since_.emplace(candidate.id, now).first->second < kPatience;
}

HalfBacklog::HalfBacklog(std::string tag, Random& random) : random_(random), contention_(std::move(tag)) {}

std::vector<Candidate> HalfBacklog::pick(const Pick& wanted, table::Moment now) {
  const MutexLock lock(mutex_);
  const bool contended = contention_.active(now.steady);
  drop_stale(now.steady - buffer_life(now));
  for (auto& due : leases_.take_due(now.wall, wanted.count)) {
    const std::string sort_key = due.sort_key;
    if (!add_ready(std::move(due), now.steady)) {
      scanner_.expect(sort_key, now.wall);
    }
  }
  auto picked = contended ? take_beside_others(wanted, now) : take(wanted);
  for (const auto& candidate : picked) {
    Candidate lease = candidate;
    lease.version = table::VersionMark::number_of(candidate.version.next());
    core::apply(core::claim(lease.state, wanted.terms), lease.state);
    if (!leases_.put(std::move(lease))) {
      scanner_.expect(candidate.sort_key, wanted.terms.until);
    }
  }
  return picked;
}

bool HalfBacklog::add_ready(Candidate candidate, SteadyTime now) {
  const bool room = !candidate.suspect() || buffer_.suspects() < kMostSuspects;
  if (!room || buffer_.find(candidate.id) != nullptr || !buffer_.put(std::move(candidate))) {
    return false;
  }
  filled_at_ = now;
  return true;
}

void HalfBacklog::drop_stale(SteadyTime time) {
  if (filled_at_ < time) {
    const auto all = [](const Candidate&) { return true; };
    scanner_.rewind(mapped(buffer_.take_if(buffer_.size(), all), &Candidate::sort_key));
  }
}

// What others may have taken meanwhile is dropped the sooner the likelier there are others.
Duration HalfBacklog::buffer_life(table::Moment now) const {
  return contention_.active(now.steady)                                     ? kContendedBufferLife
         : contention_.knows_peers(now.steady) || !SLUICE_GUARD(heads_kept) ? kBufferLife
                                                                            : kLonelyBufferLife;
}

std::vector<Candidate> HalfBacklog::take(const Pick& wanted) {
  if (wanted.suspects && wanted.count > 0 && !buffer_.empty() && buffer_.front()->suspect()) {
    return buffer_.take_if(SLUICE_GUARD(suspect_alone) ? 1 : wanted.count, &Candidate::suspect);
  }
  return buffer_.take_if(wanted.count, is_innocent);
}

std::vector<Candidate> HalfBacklog::take_beside_others(const Pick& wanted, table::Moment now) {
  const auto left = [&](const Candidate& c) SLUICE_REQUIRES(mutex_) {
    const bool leave = contention_.leave(c, now.steady);
    if (leave) {
      scanner_.expect(c.sort_key, now.wall + Contention::kPatience);
    }
    return leave;
  };
  const bool knows_peers = contention_.knows_peers(now.steady);
  if (knows_peers) {
    buffer_.take_if(buffer_.size(), left);
  }
  if (wanted.suspects && !buffer_.empty() && buffer_.front()->suspect()) {
    return take(wanted);
  }
  std::vector<Candidate> picked;
  if (knows_peers) {
    picked = buffer_.take_if(wanted.count, [&](const Candidate& c) SLUICE_REQUIRES(mutex_) {
      return !c.suspect() && contention_.comes_first(c.id, now.steady);
    });
  }
  if (picked.empty()) {
    picked = buffer_.take_if(wanted.count, is_innocent,
                             random_.below(buffer_.size() - std::min(wanted.count, buffer_.size()) + 1));
  }
  return picked.empty() ? take(wanted) : picked;
}

bool HalfBacklog::backlog_unread() const {
  const MutexLock lock(mutex_);
  return !scanner_.at_end();
}

std::optional<ScanStep> HalfBacklog::begin_scan(table::Moment now, std::size_t want, Deadline deadline) {
  MutexLock lock(mutex_);
  if (scanning_) {
    scan_ended_.wait_until(mutex_, deadline.time(), [this]() SLUICE_REQUIRES(mutex_) { return !scanning_; });
    if (scanning_ || !buffer_.empty()) {
      return std::nullopt;
    }
  }
  scanning_ = true;
  return scanner_.next(now, want);
}

std::optional<ScanStep> HalfBacklog::begin_side_scan(table::Moment now) {
  const MutexLock lock(mutex_);
  if (scanning_) {
    return std::nullopt;
  }
  // While there is enough to claim nobody reads, and while there is a backlog claims read on where they are: neither
  // sees what comes to lie before all that is known.
  const bool head_is_next = buffer_.empty() && scanner_.begins_at_head();
  auto step = head_is_next ? std::nullopt : scanner_.next_front(now);
  if (!step && buffer_.empty()) {
    step = scanner_.next_unsorted(now);
  }
  scanning_ = step.has_value();
  return step;
}

void HalfBacklog::end_scan(const ScanStep& step, const dynamo::Page* page) {
  const MutexLock lock(mutex_);
  if (page != nullptr) {
    scanner_.absorb(step, finding_of(step, *page));
  }
  scanning_ = false;
  scan_ended_.notify_all();
}

ScanFinding HalfBacklog::finding_of(const ScanStep& step, const dynamo::Page& page) {
  ScanFinding finding;
  finding.items = page.items.size();
  finding.read_units = page.capacity.read;
  finding.last_key = page.last_evaluated_key;
  const double units = page.items.empty() ? 0 : page.capacity.read / static_cast<double>(page.items.size());
  std::size_t in_stretch = kStretchItems;
  for (const auto& item : page.items) {
    Candidate candidate = Candidate::of(item);
    finding.ends_fresh = false;
    const Candidate* lease = leases_.find(candidate.id);
    if (lease != nullptr &&
        (candidate.version.number > lease->version.number || candidate.sort_key != lease->sort_key)) {
      leases_.erase(candidate.id);  // somebody else has claimed, changed or replaced it since
      lease = nullptr;
    }
    const bool due = lease == nullptr && candidate.due(step.at.wall);
    if (!due && candidate.sort_key > due_bound(step.at.wall)) {
      ++finding.future;
      sooner(finding.future_due, candidate.due_at());
      continue;
    }
    if (in_stretch == kStretchItems) {
      finding.stretches.emplace_back();
      in_stretch = 0;
    }
    ++in_stretch;
    Stretch& stretch = finding.stretches.back();
    stretch.to = candidate.sort_key;
    if (due) {
      admit(std::move(candidate), units, step.at, finding);
      continue;
    }
    stretch.units += units;
    if (lease == nullptr) {  // otherwise it is known without reading when it comes due
      contention_.saw_peer(table::NonceSource::tag_of(candidate.nonce), step.at.steady);
      sooner(stretch.due, candidate.due_at());
    }
  }
  return finding;
}

void HalfBacklog::admit(Candidate candidate, double units, table::Moment now, ScanFinding& finding) {
  Stretch& stretch = finding.stretches.back();
  const auto outdated = [&](const KnownRecords& gone) {  // not so a new message of the same id
    const Candidate* was = gone.find(candidate.id);
    return was != nullptr && !was->due(now.wall) && was->sort_key == candidate.sort_key &&
           was->nonce == candidate.nonce && candidate.version.number <= was->version.number;
  };
  if (outdated(removed_)) {
    return;
  }
  if (outdated(taken_)) {
    return sooner(stretch.due, taken_.find(candidate.id)->due_at());
  }
  if (late_.contains(candidate.nonce)) {
    candidate.never_arrived();
  }
  const bool suspect = candidate.suspect();
  const bool known = buffer_.find(candidate.id) != nullptr;
  finding.ends_fresh = add_ready(std::move(candidate), now.steady);
  if (finding.ends_fresh || !suspect) {
    ++finding.ready;
    return;
  }
  // As long as it has to wait there is nothing to claim here.
  stretch.units += units;
  if (!known) {
    sooner(stretch.due, now.wall);
  }
}

void HalfBacklog::claimed(Candidate record) {
  const MutexLock lock(mutex_);
  if (const Candidate* known = leases_.find(record.id)) {
    record.nonce = known->nonce;  // by which the index may still show it
    leases_.put(std::move(record));
  }
}

std::optional<Duration> HalfBacklog::next_due(table::Moment now) const {
  const MutexLock lock(mutex_);
  std::optional<Duration> next = scanner_.next_due(now);
  if (const auto own = leases_.first_due()) {
    sooner(next, std::max<Duration>(Duration::zero(), *own - now.wall) + kInstant);
  }
  return next;
}

void HalfBacklog::lost(const std::vector<Candidate>& candidates, table::Moment now) {
  const MutexLock lock(mutex_);
  const bool was_contended = contention_.active(now.steady);
  contention_.lost(candidates.size(), now.steady);
  if (!was_contended && contention_.active(now.steady)) {
    // What is in the buffer is in the others' buffers too. A new look also shows who they are.
    drop_stale(SteadyTime::max());
  }
  for (const auto& candidate : candidates) {
    leases_.erase(candidate.id);
    scanner_.expect(candidate.sort_key, now.wall);
    supersede(taken_, candidate, now.wall);
  }
}

void HalfBacklog::put_back(std::vector<Candidate> candidates, table::Moment now) {
  const MutexLock lock(mutex_);
  for (auto& candidate : candidates) {
    leases_.erase(candidate.id);
    add_ready(std::move(candidate), now.steady);
  }
}

void HalfBacklog::keep(Candidate candidate) {
  const MutexLock lock(mutex_);
  leases_.put(std::move(candidate));
}

void HalfBacklog::disown(const Candidate& record, const std::string& nonce) {
  const MutexLock lock(mutex_);
  buffer_.erase(record.id);
  leases_.erase(record.id);
  if (late_.size() >= kMaxLate) {
    late_.clear();
  }
  late_.insert(nonce);
  scanner_.expect(record.sort_key, record.due_at());
}

std::optional<Candidate> HalfBacklog::lease_of(const Receipt& receipt) const {
  const MutexLock lock(mutex_);
  const Candidate* lease = leases_.find(receipt.id);
  return lease != nullptr && lease->version.number == receipt.version ? std::optional(*lease) : std::nullopt;
}

void HalfBacklog::written(const Receipt& receipt, std::int64_t version, const core::StateChange& change, WallTime now) {
  const MutexLock lock(mutex_);
  const Candidate* known = leases_.find(receipt.id);
  const bool stays = !change.removes && !change.half;
  if (stays && known != nullptr && known->version.next() == version) {
    Candidate lease = *known;
    lease.version = table::VersionMark::number_of(version);
    core::apply(change, lease.state);
    lease.state.checkpoint.clear();
    leases_.put(std::move(lease));
    return;
  }
  if (change.half) {
    buffer_.erase(receipt.id);
  } else if (change.removes && known != nullptr) {
    supersede(removed_, *known, now);
  } else if (stays && (known != nullptr || change.hidden_until)) {
    // What is known of it, if anything, is of an earlier claim: this one was made by another store.
    const auto due = change.hidden_until ? *change.hidden_until : known->state.hidden_until;
    scanner_.expect(due.value_or(WallTime{}));
  }
  leases_.erase(receipt.id);
}

void HalfBacklog::supersede(KnownRecords& gone, Candidate record, WallTime now) {
  gone.take_due(now, kMostLeases);
  record.state.hidden_until = now + kIndexDelay;
  record.state.failure = {};
  gone.put(std::move(record));
}

void HalfBacklog::forget(const std::string& id) {
  const MutexLock lock(mutex_);
  buffer_.erase(id);
  leases_.erase(id);
}

void HalfBacklog::forget_receipt(const Receipt& receipt) {
  const MutexLock lock(mutex_);
  const Candidate* lease = leases_.find(receipt.id);
  if (lease != nullptr && lease->version.number <= receipt.version) {
    leases_.erase(receipt.id);
  }
}

void HalfBacklog::expect(WallTime due) {
  const MutexLock lock(mutex_);
  scanner_.expect(due);
}

void HalfBacklog::restart() {
  const MutexLock lock(mutex_);
  buffer_.clear();
  leases_.clear();
  scanner_.restart();
}

}  // namespace sluice::queue::dynamomq
