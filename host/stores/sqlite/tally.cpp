#include "host/stores/sqlite/tally.hpp"

namespace sluice::queue::sqlite {

Tally::Tally(Connection& connection)
    : read_(connection, "SELECT next_seq FROM sluice_counters"),
      write_(connection, "UPDATE sluice_counters SET next_seq = ?1"),
      half_(connection,
            "INSERT INTO sluice_halves VALUES (?1, ?2) ON CONFLICT (half) DO UPDATE SET messages = messages + "
            "excluded.messages") {}

void Tally::begin() {
  changes_.clear();
  next_seq_ = 0;
}

void Tally::add(std::int64_t half, std::int64_t messages) {
  for (auto& [changed, count] : changes_) {
    if (changed == half) {
      count += messages;
      return;
    }
  }
  changes_.emplace_back(half, messages);
}

std::int64_t Tally::next_seq() {
  if (next_seq_ == 0) {
    next_seq_ = read_.only().value_or(1);
  }
  return next_seq_++;
}

void Tally::finish() {
  for (const auto& [half, messages] : changes_) {
    if (messages != 0) {
      half_.bind(half, messages).run();
    }
  }
  if (next_seq_ != 0) {
    write_.bind(next_seq_).run();
  }
}

}  // namespace sluice::queue::sqlite
