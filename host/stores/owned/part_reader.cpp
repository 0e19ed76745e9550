#include "host/stores/owned/part_reader.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"
#include "host/stores/owned/sort_keys.hpp"

namespace sluice::queue::owned {
namespace {

Priority priority_at(std::size_t index) { return static_cast<Priority>(index); }
std::size_t index_of(Priority priority) { return static_cast<std::size_t>(priority); }

std::string head_of(std::size_t priority) { return first_sort_key(priority_at(priority), WallTime{}); }

// Where the tail of a lane begins: a little before now.
std::string tail_of(std::size_t priority, WallTime now) {
  return first_sort_key(priority_at(priority), std::max(WallTime{}, now - PartReader::kTail));
}

}  // namespace

PartReader::PartReader(SteadyTime now, bool written_before)
    : settled_at_(written_before ? now + kSettling : now),
      look_at_(now),
      front_at_(now + kLook),
      sweep_at_(now + kSweep) {}

bool PartReader::behind() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Cursor& lane) { return lane.more; });
}

std::optional<PartReader::Later> PartReader::later(SteadyTime now) const {
  const bool known = all_seen_at_ != SteadyTime::min() && now <= all_seen_at_ + kKnown && !behind();
  return known ? std::optional(Later{later_, now - all_seen_at_}) : std::nullopt;
}

// Where rings are in vain, as in most parts of a queue that is sent to all the time, they are heeded less often.
SteadyTime PartReader::ring_at(SteadyTime now) const {
  const SteadyTime affordable = vain_until_ == SteadyTime::min() ? now : vain_until_ - kVainRings * kVainRing;
  return std::max({now, affordable, looked_at_ == SteadyTime::min() ? now : looked_at_ + kRingPause});
}

void PartReader::rung(SteadyTime now) {
  rung_ = true;
  rung_at_ = holds_at_ = now;
  look_at_ = std::min(look_at_, ring_at(now));
}

void PartReader::sweep_by(SteadyTime time) {
  const SteadyTime soonest = swept_at_ == SteadyTime::min() ? time : std::max(time, swept_at_ + kLeastSweep);
  sweep_at_ = std::min(sweep_at_, soonest);
}

std::optional<SteadyTime> PartReader::take_swept() { return std::exchange(swept_, std::nullopt); }

std::optional<ReadOrder> PartReader::next(const Known& known, Moment now) {
  if (pauses(now.steady)) {
    return std::nullopt;
  }
  if (known.held && (!holds_known_ || (*known.held > 0 && now.steady >= holds_at_))) {
    return ReadOrder{.kind = ReadOrder::Kind::holds, .began = now};
  }
  asked_at_ = now.steady;
  const bool few = known.bytes <= kFewBytes && now.steady >= narrow_until_ && !behind() && !looking_;
  if (!sweep_ && now.steady >= sweep_at_ && SLUICE_GUARD(leased_sweep)) {
    holds_at_ = now.steady;
    if (few) {
      ReadOrder order = all_order(known, now, true);
      order.begins = true;
      return order;
    }
    Sweep sweep{.from = head_of(0), .began = now.steady};
    std::transform(lanes_.begin(), lanes_.end(), sweep.to.begin(), [](const Cursor& lane) { return lane.cursor; });
    sweep_ = std::move(sweep);
    swept_at_ = now.steady;
    sweep_at_ = now.steady + kSweep;  // or sooner, where one is asked for that begins later
    if (auto order = sweep_order(now)) {
      order->begins = true;
      return order;
    }
  }
  if (sweep_) {
    if (auto order = sweep_order(now)) {
      return order;
    }
  }
  if (few && (confirm_ || now.steady >= look_at_)) {
    return all_order(known, now, confirm_ || rung_ || consistently(now.steady));
  }
  if (!few && now.steady >= front_at_) {
    ReadOrder order{.kind = ReadOrder::Kind::front, .from = head_of(0), .began = now};
    order.to = last_sort_key(Priority::critical, kFrontEnd);
    order.consistent = consistently(now.steady);
    return order;
  }
  return known.ordered ? pass_order(known, now) : look_order(known, now);
}

// What lies beyond cursors that are behind is read as it is needed; the tails are looked at in turn, once in a while.
std::optional<ReadOrder> PartReader::look_order(const Known& known, Moment now) {
  for (std::size_t i = 0; i < kPriorities; ++i) {
    if (lanes_[i].more && known.waiting[i] < std::max<std::size_t>(1, known.page / 2)) {
      return forward_order(i, known, now);
    }
  }
  if (!looking_ && now.steady >= look_at_) {
    looking_ = 0;
  }
  // Where enough waits to be handed out, what comes behind it is no news.
  const std::size_t enough = std::max<std::size_t>(1, known.page / 4);
  while (looking_ && *looking_ < kPriorities && (lanes_[*looking_].more || known.waiting[*looking_] >= enough)) {
    ++*looking_;
  }
  if (looking_ && *looking_ < kPriorities) {
    return forward_order(*looking_, known, now);
  }
  if (looking_) {
    look_ended(found_, now.steady);
  }
  return std::nullopt;
}

// A pass, or the next page of the one that is under way: always of the priority that it has come least far in.
std::optional<ReadOrder> PartReader::pass_order(const Known& known, Moment now) {
  if (!passing_) {
    const std::size_t waiting = std::accumulate(known.waiting.begin(), known.waiting.end(), std::size_t{0});
    const bool short_of = behind() && waiting < std::max<std::size_t>(1, known.page / 2);
    const bool looks = now.steady >= look_at_ && waiting < std::max<std::size_t>(1, known.page / 4);
    if (!confirm_ && !short_of && !looks) {
      return std::nullopt;
    }
    begin_pass(now.wall);
  }
  const std::size_t priority = lowest_lane().value_or(0);
  const std::string& at = lanes_[priority].at;
  ReadOrder order = order_from(at.empty() ? head_of(priority) : beyond(at), priority, known, now);
  order.consistent = order.consistent || confirms_;
  return order;
}

// From where nothing can come any more: also where the clock has been set back since.
void PartReader::begin_pass(WallTime now) {
  target_ = std::exchange(found_to_, {});
  ++pass_;
  passing_ = true;
  found_ = false;
  confirms_ = std::exchange(confirm_, false);
  for (std::size_t i = 0; i < kPriorities; ++i) {
    Cursor& lane = lanes_[i];
    lane.settled = std::min(lane.settled, last_sort_key(priority_at(i), std::max(WallTime{}, now - kLate)));
    lane.at = lane.settled;
    lane.read = lane.ended = false;
  }
}

std::optional<std::size_t> PartReader::lowest_lane() const {
  std::optional<std::size_t> lowest;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    const bool lower = !lowest || Frontier::place_of(lanes_[i].at) < Frontier::place_of(lanes_[*lowest].at);
    lowest = !lanes_[i].ended && lower ? i : lowest;
  }
  return lowest;
}

// A page that began where all was settled settles what was old enough when it was read.
void PartReader::settle(Cursor& lane, const std::string& from, std::size_t priority, WallTime began) const {
  if (from <= (lane.settled.empty() ? head_of(priority) : beyond(lane.settled))) {
    const std::string old = last_sort_key(priority_at(priority), std::max(WallTime{}, began - kLate));
    lane.settled = std::max(lane.settled, std::min(lane.at, old));
  }
}

// A look ends where it would read on in a priority although it has found something; what lies beyond is read as it is
// needed.
void PartReader::pass_done(const ReadOrder& order, const ReadAnswer& answer, SteadyTime now) {
  Cursor& lane = lanes_[index_of(order.priority)];
  lane.ended = answer.stopped_at.empty();
  lane.read = true;
  lane.more = !lane.ended;
  lane.at = lane.ended ? order.to : answer.stopped_at;
  lane.cursor = std::max(lane.cursor, lane.at);
  settle(lane, order.from, index_of(order.priority), order.began.wall);
  found_ = found_ || answer.fresh > 0;
  found_to_ = answer.fresh > 0 ? std::max(found_to_, Frontier::place_of(lane.at)) : found_to_;
  const auto lowest = lowest_lane();
  const bool far = confirms_ ? frontier().passed >= target_ : lowest && lanes_[*lowest].read && found_;
  passing_ = lowest && !far;
  if (!passing_ && !confirms_) {
    look_ended(found_, now);
  }
}

Frontier PartReader::frontier() const {
  Frontier frontier{
      .settled = Frontier::place_of(lanes_[0].settled), .passed = Frontier::place_of(lanes_[0].at), .pass = pass_};
  for (const Cursor& lane : lanes_) {
    frontier.settled = std::min(frontier.settled, Frontier::place_of(lane.settled));
    frontier.passed = std::min(frontier.passed, Frontier::place_of(lane.at));
  }
  return frontier;
}

ReadOrder PartReader::all_order(const Known& known, Moment now, bool consistent) {
  if (known.ordered) {
    begin_pass(now.wall);
  }
  ReadOrder order{.kind = ReadOrder::Kind::all, .from = head_of(0), .consistent = consistent, .began = now};
  order.to = last_sort_key(Priority::low, kEndOfTime);
  order.limit = known.page + kFewDelayed;
  return order;
}

ReadOrder PartReader::forward_order(std::size_t priority, const Known& known, Moment now) const {
  const Cursor& lane = lanes_[priority];
  if (lane.cursor.empty()) {
    return order_from(head_of(priority), priority, known, now);
  }
  const std::string on = beyond(lane.cursor);
  return order_from(lane.more ? on : std::min(on, tail_of(priority, now.wall)), priority, known, now);
}

ReadOrder PartReader::order_from(const std::string& from, std::size_t priority, const Known& known, Moment now) const {
  ReadOrder order{.kind = ReadOrder::Kind::forward, .priority = priority_at(priority), .began = now};
  order.to = last_sort_key(order.priority, now.wall);
  order.from = std::min(from, order.to);
  order.consistent = consistently(now.steady);
  order.limit = known.page;
  return order;
}

// Nothing: there was nothing left to sweep.
std::optional<ReadOrder> PartReader::sweep_order(Moment now) {
  while (sweep_->priority < kPriorities) {
    const std::string& to = sweep_->to[sweep_->priority];
    if (!to.empty() && sweep_->from <= to) {
      ReadOrder order{.kind = ReadOrder::Kind::sweep, .priority = priority_at(sweep_->priority), .from = sweep_->from};
      order.to = to;
      order.consistent = true;
      order.began = now;
      return order;
    }
    if (++sweep_->priority < kPriorities) {
      sweep_->from = head_of(sweep_->priority);
    }
  }
  swept_ = sweep_->began;
  sweep_.reset();
  return std::nullopt;
}

void PartReader::done(const ReadOrder& order, const ReadAnswer& answer, SteadyTime now) {
  pause_ = Duration::zero();
  first_ = false;
  const bool ended = answer.stopped_at.empty();
  switch (order.kind) {
    case ReadOrder::Kind::all:
      all_done(order, answer);
      if (!confirms_) {
        look_ended(answer.fresh > 0, now);
      }
      if (answer.next_due) {
        const Duration wait = std::max(Duration::zero(), Duration(*answer.next_due - order.began.wall));
        look_at_ = std::min(look_at_, until(order.began.steady, wait));
      }
      break;
    case ReadOrder::Kind::forward: {
      empty_ = false;
      if (passing_) {
        pass_done(order, answer, now);
        break;
      }
      Cursor& lane = lanes_[index_of(order.priority)];
      lane.cursor = std::max(lane.cursor, ended ? order.to : answer.stopped_at);
      lane.more = !ended;
      found_ = found_ || answer.fresh > 0;
      if (ended && looking_ == index_of(order.priority)) {
        ++*looking_;
      }
      break;
    }
    case ReadOrder::Kind::front:
      front_at_ = order.began.steady + kLook;
      break;
    case ReadOrder::Kind::sweep:
      sweep_->from = beyond(ended ? order.to : answer.stopped_at);
      sweep_order(order.began);  // its end is known at once
      break;
    case ReadOrder::Kind::holds:
      break;
  }
}

// A page that ends before everything was read says where each priority's cursor stands.
void PartReader::all_done(const ReadOrder& order, const ReadAnswer& answer) {
  front_at_ = order.began.steady + kLook;
  const bool ended = answer.stopped_at.empty();
  const std::size_t last = ended ? kPriorities : index_of(priority_of(answer.stopped_at));
  for (std::size_t i = 0; i < kPriorities; ++i) {
    const std::string bound = last_sort_key(priority_at(i), order.began.wall);
    Cursor& lane = lanes_[i];
    if (i < last || (i == last && answer.stopped_at > bound)) {
      lane.cursor = bound;
      lane.more = false;
    } else if (i == last) {
      lane.cursor = answer.stopped_at;
      lane.more = true;
    } else {
      lane.cursor = head_of(i);
      lane.more = true;
    }
    lane.at = lane.cursor;
    found_to_ = answer.fresh > 0 ? std::max(found_to_, Frontier::place_of(lane.at)) : found_to_;
    if (passing_) {
      settle(lane, order.from, i, order.began.wall);
    }
  }
  passing_ = false;
  if (answer.later > kFewDelayed || (!ended && answer.later > 0)) {
    narrow_until_ = order.began.steady + kSweep;
  }
  if (ended) {
    later_ = answer.later;
    all_seen_at_ = order.began.steady;
  }
  const bool nothing = ended && answer.due == 0 && answer.later == 0;
  empty_ = nothing && (empty_ || order.consistent);
  if (order.consistent && ended) {
    swept_at_ = order.began.steady;
    sweep_at_ = order.began.steady + kSweep;
    swept_ = order.began.steady;
  } else if (order.began.steady >= sweep_at_) {
    // What the page has not reached will be read from its head all the same.
    sweep_at_ = order.began.steady + kSweep;
  }
}

// A ring is answered by one look. Of a part of which little is there it is strongly consistent and sees all that was
// stored before; of another one what is not seen yet is seen by the next look.
void PartReader::look_ended(bool found, SteadyTime now) {
  if (rung_ && !found) {
    vain_until_ = std::max(now, vain_until_) + kVainRing;
  } else if (rung_ && vain_until_ > now) {
    vain_until_ -= kVainRing;
  }
  rung_ = rung_ && rung_at_ > asked_at_;
  found_ = false;
  looking_.reset();
  looked_at_ = now;
  look_at_ = rung_ ? ring_at(now) : now + kLook;
}

void PartReader::holds_read(std::size_t groups, SteadyTime now) {
  holds_known_ = true;
  holds_at_ = now + kHoldsAgain * (1 + groups / kHoldsPage);
}

void PartReader::failed(SteadyTime now) {
  pause_ = pause_ == Duration::zero() ? kFirstFailurePause : std::min(pause_ * 2, kMostFailurePause);
  paused_until_ = now + pause_;
}

SteadyTime PartReader::wakes_at(SteadyTime now) const {
  if (behind() || sweep_ || looking_ || passing_ || confirm_) {
    return std::max(now, paused_until_);
  }
  return std::max(paused_until_, std::min(look_at_, sweep_at_));
}

}  // namespace sluice::queue::owned
