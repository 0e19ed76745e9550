// The part of Lanes that begins, changes and ends the keeping of a half's order.

#include <algorithm>
#include <map>

#include "host/stores/sqlite/lanes.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/tombstones.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr const char* kGather =
    "SELECT m.sent_at, p.seq, m.message_group, p.suspected, m.priority FROM ("
    "SELECT seq, 0 AS suspected FROM ready WHERE half IN (?1, ?2, ?3, ?4) UNION ALL "
    "SELECT seq, 1 FROM suspects WHERE half = ?1 UNION ALL "
    "SELECT seq, suspected FROM chains AS c WHERE half = ?1 AND seq NOT IN (SELECT head FROM lanes WHERE half = ?1 AND "
    "head IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.seq = c.seq AND d.until IS NOT NULL)) "
    "AS p CROSS JOIN messages AS m ON m.seq = p.seq WHERE NOT ";
constexpr const char* kGatherOrder = " ORDER BY 1, 2";

constexpr const char* kWaiting =
    "SELECT m.sent_at, m.seq, m.message_group, d.until, d.received_at FROM deliveries AS d "
    "INDEXED BY deliveries_due CROSS JOIN messages AS m ON m.seq = d.seq WHERE d.half = ?1 AND d.until IS NOT NULL";

std::int64_t class_of(std::int64_t half, std::size_t priority) {
  return class_half(half, static_cast<Priority>(priority));
}

}  // namespace

std::vector<Lanes::Waiting> Lanes::gather(std::int64_t half) {
  Statement all(connection_, (kGather + Tombstones::buried() + kGatherOrder).c_str());
  all.bind(half, class_half(half, Priority::critical), class_half(half, Priority::high),
           class_half(half, Priority::low));
  std::vector<Waiting> waiting;
  while (all.row()) {
    const std::int64_t group = group_hash(all.bytes(2));
    const Priority priority = stored_priority(all.optional_integer(4));
    waiting.push_back({.place = {all.integer(0), all.integer(1)},
                       .lane = lane_of(half, group),
                       .place_half = kept(half) == Kept::none ? class_half(half, priority) : half,
                       .suspected = all.integer(3) != 0});
  }
  return waiting;
}

// What is out already, and dead letters that hold their group.
void Lanes::hold_back(std::int64_t half, std::map<std::int64_t, Lane>& lanes) {
  Statement waiting(connection_, kWaiting);
  waiting.bind(half);
  while (waiting.row()) {
    Standing standing;
    standing.half = half;
    standing.sent_at = loaded(waiting.integer(0));
    standing.seq = waiting.integer(1);
    standing.until = loaded(waiting.optional_integer(3));
    standing.received_at = loaded(waiting.optional_integer(4));
    if (const std::int64_t id = lane_of(half, group_hash(waiting.bytes(2))); id != 0 && standing.blocks()) {
      give(lane_in(lanes, half, id), standing);
    }
  }
  waiting.reset();
  if (kept(half) == Kept::fair) {
    return;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> holds;
  Statement held(connection_,
                 "SELECT h.seq, m.message_group FROM holds AS h JOIN messages AS m ON m.seq = h.seq "
                 "WHERE h.half = ?1 AND m.half = ?1 + 1");
  held.bind(half);
  while (held.row()) {
    holds.emplace_back(held.integer(0), lane_of(half, group_hash(held.bytes(1))));
  }
  held.reset();
  Statement again(connection_, "UPDATE holds SET lane = ?2 WHERE seq = ?1");
  for (const auto& [seq, id] : holds) {
    if (id != 0) {
      again.bind(seq, id).run();
      ++lane_in(lanes, half, id).others;
    }
  }
}

Lanes::Lane& Lanes::lane_in(std::map<std::int64_t, Lane>& lanes, std::int64_t half, std::int64_t id) {
  Lane& lane = lanes[id];
  lane.id = id;
  lane.half = half;
  return lane;
}

void Lanes::keep(std::int64_t half, Kept kept) {
  write_bits(half, (bits_of(half) & ~(kMask << shift_of(half))) | (static_cast<std::int64_t>(kept) << shift_of(half)));
  const std::vector<Waiting> waiting = gather(half);
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    Statement(connection_, "DELETE FROM ready WHERE half = ?1").bind(class_of(half, priority)).run();
  }
  for (const char* const sql : {"DELETE FROM suspects WHERE half = ?1", "DELETE FROM chains WHERE half = ?1"}) {
    Statement(connection_, sql).bind(half).run();
  }
  rows_.drop(half);
  std::map<std::int64_t, Lane> lanes;
  for (const Waiting& message : waiting) {
    if (message.lane == 0) {
      places_.put(message.suspected ? half : message.place_half, message.place, message.suspected);
    } else {
      line_.insert(half, lane_in(lanes, half, message.lane).ends, message.place, message.suspected);
    }
  }
  if (kept != Kept::none) {
    hold_back(half, lanes);
  }
  rows_.gather(half, {});
  for (auto& [id, lane] : lanes) {
    if (!lane.head && lane.others == 0) {
      offer(lane, std::nullopt);
    }
    rows_.store({}, lane);
  }
  rows_.flush();
}

}  // namespace sluice::queue::sqlite
