#include "host/stores/sqlite/lane_rows.hpp"

#include <algorithm>
#include <iterator>

namespace sluice::queue::sqlite {

namespace {

// Lanes that are remembered: some MiB.
constexpr std::size_t kMostHeld = 32'768;

}  // namespace

LaneRows::LaneRows(Connection& connection)
    : connection_(connection),
      asking_(connection, "sluice_asking_lanes"),
      numbering_(connection, "sluice_numbering_lanes"),
      storing_(connection),
      file_version_(connection, "PRAGMA data_version"),
      last_number_(connection, "SELECT max(number) FROM lanes"),
      load_(connection,
            "SELECT n.lane, l.number, l.head, l.head_sent, l.turn, l.others, l.first, l.last, l.last_sent "
            "FROM lane_numbers AS n CROSS JOIN lanes AS l ON l.number = n.number WHERE n.lane = ?1"),
      load_all_(connection,
                "SELECT n.lane, l.number, l.head, l.head_sent, l.turn, l.others, l.first, l.last, l.last_sent "
                "FROM sluice_asking_lanes AS a CROSS JOIN lane_numbers AS n ON n.lane = a.hash "
                "CROSS JOIN lanes AS l ON l.number = n.number"),
      store_all_(connection, "INSERT OR REPLACE INTO lanes SELECT * FROM sluice_storing_lanes"),
      number_all_(connection, "INSERT OR REPLACE INTO lane_numbers SELECT hash, seq FROM sluice_numbering_lanes"),
      drop_run_(connection, "DELETE FROM lanes WHERE number BETWEEN ?1 AND ?2"),
      drop_numbers_(connection, "DELETE FROM lane_numbers WHERE lane IN (SELECT hash FROM sluice_asking_lanes)") {}

void LaneRows::Rows::column(std::size_t row, int column, ColumnValue value) const {
  const LaneRow& at = list[row]->row;
  switch (column) {
    case 0:
      return value.set(list[row]->number);
    case 1:
      return value.set(at.id);
    case 2:
      return value.set(at.half);
    case 3:
      return value.set(at.head);
    case 4:
      return value.set(at.head_sent);
    case 5:
      return value.set(at.turn);
    case 6:
      return value.set(at.others);
    case 7:
      return value.set(at.ends.first);
    case 8:
      return value.set(at.ends.last);
    default:
      return value.set(at.ends.last_sent);
  }
}

void LaneRows::begin() {
  if (touched_ && connection_.commits() == commits_) {
    // The last transaction was rolled back.
    forget();
  }
  touched_ = false;
  commits_ = connection_.commits();
  looked_ = false;
  gathers_ = false;
  changed_.clear();
}

void LaneRows::forget() {
  held_.clear();
  changed_.clear();
  next_number_ = 0;
}

void LaneRows::look() {
  if (looked_) {
    return;
  }
  looked_ = true;
  const std::int64_t version = file_version_.row() ? file_version_.integer(0) : 0;
  file_version_.reset();
  if (version != version_ || held_.size() > kMostHeld) {
    forget();
    version_ = version;
  }
}

LaneRows::Held LaneRows::read(const Statement& row, std::int64_t half, std::int64_t lane) {
  LaneRow found{.id = lane, .half = half, .head = row.optional_integer(2), .ends = {}};
  found.head_sent = row.integer(3);
  found.turn = row.integer(4);
  found.others = row.integer(5);
  found.ends.first = row.optional_integer(6);
  found.ends.last = row.optional_integer(7);
  found.ends.last_sent = row.integer(8);
  return {.row = found, .number = row.integer(1)};
}

void LaneRows::gather(std::int64_t half, std::span<const std::int64_t> lanes) {
  flush();
  look();
  gathers_ = true;
  asked_.clear();
  for (const std::int64_t lane : lanes) {
    if (held_.try_emplace(lane, Held{.row = {.id = lane, .half = half, .head = {}, .ends = {}}}).second) {
      asked_.push_back(lane);
    }
  }
  if (!asked_.empty()) {
    touched_ = true;
    // In the table, neighbours lie on one page.
    std::sort(asked_.begin(), asked_.end());
    asking_.each(asked_, load_all_,
                 [this, half](const Statement& row) { held_[row.integer(0)] = read(row, half, row.integer(0)); });
  }
}

void LaneRows::flush() {
  gathers_ = false;
  if (!changed_.empty()) {
    write_changed();
  }
}

void LaneRows::write_changed() {
  drop_empty();
  number_new();
  storing_.list.clear();
  for (const std::int64_t lane : changed_) {
    Held& held = held_[lane];
    held.changed = false;
    if (held.number != 0) {
      storing_.list.push_back(&held);
    }
  }
  changed_.clear();
  if (!storing_.list.empty()) {
    std::sort(storing_.list.begin(), storing_.list.end(),
              [](const Held* a, const Held* b) { return a->number < b->number; });
    store_all_.run();
  }
}

void LaneRows::drop_empty() {
  rows_.clear();
  asked_.clear();
  for (const std::int64_t lane : changed_) {
    if (Held& held = held_[lane]; held.row.empty() && held.number != 0) {
      rows_.push_back(&held);
      asked_.push_back(lane);
    }
  }
  if (rows_.empty()) {
    return;
  }
  std::sort(asked_.begin(), asked_.end());
  asking_.each(asked_, drop_numbers_, [](const Statement& /*row*/) {});
  std::sort(rows_.begin(), rows_.end(), [](const Held* a, const Held* b) { return a->number < b->number; });
  for (auto first = rows_.begin(); first != rows_.end();) {
    auto last = first;
    while (std::next(last) != rows_.end() && (*std::next(last))->number == (*last)->number + 1) {
      ++last;
    }
    drop_run_.bind((*first)->number, (*last)->number).run();
    first = std::next(last);
  }
  for (Held* const held : rows_) {
    held->number = 0;
  }
}

// In the order of what came first, as that is how their turns begin.
void LaneRows::number_new() {
  rows_.clear();
  for (const std::int64_t lane : changed_) {
    if (Held& held = held_[lane]; !held.row.empty() && held.number == 0) {
      rows_.push_back(&held);
    }
  }
  if (rows_.empty()) {
    return;
  }
  const auto first_of = [](const Held* held) { return held->row.head.value_or(held->row.ends.first.value_or(0)); };
  std::sort(rows_.begin(), rows_.end(),
            [&first_of](const Held* a, const Held* b) { return first_of(a) < first_of(b); });
  numbers_.clear();
  for (Held* const held : rows_) {
    held->number = next_number();
    numbers_.push_back({held->row.id, held->number});
  }
  std::sort(numbers_.begin(), numbers_.end(), [](const IdEntry& a, const IdEntry& b) { return a.hash < b.hash; });
  numbering_.put_down(numbers_, number_all_);
}

std::int64_t LaneRows::next_number() {
  if (next_number_ == 0) {
    next_number_ = (last_number_.row() ? last_number_.integer(0) : 0) + 1;
    last_number_.reset();
  }
  return next_number_++;
}

std::vector<std::int64_t> LaneRows::first_in_line(std::span<const std::int64_t> lanes) const {
  std::vector<std::int64_t> seqs;
  for (const std::int64_t lane : lanes) {
    if (const auto held = held_.find(lane); held != held_.end() && held->second.row.ends.first) {
      seqs.push_back(*held->second.row.ends.first);
    }
  }
  std::sort(seqs.begin(), seqs.end());
  return seqs;
}

LaneRow LaneRows::load(std::int64_t half, std::int64_t lane) {
  look();
  if (const auto held = held_.find(lane); held != held_.end()) {
    return held->second.row;
  }
  Held found{.row = {.id = lane, .half = half, .head = {}, .ends = {}}};
  load_.bind(lane);
  if (load_.row()) {
    found = read(load_, half, lane);
  }
  load_.reset();
  touched_ = true;
  return held_.insert_or_assign(lane, found).first->second.row;
}

void LaneRows::store(const LaneRow& before, const LaneRow& after) {
  if (before == after) {
    return;
  }
  look();
  touched_ = true;
  Held& held = held_[after.id];
  held.row = after;
  if (!held.changed) {
    held.changed = true;
    changed_.push_back(after.id);
  }
  if (!gathers_) {
    write_changed();
  }
}

void LaneRows::drop(std::int64_t half) {
  Statement(connection_, "DELETE FROM lane_numbers WHERE lane IN (SELECT lane FROM lanes WHERE half = ?1)")
      .bind(half)
      .run();
  Statement(connection_, "DELETE FROM lanes WHERE half = ?1").bind(half).run();
  touched_ = true;
  forget();
}

}  // namespace sluice::queue::sqlite
