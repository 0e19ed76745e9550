#include "host/stores/sqlite/claimer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/guard.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace sluice::queue::sqlite {

namespace {

// The version of a message that nobody has touched is 1, and that of its first lease one more.
constexpr std::int64_t kFirstLease = 2;
constexpr const char* kUnreadable =
    "the record cannot be read, its attributes are damaged; take them away with an edit, then move it to the front";

/// What a row says of seq, sent_at, id, content type, group, attributes, body, version, receives, in this order.
/// Nothing when its attributes cannot be read.
std::optional<Delivery> read_delivery(const Statement& row, const Lease& lease) {
  auto attributes = decode_attributes(row.bytes(5));
  if (!attributes) {
    return std::nullopt;
  }
  Delivery delivery;
  Message& message = delivery.message;
  message.sent_at = loaded(row.integer(1));
  message.id = row.bytes(2);
  if (!row.is_null(3)) {
    message.content_type = row.bytes(3);
  }
  message.group = row.bytes(4);
  message.attributes = std::move(*attributes);
  message.body = row.bytes(6);
  const bool again = !row.is_null(7);
  message.attempt = again ? loaded_count(row.integer(8) + 1) : 1;
  delivery.receipt = {.id = message.id, .version = again ? row.integer(7) + 1 : kFirstLease, .locator = row.integer(0)};
  delivery.leased_until = lease.held_until;
  delivery.invisible_until = lease.until;
  return delivery;
}

}  // namespace

Claimer::Claimer(Connection& connection, Places& places, Deliveries& deliveries)
    : places_(places),
      deliveries_(deliveries),
      // CROSS JOIN keeps SQLite to this order of tables, whatever it thinks of their sizes.
      oldest_(connection,
              "SELECT r.seq, r.sent_at, m.id, m.content_type, m.message_group, m.attributes, m.body, d.version, "
              "d.receives FROM ready AS r CROSS JOIN messages AS m ON m.seq = r.seq LEFT JOIN deliveries AS d "
              "ON d.seq = r.seq WHERE r.half = ?1 AND r.sent_at <= ?2 ORDER BY r.sent_at, r.seq"),
      // Who had it and told nothing is counted already: the first delivery as a suspect takes his place. Each further
      // one is a start of its own.
      suspect_(connection,
               "SELECT d.seq, d.sent_at, m.id, m.content_type, m.message_group, m.attributes, m.body, d.version, "
               "d.receives - (d.received_at IS NOT NULL AND NOT d.suspect AND d.receives > 0 AND NOT ?2) "
               "FROM deliveries AS d JOIN messages AS m ON m.seq = d.seq WHERE d.seq = ?1"),
      lease_first_(connection, "INSERT INTO deliveries VALUES (?1, ?2, ?3, 1, 2, 1, ?4, ?5, ?5, NULL, 0)"),
      // The whole head at once, when all of it is new: the usual case, in which one statement each is twice as fast.
      lease_head_(connection,
                  "INSERT INTO deliveries SELECT seq, half, ?4, 1, 2, 1, sent_at, ?5, ?5, NULL, 0 FROM ready "
                  "WHERE half = ?1 AND (sent_at, seq) <= (?2, ?3)"),
      lease_again_(connection,
                   "UPDATE deliveries SET until = ?2, leased = 1, version = version + 1, receives = receives + 1, "
                   "received_at = ?3, updated_at = ?3 WHERE seq = ?1"),
      lease_suspect_(connection,
                     "UPDATE deliveries SET until = ?2, leased = 1, version = version + 1, receives = ?4, "
                     "received_at = ?3, updated_at = ?3, suspect = 1 WHERE seq = ?1"),
      ready_delete_(connection, "DELETE FROM ready WHERE half = ?1 AND sent_at = ?2 AND seq = ?3"),
      ready_delete_head_(connection, "DELETE FROM ready WHERE half = ?1 AND (sent_at, seq) <= (?2, ?3)"),
      suspect_delete_(connection, "DELETE FROM suspects WHERE half = ?1 AND sent_at = ?2 AND seq = ?3") {}

Claimed Claimer::claim(std::int64_t half, const ClaimRequest& request, const Lease& lease) {
  bool whole = places_.bring_back(half, lease.now);
  Claimed claimed;
  if (request.max == 0) {
    return claimed;
  }
  if (request.suspects) {
    claimed.deliveries = claim_suspect(half, lease, request.counts);
  }
  if (claimed.deliveries.empty() || !SLUICE_GUARD(suspect_alone)) {
    Found found = read_ready(half, request, lease);
    lease_ready(half, found, lease);
    whole = whole && found.whole;
    std::move(claimed.deliveries.begin(), claimed.deliveries.end(), std::back_inserter(found.deliveries));
    claimed.deliveries = std::move(found.deliveries);
  } else {
    whole = whole && !places_.first_ready(half, lease.now);
  }
  if (claimed.deliveries.size() < request.max) {
    whole = whole && !(request.suspects && places_.first_suspect(half, lease.now));
    if (!whole) {
      claimed.next_due = Duration::zero();
    } else if (const auto next = places_.next_due(half, lease.now)) {
      claimed.next_due = *next - lease.now;
    }
  }
  return claimed;
}

Claimer::Found Claimer::read_ready(std::int64_t half, const ClaimRequest& request, const Lease& lease) {
  const std::size_t most = std::min(request.max, kClaimLimit);
  const std::size_t most_bytes = std::min(request.bytes, kClaimBytes);
  std::size_t bytes = 0;
  Found found;
  oldest_.bind(half, stored(lease.now));
  while (oldest_.row()) {
    auto delivery = read_delivery(oldest_, lease);
    if (!delivery) {
      found.unreadable.push_back(oldest_.integer(0));
      continue;
    }
    bytes += delivery->message.body.size();
    found.touched.push_back(!oldest_.is_null(7));
    found.deliveries.push_back(std::move(*delivery));
    if (found.deliveries.size() >= most || bytes >= most_bytes) {
      // Whether there is more is not looked at: the next claim tells.
      found.whole = false;
      break;
    }
  }
  oldest_.reset();
  return found;
}

void Claimer::lease_ready(std::int64_t half, const Found& found, const Lease& lease) {
  for (const std::int64_t seq : found.unreadable) {
    set_aside(seq, lease.now);
  }
  if (found.unreadable.empty() && std::find(found.touched.begin(), found.touched.end(), true) == found.touched.end()) {
    lease_head(half, found, lease);
  } else {
    lease_each(half, found, lease);
  }
}

void Claimer::lease_head(std::int64_t half, const Found& found, const Lease& lease) {
  if (found.deliveries.empty()) {
    return;
  }
  const std::int64_t last_sent = stored(found.deliveries.back().message.sent_at);
  const std::int64_t last_seq = found.deliveries.back().receipt.locator;
  lease_head_.bind(half, last_sent, last_seq, stored(lease.until), stored(lease.now)).run();
  ready_delete_head_.bind(half, last_sent, last_seq).run();
}

void Claimer::lease_each(std::int64_t half, const Found& found, const Lease& lease) {
  for (std::size_t i = 0; i < found.deliveries.size(); ++i) {
    const std::int64_t seq = found.deliveries[i].receipt.locator;
    const std::int64_t sent_at = stored(found.deliveries[i].message.sent_at);
    ready_delete_.bind(half, sent_at, seq).run();
    if (found.touched[i]) {
      lease_again_.bind(seq, stored(lease.until), stored(lease.now)).run();
    } else {
      lease_first_.bind(seq, half, stored(lease.until), sent_at, stored(lease.now)).run();
    }
  }
}

std::vector<Delivery> Claimer::claim_suspect(std::int64_t half, const Lease& lease, bool counts) {
  std::vector<Delivery> claimed;
  while (claimed.empty()) {
    const auto place = places_.first_suspect(half, lease.now);
    if (!place) {
      break;
    }
    if (const auto ready = places_.first_ready(half, lease.now); ready && *ready < *place) {
      break;
    }
    suspect_.bind(place->second, std::int64_t{counts ? 1 : 0});
    auto delivery = suspect_.row() ? read_delivery(suspect_, lease) : std::nullopt;
    suspect_.reset();
    if (!delivery) {
      set_aside(place->second, lease.now);
      // Also where there is no record to it: each round takes one away.
      suspect_delete_.bind(half, place->first, place->second).run();
      continue;
    }
    delivery->suspect = true;
    suspect_delete_.bind(half, place->first, place->second).run();
    lease_suspect_.bind(place->second, stored(lease.until), stored(lease.now), std::int64_t{delivery->message.attempt})
        .run();
    claimed.push_back(std::move(*delivery));
  }
  return claimed;
}

void Claimer::set_aside(std::int64_t seq, WallTime now) {
  if (auto before = deliveries_.standing(seq)) {
    Standing after = *before;
    after.until = kLatest;
    after.received_at.reset();
    after.suspect = false;
    after.failure = encode_failure({.error = kUnreadable, .handler = {}, .host = {}, .failed_at = now});
    deliveries_.change(*before, after, now);
  }
}

}  // namespace sluice::queue::sqlite
