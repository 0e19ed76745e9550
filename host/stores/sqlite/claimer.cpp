#include "host/stores/sqlite/claimer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr const char* kUnreadable =
    "the record cannot be read, its attributes are damaged; take them away with an edit, then move it to the front";

// As kOldest, of a half that keeps no order and has no priorities: there all messages are of the normal one, which need
// not be looked for behind their bodies, and lie where they were sent. So it has neither of the last two columns.
constexpr const char* kOldestPlain =
    "SELECT r.seq, r.sent_at, m.id, m.content_type, m.message_group, m.attributes, m.body, d.version, d.receives "
    "FROM sluice_ready AS r CROSS JOIN sluice_messages AS m ON m.seq = r.seq LEFT JOIN sluice_deliveries AS d "
    "ON d.seq = r.seq WHERE r.half = ?1 AND r.sent_at <= ?2 ORDER BY r.sent_at, r.seq";

void lend(Delivery& delivery, const Lease& lease) {
  delivery.leased_until = lease.held_until;
  delivery.invisible_until = lease.until;
}

/// As Claimer::take_row, of a plain row: where it lies is when it was sent, which is told once.
template <typename Found>
void take_plain(const Statement& row, const Lease& lease, Found& found) {
  auto delivery = read_delivery(row, Row::plain);
  if (!delivery) {
    found.unreadable.push_back(row.integer(0));
    return;
  }
  lend(*delivery, lease);
  found.bytes += delivery->message.body.size();
  found.places.emplace_back(stored(delivery->message.sent_at), delivery->receipt.locator);
  found.touched.push_back(!row.is_null(7));
  found.deliveries.push_back(std::move(*delivery));
}

int strictness(Kept kept) {
  switch (kept) {
    case Kept::queue:
      return 3;
    case Kept::group:
      return 2;
    case Kept::fair:
      return 1;
    case Kept::none:
      break;
  }
  return 0;
}

}  // namespace

Claimer::Claimer(Connection& connection, ReadyIndex& ready_index, Deliveries& deliveries, GroupOrder& groups)
    : ready_index_(ready_index),
      deliveries_(deliveries),
      groups_(groups),
      connection_(connection),
      oldest_(connection, kOldestPlain),
      suspect_(connection,
               "SELECT d.seq, d.sent_at, m.id, m.content_type, m.message_group, m.attributes, m.body, d.version, "
               "d.receives, m.priority FROM sluice_deliveries AS d JOIN sluice_messages AS m ON m.seq = d.seq WHERE "
               "d.seq = ?1"),
      lease_first_(connection, "INSERT INTO sluice_deliveries VALUES (?1, ?2, ?3, 1, 2, 1, ?4, ?5, ?5, NULL, 0)"),
      // The whole head at once, when all of it is new: the usual case, in which one statement each is twice as fast.
      lease_head_(
          connection,
          "INSERT INTO sluice_deliveries SELECT seq, ?6, ?4, 1, 2, 1, sent_at, ?5, ?5, NULL, 0 FROM sluice_ready "
          "WHERE half = ?1 AND (sent_at, seq) <= (?2, ?3)"),
      lease_again_(
          connection,
          "UPDATE sluice_deliveries SET until = ?2, leased = 1, version = version + 1, receives = receives + 1, "
          "received_at = ?3, updated_at = ?3 WHERE seq = ?1"),
      lease_suspect_(connection,
                     "UPDATE sluice_deliveries SET until = ?2, leased = 1, version = version + 1, receives = ?4, "
                     "received_at = ?3, updated_at = ?3, suspect = 1 WHERE seq = ?1"),
      ready_delete_(connection, "DELETE FROM sluice_ready WHERE half = ?1 AND sent_at = ?2 AND seq = ?3"),
      ready_delete_head_(connection, "DELETE FROM sluice_ready WHERE half = ?1 AND (sent_at, seq) <= (?2, ?3)"),
      suspect_delete_(connection, "DELETE FROM sluice_suspects WHERE half = ?1 AND sent_at = ?2 AND seq = ?3"),
      messages_(connection, "SELECT messages FROM sluice_halves WHERE half = ?1") {}

Claimed Claimer::claim(std::int64_t half, const ClaimRequest& request, const Lease& lease) {
  groups_.at(lease.now);
  keep_order(half, request);
  bool whole = deliveries_.bring_back(half, lease.now);
  Claimed claimed;
  if (request.max == 0) {
    return claimed;
  }
  if (request.suspects) {
    claimed.deliveries = claim_suspect(half, lease, request.counts);
  }
  if (claimed.deliveries.empty() || !SLUICE_GUARD(suspect_alone)) {
    std::vector<Delivery> suspects;
    suspects.swap(claimed.deliveries);
    whole = claim_ready(half, request, lease, claimed.deliveries) && whole;
    std::move(suspects.begin(), suspects.end(), std::back_inserter(claimed.deliveries));
  } else {
    advance(half, claimed.deliveries);
    whole = whole && !first_ready(half, lease.now);
  }
  if (claimed.deliveries.size() < request.max) {
    whole = whole && !(request.suspects && ready_index_.first_suspect(half, lease.now));
    if (!whole) {
      claimed.next_due = Duration::zero();
    } else if (const auto next = ready_index_.next_due(half, lease.now)) {
      claimed.next_due = *next - lease.now;
    }
  }
  return claimed;
}

// A claim takes what the strictest order gives it that anybody has asked for; a job's ends that once the half is empty.
void Claimer::keep_order(std::int64_t half, const ClaimRequest& request) {
  const Kept kept = groups_.kept(half);
  const Kept wanted = kept_for(request.rules);
  overruled_.reset();
  if (wanted == kept) {
    return;
  }
  bool change = strictness(wanted) > strictness(kept);
  if (!change && !request.counts) {
    change = messages_.bind(half).only().value_or(0) == 0;
  }
  if (change) {
    groups_.keep(half, wanted);
  } else if (!request.counts) {
    overruled_ = kept;
  }
}

bool Claimer::first_ready(std::int64_t half, WallTime now) {
  if (!groups_.prioritised(half)) {
    return ready_index_.first_ready(half, now).has_value();
  }
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    if (ready_index_.first_ready(class_half(half, static_cast<Priority>(priority)), now)) {
      return true;
    }
  }
  return false;
}

// False: there may be more that is due.
bool Claimer::claim_ready(std::int64_t half, const ClaimRequest& request, const Lease& lease,
                          std::vector<Delivery>& claimed) {
  Room room{std::min(request.max, kClaimLimit), std::min(request.bytes, kClaimBytes)};
  const Kept kept = groups_.kept(half);
  if (kept == Kept::none && groups_.prioritised(half)) {
    return claim_by_priority(half, request.rules, room, lease, claimed);
  }
  while (true) {
    Found found = read_ready(half, room, lease);
    lease_ready(half, half, found, lease);
    advance(half, found.deliveries);
    const bool again = kept == Kept::fair && found.whole && !found.deliveries.empty();
    if (claimed.empty()) {
      claimed.swap(found.deliveries);
    } else {
      std::move(found.deliveries.begin(), found.deliveries.end(), std::back_inserter(claimed));
    }
    if (!again) {
      return found.whole;
    }
    // Each lane has offered its next one.
    room.messages -= found.places.size();
    room.bytes -= found.bytes;
  }
}

void Claimer::advance(std::int64_t half, const std::vector<Delivery>& claimed) {
  if (groups_.kept(half) != Kept::fair) {
    return;
  }
  for (const Delivery& delivery : claimed) {
    if (const std::int64_t group = groups_.group_of(half, group_hash(delivery.message.group)); group != 0) {
      groups_.claimed(half, group, delivery.receipt.locator);
    }
  }
}

bool Claimer::claim_by_priority(std::int64_t half, const ClaimRules& rules, const Room& room, const Lease& lease,
                                std::vector<Delivery>& claimed) {
  std::array<Found, kPriorities> found;
  std::array<bool, kPriorities> waits{};
  for (std::size_t i = 0; i < kPriorities; ++i) {
    if (!oldest_of_[i]) {
      oldest_of_[i] = std::make_unique<Statement>(connection_, kOldest);
    }
    waits[i] = oldest_of_[i]->bind(class_half(half, static_cast<Priority>(i)), stored(lease.now)).row();
  }
  std::size_t bytes = 0;
  bool whole = true;
  while (const auto next = turns_.next(half, rules, waits)) {
    Statement& row = *oldest_of_[*next];
    bytes += take_row(row, lease, found[*next]);
    if (!found[*next].deliveries.empty()) {
      claimed.push_back(std::move(found[*next].deliveries.back()));
      found[*next].deliveries.clear();
    }
    if (claimed.size() >= room.messages || bytes >= room.bytes) {
      whole = false;
      break;
    }
    waits[*next] = row.row();
  }
  for (std::size_t i = 0; i < kPriorities; ++i) {
    oldest_of_[i]->reset();
    lease_ready(half, class_half(half, static_cast<Priority>(i)), found[i], lease);
  }
  return whole;
}

std::size_t Claimer::take_row(const Statement& row, const Lease& lease, Found& found) {
  auto delivery = read_delivery(row, Row::with_priority);
  if (!delivery) {
    found.unreadable.push_back(row.integer(0));
    return 0;
  }
  lend(*delivery, lease);
  const std::size_t bytes = delivery->message.body.size();
  found.bytes += bytes;
  found.places.emplace_back(row.integer(10), row.integer(0));
  found.sent_at.push_back(row.integer(1));
  found.touched.push_back(!row.is_null(7));
  found.deliveries.push_back(std::move(*delivery));
  return bytes;
}

Claimer::Found Claimer::read_ready(std::int64_t half, const Room& room, const Lease& lease) {
  Found found;
  const bool plain = groups_.kept(half) == Kept::none;
  auto& ordered = oldest_of_.at(static_cast<std::size_t>(Priority::normal));
  if (!plain && !ordered) {
    ordered = std::make_unique<Statement>(connection_, kOldest);
  }
  Statement& row = plain ? oldest_ : *ordered;
  row.bind(half, stored(lease.now));
  while (row.row()) {
    if (plain) {
      take_plain(row, lease, found);
    } else {
      take_row(row, lease, found);
    }
    if (found.deliveries.size() >= room.messages || found.bytes >= room.bytes) {
      // Whether there is more is not looked at: the next claim tells.
      found.whole = false;
      break;
    }
  }
  row.reset();
  return found;
}

void Claimer::lease_ready(std::int64_t half, std::int64_t place_half, const Found& found, const Lease& lease) {
  for (const std::int64_t seq : found.unreadable) {
    set_aside(seq, lease.now);
  }
  const bool all_new = std::find(found.touched.begin(), found.touched.end(), true) == found.touched.end();
  if (found.unreadable.empty() && all_new && groups_.kept(half) == Kept::none) {
    lease_head(half, place_half, found, lease);
  } else {
    lease_each(half, place_half, found, lease);
  }
}

void Claimer::lease_head(std::int64_t half, std::int64_t place_half, const Found& found, const Lease& lease) {
  if (!found.places.empty()) {
    const auto [last_sent, last_seq] = found.places.back();
    lease_head_.bind(place_half, last_sent, last_seq, stored(lease.until), stored(lease.now), half).run();
    ready_delete_head_.bind(place_half, last_sent, last_seq).run();
  }
}

void Claimer::lease_each(std::int64_t half, std::int64_t place_half, const Found& found, const Lease& lease) {
  for (std::size_t i = 0; i < found.places.size(); ++i) {
    const auto [turn, seq] = found.places[i];
    ready_delete_.bind(place_half, turn, seq).run();
    if (found.touched[i]) {
      lease_again_.bind(seq, stored(lease.until), stored(lease.now)).run();
    } else {
      const std::int64_t sent_at = found.sent_at.empty() ? turn : found.sent_at[i];
      lease_first_.bind(seq, half, stored(lease.until), sent_at, stored(lease.now)).run();
    }
  }
}

std::vector<Delivery> Claimer::claim_suspect(std::int64_t half, const Lease& lease, bool counts) {
  std::vector<Delivery> claimed;
  while (claimed.empty()) {
    const auto place = ready_index_.first_suspect(half, lease.now);
    if (!place) {
      break;
    }
    if (const auto ready = ready_index_.first_ready(half, lease.now); ready && *ready < *place) {
      break;
    }
    const auto before = deliveries_.standing(place->second);
    suspect_.bind(place->second);
    auto delivery = suspect_.row() ? read_delivery(suspect_, Row::with_priority) : std::nullopt;
    suspect_.reset();
    if (!delivery || !before) {
      set_aside(place->second, lease.now);
      // Also where there is no record to it: each round takes one away.
      suspect_delete_.bind(half, place->first, place->second).run();
      continue;
    }
    lend(*delivery, lease);
    delivery->suspect = true;
    delivery->message.attempt = core::receives_when_claimed(before->state(), counts);
    suspect_delete_.bind(half, place->first, place->second).run();
    lease_suspect_.bind(place->second, stored(lease.until), stored(lease.now), std::int64_t{delivery->message.attempt})
        .run();
    claimed.push_back(std::move(*delivery));
  }
  return claimed;
}

void Claimer::set_aside(std::int64_t seq, WallTime now) {
  if (auto before = deliveries_.standing(seq)) {
    MessageRecord after = *before;
    after.until = kEndOfTime;
    after.received_at.reset();
    after.suspect = false;
    after.failure = encode_failure({.error = kUnreadable, .handler = {}, .host = {}, .failed_at = now});
    deliveries_.change(*before, after, now);
  }
}

}  // namespace sluice::queue::sqlite
