#include "host/stores/sqlite/ready_index.hpp"

namespace sluice::queue::sqlite {

std::string in_each_range(std::string_view sql) {
  std::string all;
  for (int range = 0; range <= 4; ++range) {
    all += all.empty() ? "" : " UNION ALL ";
    for (const char c : sql) {
      all += c == '%' ? "?1 + " + std::to_string(range * kRangeStep) : std::string(1, c);
    }
  }
  return all;
}

std::string all_of_half() {
  return in_each_range("SELECT seq FROM sluice_ready WHERE half = %") +
         " UNION ALL SELECT w.seq FROM sluice_groups AS g CROSS JOIN sluice_waiting AS w ON w.group_number = g.number "
         "WHERE g.half = ?1 UNION ALL SELECT seq FROM sluice_deliveries INDEXED BY sluice_deliveries_due "
         "WHERE half = ?1 AND until IS NOT NULL";
}

WallTime ReadyIndex::end() const {
  const WallTime until = loaded(due_.integer(1));
  const bool leased = due_.integer(2) != 0;
  return leased ? steps_.end_of(until, loaded(due_.integer(3))) : until;
}

ReadyIndex::Outlasting ReadyIndex::outlasting(std::int64_t half, WallTime now) {
  Outlasting found;
  if (!steps_.none()) {
    due_.bind(half, stored(now)).each([&] {
      if (const WallTime ends = end(); ends >= now) {
        ++found.count;
        found.first = std::min(ends, found.first.value_or(ends));
      }
    });
  }
  return found;
}

std::vector<std::int64_t> ReadyIndex::due(std::int64_t half, WallTime now) {
  std::vector<std::int64_t> seqs;
  due_.bind(half, stored(now));
  while (seqs.size() < kBringBackLimit && due_.row()) {
    if (end() < now) {
      seqs.push_back(due_.integer(0));
    }
  }
  due_.reset();
  return seqs;
}

std::optional<Place> ReadyIndex::first(std::int64_t range, WallTime now) {
  return first_.bind(range, stored(now)).only([this] { return Place(first_.integer(0), first_.integer(1)); });
}

std::optional<WallTime> ReadyIndex::next_due(std::int64_t half, WallTime now) {
  std::optional<WallTime> next;
  std::optional<WallTime> until = loaded(next_until_.bind(half, stored(now)).only());
  if (const auto outlasting = this->outlasting(half, now).first) {
    until = std::min(*outlasting, until.value_or(*outlasting));
  }
  if (until) {
    // At the very instant that is stored a message is hidden still.
    next = *until + Duration(1);
  }
  // Only after the clock has gone back, or when a delayed message was made visible before its time, is there one.
  if (const auto sent = loaded(next_sent_.bind(half, stored(now)).only())) {
    next = std::min(*sent, next.value_or(*sent));
  }
  return next;
}

std::optional<WallTime> ReadyIndex::front(std::int64_t half, bool ordered) {
  return loaded((ordered ? front_ordered_ : front_).bind(half).only());
}

std::uint64_t ReadyIndex::room(std::int64_t half, std::uint64_t limit, WallTime now) {
  const auto most = static_cast<std::int64_t>(
      std::min<std::uint64_t>(limit, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())));
  const std::int64_t count = in_flight_.bind(half, stored(now), most).only().value_or(0);
  const auto room = static_cast<std::uint64_t>(most - std::min(count, most));
  return room - std::min(room, outlasting(half, now).count);
}

}  // namespace sluice::queue::sqlite
