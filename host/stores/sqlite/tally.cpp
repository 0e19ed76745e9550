#include "host/stores/sqlite/tally.hpp"

#include <algorithm>

namespace sluice::queue::sqlite {

Tally::Tally(Connection& connection)
    : read_(connection, "SELECT next_seq, new_ids, old_ids FROM counters"),
      write_(connection, "UPDATE counters SET next_seq = ?1, new_ids = ?2, old_ids = ?3"),
      live_(connection, "SELECT sum(messages) FROM halves"),
      half_(connection,
            "INSERT INTO halves VALUES (?1, ?2) ON CONFLICT (half) DO UPDATE SET messages = messages + "
            "excluded.messages"),
      ids_(connection) {}

void Tally::begin() {
  changes_.clear();
  read_done_ = false;
}

void Tally::add(std::int64_t half, std::int64_t messages) {
  for (Change& change : changes_) {
    if (change.half == half) {
      change.messages += messages;
      return;
    }
  }
  changes_.push_back({half, messages});
}

void Tally::read() {
  if (read_done_) {
    return;
  }
  read_.row();
  next_seq_ = read_.integer(0);
  new_ids_ = read_.integer(1);
  old_ids_ = read_.integer(2);
  read_.reset();
  read_done_ = true;
}

std::int64_t Tally::next_seq() {
  read();
  return next_seq_++;
}

Tally::Mark Tally::mark() {
  read();
  return {changes_, new_ids_, old_ids_};
}

void Tally::back_to(const Mark& mark) {
  // A seq that was given out meanwhile stays used.
  changes_ = mark.changes;
  new_ids_ = mark.new_ids;
  old_ids_ = mark.old_ids;
}

void Tally::index_ids(const NewIds& entries) {
  read();
  ids_.add(entries);
  new_ids_ += static_cast<std::int64_t>(entries.anywhere.size());
  old_ids_ += static_cast<std::int64_t>(entries.with_time.size());
}

void Tally::write_halves() {
  for (const Change& change : changes_) {
    if (change.messages != 0) {
      half_.bind(change.half, change.messages).run();
    }
  }
}

void Tally::finish() {
  if (changes_.empty() && !read_done_) {
    return;
  }
  write_halves();
  read();
  live_.row();
  const std::int64_t live = live_.integer(0);
  live_.reset();
  ids_.sweep(new_ids_, old_ids_, live);
  write_.bind(next_seq_, new_ids_, old_ids_).run();
}

}  // namespace sluice::queue::sqlite
