#include "host/stores/sqlite/deliveries.hpp"

#include <algorithm>
#include <utility>

#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

// Expired leases and delays that one claim brings back, so that a million of them do not come in one transaction.
constexpr std::size_t kBringBackLimit = 5'000;
// The version of a message that nobody has touched is 1, and that of its first lease one more.
constexpr std::int64_t kFirstLease = 2;
constexpr const char* kUnreadable =
    "the record cannot be read, its attributes are damaged; take them away with an edit, then move it to the front";

std::int64_t as_number(bool value) { return value ? 1 : 0; }

std::optional<std::int64_t> stored(std::optional<WallTime> time) {
  return time ? std::optional<std::int64_t>(sqlite::stored(*time)) : std::nullopt;
}

std::optional<WallTime> loaded(std::optional<std::int64_t> time) {
  return time ? std::optional<WallTime>(sqlite::loaded(*time)) : std::nullopt;
}

}  // namespace

Deliveries::Deliveries(Connection& connection, Tally& tally)
    : tally_(tally),
      due_(connection,
           "SELECT seq, sent_at FROM deliveries INDEXED BY deliveries_due WHERE half = ?1 AND until < ?2 "
           "AND until IS NOT NULL ORDER BY until"),
      due_done_(connection, "UPDATE deliveries SET until = NULL WHERE seq = ?1"),
      // CROSS JOIN keeps SQLite to this order of tables, whatever it thinks of their sizes.
      oldest_(connection,
              "SELECT r.seq, r.sent_at, m.id, m.content_type, m.message_group, m.attributes, m.body, d.version, "
              "d.receives FROM ready AS r CROSS JOIN messages AS m ON m.seq = r.seq LEFT JOIN deliveries AS d "
              "ON d.seq = r.seq WHERE r.half = ?1 AND r.sent_at <= ?2 ORDER BY r.sent_at, r.seq"),
      lease_first_(connection, "INSERT INTO deliveries VALUES (?1, ?2, ?3, 1, 2, 1, ?4, ?5, ?5, NULL)"),
      // The whole head at once, when all of it is new: the usual case, in which one statement each is twice as fast.
      lease_head_(connection,
                  "INSERT INTO deliveries SELECT seq, half, ?4, 1, 2, 1, sent_at, ?5, ?5, NULL FROM ready "
                  "WHERE half = ?1 AND (sent_at, seq) <= (?2, ?3)"),
      lease_again_(connection,
                   "UPDATE deliveries SET until = ?2, leased = 1, version = version + 1, receives = receives + 1, "
                   "received_at = ?3, updated_at = ?3 WHERE seq = ?1"),
      ready_insert_(connection, "INSERT OR IGNORE INTO ready VALUES (?1, ?2, ?3)"),
      ready_delete_(connection, "DELETE FROM ready WHERE half = ?1 AND sent_at = ?2 AND seq = ?3"),
      ready_delete_head_(connection, "DELETE FROM ready WHERE half = ?1 AND (sent_at, seq) <= (?2, ?3)"),
      remove_leased_(connection,
                     "DELETE FROM messages WHERE seq = ?1 AND id = ?2 AND EXISTS (SELECT 1 FROM deliveries AS d "
                     "WHERE d.seq = ?1 AND d.version = ?3 AND d.half = ?4 AND d.until IS NOT NULL)"),
      message_delete_(connection, "DELETE FROM messages WHERE seq = ?1"),
      message_move_(connection, "UPDATE messages SET half = ?2, sent_at = ?3 WHERE seq = ?1"),
      delivery_delete_(connection, "DELETE FROM deliveries WHERE seq = ?1"),
      delivery_delete_run_(connection, "DELETE FROM deliveries WHERE seq BETWEEN ?1 AND ?2"),
      delivery_write_(connection, "INSERT OR REPLACE INTO deliveries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"),
      standing_(connection,
                "SELECT m.id, m.half, m.sent_at, d.version, d.receives, d.until, d.received_at, d.failure "
                "FROM messages AS m LEFT JOIN deliveries AS d ON d.seq = m.seq WHERE m.seq = ?1"),
      front_ready_(connection, "SELECT min(sent_at) FROM ready WHERE half = ?1"),
      front_waiting_(connection,
                     "SELECT min(sent_at) FROM deliveries INDEXED BY deliveries_due WHERE half = ?1 AND until IS NOT "
                     "NULL") {}

void Deliveries::bring_back(std::int64_t half, WallTime now) {
  std::vector<std::pair<std::int64_t, std::int64_t>> due;
  due_.bind(half, sqlite::stored(now));
  while (due.size() < kBringBackLimit && due_.row()) {
    due.emplace_back(due_.integer(0), due_.integer(1));
  }
  due_.reset();
  for (const auto& [seq, sent_at] : due) {
    due_done_.bind(seq).run();
    ready_insert_.bind(half, sent_at, seq).run();
  }
}

std::vector<Claim> Deliveries::claim(std::int64_t half, std::size_t max, WallTime until, WallTime now) {
  bring_back(half, now);
  std::vector<Claim> claims;
  std::vector<bool> touched;
  std::vector<std::int64_t> unreadable;
  std::size_t bytes = 0;
  oldest_.bind(half, sqlite::stored(now));
  while (claims.size() < max && bytes < kClaimBytes && oldest_.row()) {
    auto attributes = decode_attributes(oldest_.bytes(5));
    if (!attributes) {
      unreadable.push_back(oldest_.integer(0));
      continue;
    }
    Claim& claim = claims.emplace_back();
    Message& message = claim.message;
    message.sent_at = sqlite::loaded(oldest_.integer(1));
    message.id = oldest_.bytes(2);
    if (!oldest_.is_null(3)) {
      message.content_type = oldest_.bytes(3);
    }
    message.group = oldest_.bytes(4);
    message.attributes = std::move(*attributes);
    message.body = oldest_.bytes(6);
    const bool again = !oldest_.is_null(7);
    touched.push_back(again);
    message.attempt = again ? loaded_count(oldest_.integer(8) + 1) : 1;
    claim.receipt = {
        .id = message.id, .version = again ? oldest_.integer(7) + 1 : kFirstLease, .locator = oldest_.integer(0)};
    claim.invisible_until = until;
    bytes += message.body.size();
  }
  oldest_.reset();
  set_aside(unreadable, now);
  if (unreadable.empty() && std::find(touched.begin(), touched.end(), true) == touched.end()) {
    lease_head(half, claims, until, now);
  } else {
    lease_each(half, claims, touched, until, now);
  }
  return claims;
}

void Deliveries::set_aside(const std::vector<std::int64_t>& unreadable, WallTime now) {
  for (const std::int64_t seq : unreadable) {
    if (auto before = standing(seq)) {
      Standing after = *before;
      after.until = kLatest;
      after.received_at.reset();
      after.failure = encode_failure({.error = kUnreadable, .handler = {}, .host = {}, .failed_at = now});
      change(*before, after, now);
    }
  }
}

void Deliveries::lease_head(std::int64_t half, const std::vector<Claim>& claims, WallTime until, WallTime now) {
  if (claims.empty()) {
    return;
  }
  const std::int64_t last_sent = sqlite::stored(claims.back().message.sent_at);
  const std::int64_t last_seq = claims.back().receipt.locator;
  lease_head_.bind(half, last_sent, last_seq, sqlite::stored(until), sqlite::stored(now)).run();
  ready_delete_head_.bind(half, last_sent, last_seq).run();
}

void Deliveries::lease_each(std::int64_t half, const std::vector<Claim>& claims, const std::vector<bool>& touched,
                            WallTime until, WallTime now) {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const std::int64_t seq = claims[i].receipt.locator;
    const std::int64_t sent_at = sqlite::stored(claims[i].message.sent_at);
    ready_delete_.bind(half, sent_at, seq).run();
    if (touched[i]) {
      lease_again_.bind(seq, sqlite::stored(until), sqlite::stored(now)).run();
    } else {
      lease_first_.bind(seq, half, sqlite::stored(until), sent_at, sqlite::stored(now)).run();
    }
  }
}

std::optional<Standing> Deliveries::standing(std::int64_t seq) {
  standing_.bind(seq);
  std::optional<Standing> found;
  if (standing_.row()) {
    found.emplace();
    found->seq = seq;
    found->id = standing_.bytes(0);
    found->half = standing_.integer(1);
    found->sent_at = sqlite::loaded(standing_.integer(2));
    if (!standing_.is_null(3)) {
      found->version = standing_.integer(3);
      found->receives = loaded_count(standing_.integer(4));
      found->until = loaded(standing_.optional_integer(5));
      found->received_at = loaded(standing_.optional_integer(6));
      if (!standing_.is_null(7)) {
        found->failure = standing_.bytes(7);
      }
    }
  }
  standing_.reset();
  return found;
}

std::optional<Standing> Deliveries::held(std::int64_t half, const Receipt& receipt) {
  auto found = standing(receipt.locator);
  if (found && (found->id != receipt.id || found->version != receipt.version || found->half != half)) {
    found.reset();
  }
  return found;
}

void Deliveries::settle(std::int64_t half, std::span<const Settlement> settlements, std::span<SettleResult> results,
                        WallTime now) {
  removed_.clear();
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    results[i].status = settle_one(half, settlements[i], now);
  }
  tally_.add(half, -static_cast<std::int64_t>(removed_.size()));
  delete_removed();
}

void Deliveries::delete_removed() {
  // Messages that were sent one after the other are mostly settled together: one statement for a run of them.
  std::sort(removed_.begin(), removed_.end());
  for (auto first = removed_.begin(); first != removed_.end();) {
    auto last = first;
    while (std::next(last) != removed_.end() && *std::next(last) == *last + 1) {
      ++last;
    }
    if (first == last) {
      delivery_delete_.bind(*first).run();
    } else {
      delivery_delete_run_.bind(*first, *last).run();
    }
    first = std::next(last);
  }
}

SettleStatus Deliveries::settle_one(std::int64_t half, const Settlement& settlement, WallTime now) {
  const Receipt& receipt = settlement.receipt;
  if (settlement.action == SettleAction::remove &&
      remove_leased_.bind(receipt.locator, std::string_view(receipt.id), receipt.version, half).run() == 1) {
    removed_.push_back(receipt.locator);
    return SettleStatus::applied;
  }
  const auto before = held(half, receipt);
  if (!before) {
    return SettleStatus::lost;
  }
  std::optional<std::string> failure = before->failure;
  if (!settlement.failure.empty()) {
    failure = encode_failure(settlement.failure);
  }
  switch (settlement.action) {
    case SettleAction::remove:
      remove(*before);
      break;
    case SettleAction::dead_letter:
      move(*before, half | 1, std::move(failure), now);
      break;
    case SettleAction::retry:
    case SettleAction::release:
      settle_back(*before, settlement, std::move(failure), now);
      break;
  }
  return SettleStatus::applied;
}

void Deliveries::settle_back(const Standing& before, const Settlement& settlement, std::optional<std::string> failure,
                             WallTime now) {
  Standing after = before;
  after.received_at.reset();
  after.until.reset();
  if (settlement.delay > Duration::zero()) {
    after.until = later(now, settlement.delay);
  }
  if (settlement.action == SettleAction::retry) {
    after.failure = std::move(failure);
  } else if (after.receives > 0) {
    --after.receives;
  }
  change(before, after, now);
}

std::optional<Receipt> Deliveries::extend(std::int64_t half, const Receipt& receipt, WallTime until, WallTime now) {
  const auto before = held(half, receipt);
  if (!before) {
    return std::nullopt;
  }
  Standing after = *before;
  after.until = until;
  change(*before, after, now);
  return Receipt{.id = receipt.id, .version = receipt.version + 1, .locator = receipt.locator};
}

void Deliveries::place_delayed(std::int64_t seq, std::int64_t half, WallTime sent_at, WallTime now) {
  const std::int64_t sent = sqlite::stored(sent_at);
  const std::optional<std::int64_t> none;
  delivery_write_
      .bind(seq, half, sent, as_number(false), std::int64_t{1}, std::int64_t{0}, sent, none, sqlite::stored(now),
            std::optional<Blob>())
      .run();
}

void Deliveries::place(const Standing& standing, WallTime updated_at) {
  if (!standing.until) {
    insert_ready(standing);
  }
  write(standing, standing.version, updated_at);
}

std::optional<WallTime> Deliveries::front(std::int64_t half) {
  std::optional<WallTime> first;
  for (Statement* statement : {&front_ready_, &front_waiting_}) {
    statement->bind(half);
    if (const auto found = statement->row() ? loaded(statement->optional_integer(0)) : std::nullopt) {
      first = std::min(*found, first.value_or(*found));
    }
    statement->reset();
  }
  return first;
}

void Deliveries::write(const Standing& standing, std::int64_t version, WallTime updated_at) {
  const std::optional<Blob> failure = standing.failure ? std::optional<Blob>(Blob{*standing.failure}) : std::nullopt;
  delivery_write_
      .bind(standing.seq, standing.half, stored(standing.until), as_number(standing.received_at.has_value()), version,
            std::int64_t{standing.receives}, sqlite::stored(standing.sent_at), stored(standing.received_at),
            sqlite::stored(updated_at), failure)
      .run();
}

void Deliveries::remove_ready(const Standing& standing) {
  ready_delete_.bind(standing.half, sqlite::stored(standing.sent_at), standing.seq).run();
}

void Deliveries::insert_ready(const Standing& standing) {
  ready_insert_.bind(standing.half, sqlite::stored(standing.sent_at), standing.seq).run();
}

void Deliveries::change(const Standing& before, const Standing& after, WallTime now) {
  if (!before.until) {
    remove_ready(before);
  }
  if (!after.until) {
    insert_ready(after);
  }
  if (after.half != before.half || after.sent_at != before.sent_at) {
    message_move_.bind(before.seq, after.half, sqlite::stored(after.sent_at)).run();
  }
  if (after.half != before.half) {
    tally_.add(before.half, -1);
    tally_.add(after.half, 1);
  }
  write(after, before.version + 1, now);
}

void Deliveries::move(const Standing& before, std::int64_t half, std::optional<std::string> failure, WallTime now) {
  Standing after = before;
  after.half = half;
  after.sent_at = now;
  after.receives = 0;
  after.until.reset();
  after.received_at.reset();
  after.failure = std::move(failure);
  change(before, after, now);
}

void Deliveries::remove(const Standing& standing) {
  if (!standing.until) {
    remove_ready(standing);
  }
  message_delete_.bind(standing.seq).run();
  delivery_delete_.bind(standing.seq).run();
  tally_.add(standing.half, -1);
}

}  // namespace sluice::queue::sqlite
