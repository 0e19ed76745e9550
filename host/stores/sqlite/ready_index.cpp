#include "host/stores/sqlite/ready_index.hpp"

#include <algorithm>

namespace sluice::queue::sqlite {

ReadyIndex::ReadyIndex(Connection& connection)
    : due_(connection,
           "SELECT seq, sent_at, received_at IS NOT NULL OR suspect, until, leased, updated_at "
           "FROM sluice_deliveries INDEXED BY sluice_deliveries_due "
           "WHERE half = ?1 AND until < ?2 AND until IS NOT NULL ORDER BY until"),
      due_done_(connection, "UPDATE sluice_deliveries SET until = NULL WHERE seq = ?1"),
      ready_insert_(connection, "INSERT OR IGNORE INTO sluice_ready VALUES (?1, ?2, ?3)"),
      ready_delete_(connection, "DELETE FROM sluice_ready WHERE half = ?1 AND sent_at = ?2 AND seq = ?3"),
      suspect_insert_(connection, "INSERT OR IGNORE INTO sluice_suspects VALUES (?1, ?2, ?3)"),
      suspect_delete_(connection, "DELETE FROM sluice_suspects WHERE half = ?1 AND sent_at = ?2 AND seq = ?3"),
      first_ready_(
          connection,
          "SELECT sent_at, seq FROM sluice_ready WHERE half = ?1 AND sent_at <= ?2 ORDER BY sent_at, seq LIMIT 1"),
      first_suspect_(
          connection,
          "SELECT sent_at, seq FROM sluice_suspects WHERE half = ?1 AND sent_at <= ?2 ORDER BY sent_at, seq LIMIT 1"),
      next_until_(connection,
                  "SELECT min(until) FROM sluice_deliveries INDEXED BY sluice_deliveries_due "
                  "WHERE half = ?1 AND until IS NOT NULL AND until >= ?2"),
      next_sent_(
          connection,
          "SELECT min(at) FROM (SELECT min(sent_at) AS at FROM sluice_ready WHERE half = ?1 AND sent_at > ?2 UNION ALL "
          "SELECT min(sent_at) FROM sluice_suspects WHERE half = ?1 AND sent_at > ?2)"),
      front_(connection,
             "SELECT min(at) FROM (SELECT min(sent_at) AS at FROM sluice_ready WHERE half = ?1 UNION ALL "
             "SELECT min(sent_at) FROM sluice_suspects WHERE half = ?1 UNION ALL "
             "SELECT min(sent_at) FROM sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 AND until IS "
             "NOT NULL)"),
      front_of_all_(
          connection,
          "SELECT min(m.sent_at) FROM (SELECT seq FROM sluice_ready WHERE half IN (?1, ?2, ?3, ?4) UNION ALL "
          "SELECT seq FROM sluice_suspects WHERE half = ?1 UNION ALL SELECT w.seq FROM sluice_groups AS g CROSS JOIN "
          "sluice_waiting AS w ON w.group_number = g.number WHERE g.half = ?1 UNION ALL SELECT seq FROM "
          "sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 AND until IS NOT NULL) AS p "
          "CROSS JOIN sluice_messages AS m ON m.seq = p.seq") {}

void ReadyIndex::put(std::int64_t half, const Place& place, bool suspected) {
  (suspected ? suspect_insert_ : ready_insert_).bind(half, place.first, place.second).run();
}

void ReadyIndex::take(std::int64_t half, const Place& place, bool suspected) {
  (suspected ? suspect_delete_ : ready_delete_).bind(half, place.first, place.second).run();
}

WallTime ReadyIndex::end() const {
  const WallTime until = loaded(due_.integer(3));
  const bool leased = due_.integer(4) != 0;
  return leased ? steps_.end_of(until, loaded(due_.integer(5))) : until;
}

ReadyIndex::Outlasting ReadyIndex::outlasting(std::int64_t half, WallTime now) {
  Outlasting found;
  if (!steps_.none()) {
    due_.bind(half, stored(now));
    while (due_.row()) {
      if (const WallTime ends = end(); ends >= now) {
        ++found.count;
        found.first = std::min(ends, found.first.value_or(ends));
      }
    }
    due_.reset();
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

bool ReadyIndex::bring_back(std::int64_t half, WallTime now) {
  struct Due {
    std::int64_t seq;
    std::int64_t sent_at;
    bool suspected;
  };
  std::vector<Due> due;
  due_.bind(half, stored(now));
  while (due.size() < kBringBackLimit && due_.row()) {
    if (end() < now) {
      due.push_back({due_.integer(0), due_.integer(1), due_.integer(2) != 0});
    }
  }
  due_.reset();
  for (const Due& one : due) {
    due_done_.bind(one.seq).run();
    (one.suspected ? suspect_insert_ : ready_insert_).bind(half, one.sent_at, one.seq).run();
  }
  return due.size() < kBringBackLimit;
}

std::optional<Place> ReadyIndex::first(Statement& statement, std::int64_t half, WallTime now) {
  statement.bind(half, stored(now));
  std::optional<Place> place;
  if (statement.row()) {
    place.emplace(statement.integer(0), statement.integer(1));
  }
  statement.reset();
  return place;
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

std::optional<WallTime> ReadyIndex::front_of_all(std::int64_t half) {
  return loaded(front_of_all_
                    .bind(half, class_half(half, Priority::critical), class_half(half, Priority::high),
                          class_half(half, Priority::low))
                    .only());
}

std::optional<WallTime> ReadyIndex::front(std::int64_t half) { return loaded(front_.bind(half).only()); }

}  // namespace sluice::queue::sqlite
