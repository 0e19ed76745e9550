#include "host/stores/sqlite/lanes.hpp"

#include <algorithm>
#include <iterator>

#include "base/guard.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

/// A positive number from any.
std::int64_t mixed(std::uint64_t value) {
  value ^= value >> 33U;
  value *= 0xFF51AFD7ED558CCDULL;
  value ^= value >> 33U;
  return static_cast<std::int64_t>((value >> 2U) | 1U);
}

// What lies farther ahead was not sent by the clock.
constexpr std::int64_t kMostSetBack = Duration(std::chrono::hours(1)).count();

Place place_of(const Standing& standing) { return {stored(standing.sent_at), standing.seq}; }

bool same_for_lane(const Standing& before, const Standing& after) {
  return before.half == after.half && before.group == after.group && before.sent_at == after.sent_at &&
         before.until.has_value() == after.until.has_value() && before.suspected() == after.suspected() &&
         before.blocks() == after.blocks();
}

}  // namespace

std::int64_t group_hash(std::string_view group) {
  if (group.empty()) {
    return 0;
  }
  std::uint64_t value = 0xCBF29CE484222325ULL;
  for (const char c : group) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return mixed(value);
}

Kept kept_for(const ClaimRules& rules) {
  switch (rules.order) {
    case Order::group:
      return Kept::group;
    case Order::queue:
      return Kept::queue;
    case Order::none:
      break;
  }
  return rules.fair ? Kept::fair : Kept::none;
}

Lanes::Lanes(Connection& connection, Places& places)
    : connection_(connection),
      places_(places),
      line_(connection),
      rows_(connection),
      bits_(connection, "SELECT kept FROM queues WHERE id = ?1"),
      bits_write_(connection, "UPDATE queues SET kept = ?2 WHERE id = ?1"),
      head_state_(connection,
                  "SELECT until IS NOT NULL, received_at IS NOT NULL OR suspect FROM deliveries WHERE seq = ?1"),
      hold_(connection, "INSERT OR REPLACE INTO holds VALUES (?1, ?2, ?3, ?4)"),
      let_go_(connection, "DELETE FROM holds WHERE seq = ?1"),
      held_place_(connection, "SELECT sent_at, half, lane FROM holds WHERE seq = ?1") {}

void Lanes::begin() {
  known_.clear();
  offered_.clear();
  line_.begin();
  rows_.begin();
  places_.begin();
}

void Lanes::learn(std::int64_t queue, std::int64_t bits) {
  const auto known =
      std::find_if(known_.begin(), known_.end(), [queue](const auto& entry) { return entry.first == queue; });
  if (known == known_.end()) {
    known_.emplace_back(queue, bits);
  }
}

std::int64_t Lanes::bits_of(std::int64_t half) {
  const std::int64_t queue = half / 2;
  for (const auto& [id, bits] : known_) {
    if (id == queue) {
      return bits;
    }
  }
  bits_.bind(queue);
  const std::int64_t bits = bits_.row() ? bits_.integer(0) : 0;
  bits_.reset();
  known_.emplace_back(queue, bits);
  return bits;
}

void Lanes::write_bits(std::int64_t half, std::int64_t bits) {
  bits_write_.bind(half / 2, bits).run();
  for (auto& entry : known_) {
    if (entry.first == half / 2) {
      entry.second = bits;
    }
  }
}

void Lanes::prioritise(std::int64_t half) {
  if (!prioritised(half)) {
    write_bits(half, bits_of(half) | kPrioritised);
  }
}

std::int64_t Lanes::lane_of(std::int64_t half, std::int64_t group) {
  const Kept kept = this->kept(half);
  if (kept == Kept::none || (group == 0 && kept != Kept::queue)) {
    return 0;
  }
  return mixed(static_cast<std::uint64_t>(half) * 0x9E3779B97F4A7C15ULL +
               static_cast<std::uint64_t>(kept == Kept::queue ? 0 : group));
}

std::int64_t Lanes::place_half(const Standing& standing) {
  return kept(standing.half) == Kept::none ? class_half(standing.half, standing.priority) : standing.half;
}

void Lanes::gather_ends(std::int64_t half, std::span<const std::int64_t> groups) {
  gathered_.clear();
  for (const std::int64_t group : groups) {
    if (const std::int64_t lane = lane_of(half, group); lane != 0) {
      gathered_.push_back(lane);
    }
  }
  rows_.gather(half, gathered_);
  places_.gather();
  line_.gather(rows_.first_in_line(gathered_));
}

void Lanes::flush() {
  if (rows_.gathers()) {
    rows_.flush();
    places_.flush();
    line_.flush();
  }
}

void Lanes::take(Lane& lane, const Standing& standing) {
  const bool visible = !standing.until;
  if (lane.head == standing.seq) {
    if (visible) {
      places_.take(lane.half, {lane.turn, standing.seq}, standing.suspected());
    }
    lane.head.reset();
  } else if (visible) {
    line_.remove(lane.ends, standing.seq);
    return;
  } else if (standing.blocks() && kept(lane.half) != Kept::fair) {
    lane.others = std::max<std::int64_t>(0, lane.others - 1);
  }
  line_.forget(standing.seq);
}

void Lanes::give(Lane& lane, const Standing& standing, bool was_head) {
  if (!standing.until && was_head) {
    line_.insert_first(lane.half, lane.ends, place_of(standing), standing.suspected());
  } else if (!standing.until) {
    line_.insert(lane.half, lane.ends, place_of(standing), standing.suspected());
  } else if (standing.blocks() && kept(lane.half) != Kept::fair) {
    if (lane.head || lane.others > 0) {
      ++lane.others;
    } else {
      lane.head = standing.seq;
      lane.head_sent = stored(standing.sent_at);
    }
  }
}

void Lanes::offer(Lane& lane, std::optional<std::int64_t> turn) {
  const auto first = line_.pop(lane.ends);
  if (!first) {
    return;
  }
  lane.head = first->place.second;
  lane.head_sent = first->place.first;
  lane.turn = turn.value_or(lane.head_sent);
  places_.put(lane.half, {lane.turn, *lane.head}, first->suspected);
  if (std::find(offered_.begin(), offered_.end(), lane.half) == offered_.end()) {
    offered_.push_back(lane.half);
  }
}

bool Lanes::withdraw(Lane& lane) {
  head_state_.bind(*lane.head);
  const bool touched = head_state_.row();
  const bool out = touched && head_state_.integer(0) != 0;
  const bool suspected = touched && head_state_.integer(1) != 0;
  head_state_.reset();
  if (out) {
    return false;
  }
  places_.take(lane.half, {lane.turn, *lane.head}, suspected);
  line_.insert_first(lane.half, lane.ends, {lane.head_sent, *lane.head}, suspected);
  lane.head.reset();
  return true;
}

// `came`: a message that has just been put into line, which may be older than the head.
void Lanes::balance(Lane& lane, const std::optional<Place>& came) {
  const bool older = lane.head && came && *came < Place{lane.head_sent, *lane.head};
  if (older || (lane.head && lane.others > 0)) {
    withdraw(lane);
  }
  if (!lane.head && lane.others == 0) {
    offer(lane, stored(now_));
  }
}

void Lanes::change(const Standing* before, const Standing* after) {
  if (before != nullptr && after != nullptr && same_for_lane(*before, *after)) {
    return;
  }
  const std::int64_t from = before == nullptr ? 0 : lane_of(before->half, before->group);
  const std::int64_t to = after == nullptr ? 0 : lane_of(after->half, after->group);
  const auto came = after != nullptr && !after->until ? std::optional(place_of(*after)) : std::nullopt;
  if (from != 0) {
    const Lane old = rows_.load(before->half, from);
    Lane lane = old;
    take(lane, *before);
    if (to == from) {
      give(lane, *after, old.head == before->seq && before->sent_at == after->sent_at);
    }
    balance(lane, to == from ? came : std::nullopt);
    rows_.store(old, lane);
  }
  if (to != 0 && to != from) {
    const Lane old = rows_.load(after->half, to);
    Lane lane = old;
    give(lane, *after);
    balance(lane, came);
    rows_.store(old, lane);
  }
}

void Lanes::end(std::int64_t half, std::int64_t lane, std::int64_t seq, Rest rest) {
  if (rest == Rest::removed) {
    line_.forget(seq);
  }
  if (kept(half) == Kept::fair) {
    return;
  }
  const Lane old = rows_.load(half, lane);
  Lane now = old;
  if (now.head == seq) {
    now.head.reset();
  } else {
    now.others = std::max<std::int64_t>(0, now.others - 1);
  }
  balance(now, std::nullopt);
  rows_.store(old, now);
}

void Lanes::claimed(std::int64_t half, std::int64_t lane, std::int64_t seq) {
  const Lane old = rows_.load(half, lane);
  if (old.head == seq) {
    Lane now = old;
    now.head.reset();
    balance(now, std::nullopt);
    rows_.store(old, now);
  }
}

// In the order of sending, even where the clock has gone back meanwhile: nobody gets an earlier time than who was sent
// before him, whose place tells by it, too, when he comes back. An empty line keeps the time of its last one.
void Lanes::grow(std::int64_t half, std::int64_t lane, std::span<Newcomer* const> newcomers) {
  const Lane old = rows_.load(half, lane);
  Lane now = old;
  Newcomer* previous = nullptr;
  for (Newcomer* const newcomer : newcomers) {
    auto& [sent_at, seq] = newcomer->place;
    const std::int64_t latest = std::max(now.ends.last_sent, now.head ? now.head_sent : sent_at);
    sent_at = latest - sent_at > kMostSetBack ? sent_at : std::max(sent_at, latest);
    if (!now.head && now.others == 0 && !now.ends.first) {
      newcomer->head = true;
      now.ends.last_sent = sent_at;
      now.head = seq;
      now.head_sent = sent_at;
      now.turn = sent_at;
      continue;
    }
    newcomer->before = now.ends.last;
    if (previous != nullptr) {
      previous->next = seq;
    } else if (now.ends.last) {
      line_.follow(*now.ends.last, seq);
    }
    now.ends.first = now.ends.first ? now.ends.first : seq;
    now.ends.last = seq;
    now.ends.last_sent = sent_at;
    previous = newcomer;
  }
  rows_.store(old, now);
}

void Lanes::hold(const Standing& head) {
  const std::int64_t lane = lane_of(head.half, head.group);
  if (lane == 0 || kept(head.half) == Kept::fair || !SLUICE_GUARD(sqlite_groups_hold)) {
    return;
  }
  hold_.bind(head.seq, head.half, lane, stored(head.sent_at)).run();
  const Lane old = rows_.load(head.half, lane);
  Lane now = old;
  ++now.others;
  rows_.store(old, now);
}

void Lanes::let_go(std::int64_t seq) {
  held_place_.bind(seq);
  const bool holds = held_place_.row();
  const std::int64_t half = holds ? held_place_.integer(1) : 0;
  const std::int64_t lane = holds ? held_place_.integer(2) : 0;
  held_place_.reset();
  if (!holds) {
    return;
  }
  let_go_.bind(seq).run();
  const Lane old = rows_.load(half, lane);
  Lane now = old;
  now.others = std::max<std::int64_t>(0, now.others - 1);
  balance(now, std::nullopt);
  rows_.store(old, now);
}

std::optional<WallTime> Lanes::held_place(std::int64_t seq) {
  held_place_.bind(seq);
  const auto place = held_place_.row() ? std::optional(loaded(held_place_.integer(0))) : std::nullopt;
  held_place_.reset();
  return place;
}

bool Lanes::take_offered(std::int64_t half) { return std::erase(offered_, half) > 0; }

}  // namespace sluice::queue::sqlite
