#include "host/stores/sqlite/claimer.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"
#include "host/queue/weighted_turns.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr const char* kUnreadable =
    "the record cannot be read, its attributes are damaged; take them away with an edit, then move it to the front";

/// How much of the order that is.
int strictness(Kept kept) { return kept == Kept::queue ? 3 : kept == Kept::group ? 2 : kept == Kept::fair ? 1 : 0; }

/// Of a range of `ready`, ?1, from its head on, as far as they are due at ?2.
std::string oldest() {
  // CROSS JOIN keeps SQLite to this order of tables, whatever it thinks of their sizes.
  return "SELECT " + std::string(kDeliveryColumns) +
         ", r.sent_at FROM sluice_ready AS r CROSS JOIN sluice_messages AS m ON m.seq = r.seq LEFT JOIN "
         "sluice_deliveries AS d ON d.seq = r.seq WHERE r.half = ?1 AND r.sent_at <= ?2 ORDER BY r.sent_at, r.seq";
}

}  // namespace

Claimer::Claimer(Connection& connection, Records& records)
    : connection_(connection),
      records_(records),
      ready_(records.ready()),
      groups_(records.groups()),
      oldest_{Statement(connection, oldest()), Statement(connection, oldest()), Statement(connection, oldest()),
              Statement(connection, oldest())} {}

Claimed Claimer::claim(std::int64_t half, const ClaimRequest& request, const Lease& lease) {
  keep_order(half, request);
  bool whole = records_.bring_back(half, lease.now);
  Claimed claimed;
  if (request.max == 0) {
    return claimed;
  }
  if (auto suspect = request.suspects ? claim_suspect(half, lease, request.counts) : std::nullopt) {
    claimed.deliveries.push_back(std::move(*suspect));
  }
  if (claimed.deliveries.empty() || !SLUICE_GUARD(suspect_alone)) {
    whole = claim_ready(half, request, lease, claimed.deliveries) && whole;
  } else {
    advance(half, claimed.deliveries, 0);
    whole = false;  // what else is due, the next claim tells
  }
  if (claimed.deliveries.size() < request.max) {
    whole = whole && !(request.suspects && ready_.first(suspect_half(half), lease.now));
    if (!whole) {
      claimed.next_due = Duration::zero();
    } else if (const auto next = ready_.next_due(half, lease.now)) {
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
    records_.keep_order(half, wanted);
  } else if (!request.counts) {
    overruled_ = kept;
  }
}

bool Claimer::claim_ready(std::int64_t half, const ClaimRequest& request, const Lease& lease,
                          std::vector<Delivery>& claimed) {
  Room room{std::min(request.max, kClaimLimit), std::min(request.bytes, kClaimBytes)};
  while (true) {
    const std::size_t before = claimed.size();
    const bool whole = claim_round(half, request.rules, lease, room, claimed);
    advance(half, claimed, before);
    // Each group has offered its next one.
    if (groups_.kept(half) != Kept::fair || !whole || claimed.size() == before) {
      return whole;
    }
  }
}

bool Claimer::claim_round(std::int64_t half, const ClaimRules& rules, const Lease& lease, Room& room,
                          std::vector<Delivery>& claimed) {
  std::array<Found, kPriorities> found;
  std::array<bool, kPriorities> waits{};
  for (std::size_t i = 0; i < kPriorities; ++i) {
    waits[i] = oldest_[i].bind(ready_half(half, static_cast<Priority>(i)), stored(lease.now)).row();
  }
  auto& credits = credits_[half];
  const auto weight = [&rules](std::size_t i) { return std::max<std::int64_t>(1, rules.weights[i]); };
  bool whole = true;
  while (const auto next = next_turn(credits, weight, [&waits](std::size_t i) { return waits[i]; })) {
    Statement& row = oldest_[*next];
    Found& range = found[*next];
    if (auto delivery = read_delivery(row, lease)) {
      const std::size_t bytes = payload_bytes(delivery->message);
      const bool touched = !row.is_null(kDeliveryVersion);
      range.rows.push_back({{row.integer(kAfterDelivery), row.integer(0)}, row.integer(1), touched});
      range.all_new = range.all_new && !touched;
      claimed.push_back(std::move(*delivery));
      room.messages -= 1;
      room.bytes -= std::min(bytes, room.bytes);
    } else {
      range.unreadable.push_back(row.integer(0));
    }
    if (room.messages == 0 || room.bytes == 0) {
      // Whether there is more is not looked at: the next claim tells.
      whole = false;
      break;
    }
    waits[*next] = row.row();
  }
  for (std::size_t i = 0; i < kPriorities; ++i) {
    oldest_[i].reset();
    lease_found(half, ready_half(half, static_cast<Priority>(i)), found[i], lease);
  }
  return whole;
}

void Claimer::lease_found(std::int64_t half, std::int64_t range, const Found& found, const Lease& lease) {
  for (const std::int64_t seq : found.unreadable) {
    set_aside(seq, lease.now);
  }
  if (found.rows.empty()) {
    return;
  }
  if (found.all_new && found.unreadable.empty() && groups_.kept(half) == Kept::none) {
    const auto [last_sent, last_seq] = found.rows.back().place;
    lease_head_.bind(range, last_sent, last_seq, stored(lease.until), stored(lease.now), half).run();
    ready_delete_head_.bind(range, last_sent, last_seq).run();
    return;
  }
  for (const auto& [place, sent_at, touched] : found.rows) {
    const auto before = touched ? records_.find(place.second) : std::nullopt;
    ready_.take(range, place);
    if (before) {
      records_.change(*before, core::claim(before->state, {.now = lease.now, .until = lease.until}), lease.now);
    } else {
      lease_first_.bind(place.second, half, stored(lease.until), sent_at, stored(lease.now)).run();
    }
  }
}

void Claimer::advance(std::int64_t half, const std::vector<Delivery>& claimed, std::size_t from) {
  for (; groups_.kept(half) == Kept::fair && from < claimed.size(); ++from) {
    const Delivery& delivery = claimed[from];
    if (const std::int64_t group = groups_.group_of(half, delivery.message.group); group != 0) {
      groups_.gone(half, group, delivery.receipt.locator);
    }
  }
}

std::optional<Delivery> Claimer::claim_suspect(std::int64_t half, const Lease& lease, bool counts) {
  const std::int64_t range = suspect_half(half);
  while (const auto place = ready_.first(range, lease.now)) {
    if (const auto ready = ready_.first(half, lease.now); ready && *ready < *place) {
      break;
    }
    const auto before = records_.find(place->second);
    auto delivery = suspect_.bind(place->second).only([&] { return read_delivery(suspect_, lease); });
    // Also where there is no record to it: each round takes one away.
    ready_.take(range, *place);
    if (!delivery || !before) {
      set_aside(place->second, lease.now);
      continue;
    }
    const core::StateChange claimed =
        core::claim(before->state, {.now = lease.now, .until = lease.until, .counts = counts});
    records_.change(*before, claimed, lease.now);
    delivery->suspect = true;
    delivery->message.attempt = *claimed.receives;
    return delivery;
  }
  return std::nullopt;
}

void Claimer::set_aside(std::int64_t seq, WallTime now) {
  if (const auto before = records_.find(seq)) {
    core::StateChange change;
    change.hidden_until.emplace(kEndOfTime);
    change.received_at.emplace();
    change.marks = 0;
    change.failure = {.error = kUnreadable, .handler = {}, .host = {}, .failed_at = now};
    records_.change(*before, change, now);
  }
}

}  // namespace sluice::queue::sqlite
