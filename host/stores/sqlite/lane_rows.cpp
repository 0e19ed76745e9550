#include "host/stores/sqlite/lane_rows.hpp"

#include <algorithm>

namespace sluice::queue::sqlite {

LaneRows::LaneRows(Connection& connection)
    : asking_(connection, "asking_lanes"),
      storing_(connection),
      load_(connection,
            "SELECT lane, head, head_sent, turn, others, first, last, last_sent FROM lanes WHERE lane = ?1"),
      load_all_(connection,
                "SELECT l.lane, l.head, l.head_sent, l.turn, l.others, l.first, l.last, l.last_sent "
                "FROM asking_lanes AS a CROSS JOIN lanes AS l ON l.lane = a.hash"),
      update_(connection,
              "UPDATE lanes SET head = ?2, head_sent = ?3, turn = ?4, others = ?5, first = ?6, last = ?7, "
              "last_sent = ?8 WHERE lane = ?1"),
      insert_(connection, "INSERT OR REPLACE INTO lanes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"),
      store_all_(connection, "INSERT OR REPLACE INTO lanes SELECT * FROM storing_lanes"),
      drop_(connection, "DELETE FROM lanes WHERE lane = ?1") {}

void LaneRows::Rows::column(std::size_t row, int column, ColumnValue value) const {
  const LaneRow& at = list[row];
  switch (column) {
    case 0:
      return value.set(at.id);
    case 1:
      return value.set(at.half);
    case 2:
      return value.set(at.head);
    case 3:
      return value.set(at.head_sent);
    case 4:
      return value.set(at.turn);
    case 5:
      return value.set(at.others);
    case 6:
      return value.set(at.ends.first);
    case 7:
      return value.set(at.ends.last);
    default:
      return value.set(at.ends.last_sent);
  }
}

void LaneRows::begin() {
  gathers_ = false;
  held_.clear();
}

LaneRow LaneRows::read(const Statement& row, std::int64_t half) {
  LaneRow found{.id = row.integer(0), .half = half, .stored = true, .head = row.optional_integer(1)};
  found.head_sent = row.integer(2);
  found.turn = row.integer(3);
  found.others = row.integer(4);
  found.ends.first = row.optional_integer(5);
  found.ends.last = row.optional_integer(6);
  found.ends.last_sent = row.integer(7);
  return found;
}

void LaneRows::gather(std::int64_t half, std::span<const std::int64_t> lanes) {
  flush();
  gathers_ = true;
  // In the table, neighbours lie on one page.
  found_.assign(lanes.begin(), lanes.end());
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  for (const std::int64_t lane : found_) {
    held_.emplace(lane, Held{.row = {.id = lane, .half = half, .head = {}, .ends = {}}});
  }
  asking_.each(found_, load_all_, [this, half](const Statement& row) {
    held_[row.integer(0)] = {.row = read(row, half), .stored = true};
  });
}

void LaneRows::flush() {
  gathers_ = false;
  storing_.list.clear();
  found_.clear();
  for (const auto& [id, held] : held_) {
    if (held.changed && held.row.empty()) {
      if (held.stored) {
        found_.push_back(id);
      }
    } else if (held.changed) {
      storing_.list.push_back(held.row);
    }
  }
  held_.clear();
  std::sort(found_.begin(), found_.end());
  for (const std::int64_t lane : found_) {
    drop_.bind(lane).run();
  }
  if (!storing_.list.empty()) {
    std::sort(storing_.list.begin(), storing_.list.end(),
              [](const LaneRow& a, const LaneRow& b) { return a.id < b.id; });
    store_all_.run();
  }
}

std::vector<std::int64_t> LaneRows::first_in_line() const {
  std::vector<std::int64_t> seqs;
  for (const auto& [id, held] : held_) {
    if (held.row.ends.first) {
      seqs.push_back(*held.row.ends.first);
    }
  }
  std::sort(seqs.begin(), seqs.end());
  return seqs;
}

LaneRow LaneRows::load(std::int64_t half, std::int64_t lane) {
  if (gathers_) {
    if (const auto held = held_.find(lane); held != held_.end()) {
      return held->second.row;
    }
  }
  LaneRow found{.id = lane, .half = half, .head = {}, .ends = {}};
  load_.bind(lane);
  if (load_.row()) {
    found = read(load_, half);
  }
  load_.reset();
  if (gathers_) {
    held_.emplace(lane, Held{.row = found, .stored = found.stored});
  }
  return found;
}

void LaneRows::store(const LaneRow& before, const LaneRow& after) {
  if (before == after) {
    return;
  }
  if (gathers_) {
    Held& held = held_[after.id];
    held.row = after;
    held.changed = true;
  } else if (after.empty()) {
    if (before.stored) {
      drop_.bind(after.id).run();
    }
  } else if (before.stored) {
    update_
        .bind(after.id, after.head, after.head_sent, after.turn, after.others, after.ends.first, after.ends.last,
              after.ends.last_sent)
        .run();
  } else {
    insert_
        .bind(after.id, after.half, after.head, after.head_sent, after.turn, after.others, after.ends.first,
              after.ends.last, after.ends.last_sent)
        .run();
  }
}

}  // namespace sluice::queue::sqlite
