#include "host/operate/move_mark.hpp"

#include <algorithm>
#include <string_view>

namespace sluice::operate {

namespace {

constexpr Duration kAway = std::chrono::hours(24) * 36'525;
// 2150: what is hidden longer is set aside for good, and has no time that would have to be kept.
constexpr WallTime kForGood{std::chrono::seconds(5'680'281'600)};
/// A change of visibility is told a span, so that the time it makes is off by as much as a clock and a request are.
constexpr Duration kSlack = std::chrono::seconds(5);

/// FNV-1a: must never change, because a later run recognises by it what an earlier one has left.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t value = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  return value;
}

/// Sent for later, and hidden for nothing else: it holds up nobody in its group.
bool sent_for_later(const queue::StoredMessage& record) {
  return !record.received_at && record.invisible_until && *record.invisible_until == record.message.sent_at;
}

}  // namespace

WallTime MovePair::stamp() const {
  constexpr std::uint64_t kNanoseconds = (std::uint64_t{1} << 62U) - 1;
  const std::string text = from_place + '\n' + from + '\n' + to_place + '\n' + to;
  return WallTime(Duration(static_cast<std::int64_t>(hash_of(text) & kNanoseconds)));
}

bool is_copy_of(const queue::StoredMessage& record, const MovePair& pair) {
  return is_moving(record) && same_millisecond(record.updated_at, pair.stamp());
}

bool same_millisecond(WallTime one, WallTime other) {
  return std::chrono::floor<std::chrono::milliseconds>(one) == std::chrono::floor<std::chrono::milliseconds>(other);
}

WallTime moving_until(const queue::StoredMessage& found, WallTime now) {
  const WallTime due = std::max(found.invisible_until.value_or(now), now);
  return std::min(due, kForGood) + kAway;
}

queue::StoredMessage before_it_was_taken(const queue::StoredMessage& taken, WallTime now) {
  queue::StoredMessage before = taken;
  const WallTime sent_at = taken.message.sent_at;
  WallTime due = *taken.invisible_until - kAway;
  if (due + kSlack >= kForGood) {
    due = kForGood;
  } else if (!taken.received_at && due - sent_at <= kSlack && sent_at - due <= kSlack) {
    due = sent_at;
  }
  before.invisible_until = due > now ? std::optional(due) : std::nullopt;
  return before;
}

queue::Change showing(const queue::StoredMessage& as_it_was, std::int64_t version, WallTime now) {
  queue::Change change{.id = as_it_was.message.id, .action = queue::ChangeAction::set_visibility, .version = version};
  if (!as_it_was.invisible_until || *as_it_was.invisible_until <= now) {
    return change;
  }
  if (*as_it_was.invisible_until >= kForGood) {
    change.after = Duration::max();
    return change;
  }
  change.after = *as_it_was.invisible_until - now;
  if (sent_for_later(as_it_was)) {
    change.action = queue::ChangeAction::delay;
  }
  return change;
}

}  // namespace sluice::operate
