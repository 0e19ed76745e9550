#include "host/stores/sqlite/deliveries.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

std::int64_t as_number(bool value) { return value ? 1 : 0; }

}  // namespace

Deliveries::Deliveries(Connection& connection, Tally& tally, Places& places)
    : tally_(tally),
      places_(places),
      remove_leased_(connection,
                     "DELETE FROM messages WHERE seq = ?1 AND id = ?2 AND EXISTS (SELECT 1 FROM deliveries AS d "
                     "WHERE d.seq = ?1 AND d.version = ?3 AND d.half = ?4 AND d.until IS NOT NULL)"),
      message_delete_(connection, "DELETE FROM messages WHERE seq = ?1"),
      message_move_(connection, "UPDATE messages SET half = ?2, sent_at = ?3 WHERE seq = ?1"),
      delivery_delete_(connection, "DELETE FROM deliveries WHERE seq = ?1"),
      delivery_delete_run_(connection, "DELETE FROM deliveries WHERE seq BETWEEN ?1 AND ?2"),
      delivery_write_(connection,
                      "INSERT OR REPLACE INTO deliveries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"),
      standing_(connection,
                "SELECT m.id, m.half, m.sent_at, d.version, d.receives, d.until, d.received_at, d.failure, "
                "d.suspect "
                "FROM messages AS m LEFT JOIN deliveries AS d ON d.seq = m.seq WHERE m.seq = ?1") {}

std::optional<Standing> Deliveries::standing(std::int64_t seq) {
  standing_.bind(seq);
  std::optional<Standing> found;
  if (standing_.row()) {
    found.emplace();
    found->seq = seq;
    found->id = standing_.bytes(0);
    found->half = standing_.integer(1);
    found->sent_at = loaded(standing_.integer(2));
    if (!standing_.is_null(3)) {
      found->version = standing_.integer(3);
      found->receives = loaded_count(standing_.integer(4));
      found->until = loaded(standing_.optional_integer(5));
      found->received_at = loaded(standing_.optional_integer(6));
      if (!standing_.is_null(7)) {
        found->failure = standing_.bytes(7);
      }
      found->suspect = standing_.integer(8) != 0;
    }
  }
  standing_.reset();
  return found;
}

std::optional<Standing> Deliveries::held(std::int64_t half, const Receipt& receipt) {
  auto found = standing(receipt.locator);
  const bool same = found && found->id == receipt.id && found->half == half &&
                    (found->version == receipt.version || !SLUICE_GUARD(sqlite_version_fence));
  if (!same) {
    found.reset();
  }
  return found;
}

void Deliveries::settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
                        WallTime now) {
  removed_.clear();
  for (std::size_t i = 0; i < completions.size(); ++i) {
    results[i].status = settle_one(half, completions[i], now);
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

SettleStatus Deliveries::settle_one(std::int64_t half, const Completion& completion, WallTime now) {
  const Receipt& receipt = completion.receipt;
  if (completion.action == CompletionAction::remove &&
      remove_leased_.bind(receipt.locator, std::string_view(receipt.id), receipt.version, half).run() == 1) {
    removed_.push_back(receipt.locator);
    return SettleStatus::applied;
  }
  const auto before = held(half, receipt);
  if (!before) {
    return SettleStatus::lost;
  }
  std::optional<std::string> failure = before->failure;
  if (!completion.failure.empty()) {
    Failure latest = completion.failure;
    if (before->failure) {
      latest.earlier = earlier_than_next(decode_failure(*before->failure));
    }
    failure = encode_failure(latest);
  }
  switch (completion.action) {
    case CompletionAction::remove:
      remove(*before);
      break;
    case CompletionAction::dead_letter:
      move(*before, half | 1, std::move(failure), now);
      break;
    case CompletionAction::retry:
    case CompletionAction::release:
      settle_back(*before, completion, std::move(failure), now);
      break;
  }
  return SettleStatus::applied;
}

void Deliveries::settle_back(const Standing& before, const Completion& completion, std::optional<std::string> failure,
                             WallTime now) {
  Standing after = before;
  after.received_at.reset();
  after.until.reset();
  after.suspect = completion.suspect;
  if (completion.delay > Duration::zero()) {
    after.until = later(now, completion.delay);
  }
  if (completion.action == CompletionAction::retry) {
    after.failure = std::move(failure);
  } else if (after.receives > 0) {
    --after.receives;
  }
  change(before, after, now);
}

std::optional<Receipt> Deliveries::extend(std::int64_t half, const Receipt& receipt, const Lease& lease) {
  const auto before = held(half, receipt);
  if (!before) {
    return std::nullopt;
  }
  Standing after = *before;
  after.until = lease.until;
  change(*before, after, lease.now);
  return Receipt{.id = receipt.id, .version = receipt.version + 1, .locator = receipt.locator};
}

void Deliveries::place_delayed(std::int64_t seq, std::int64_t half, WallTime sent_at, WallTime now) {
  const std::int64_t sent = stored(sent_at);
  const std::optional<std::int64_t> none;
  delivery_write_
      .bind(seq, half, sent, as_number(false), std::int64_t{1}, std::int64_t{0}, sent, none, stored(now),
            std::optional<Blob>(), as_number(false))
      .run();
}

void Deliveries::place(const Standing& standing, WallTime updated_at) {
  if (!standing.until) {
    places_.insert(standing);
  }
  write(standing, standing.version, updated_at);
}

void Deliveries::write(const Standing& standing, std::int64_t version, WallTime updated_at) {
  const std::optional<Blob> failure = standing.failure ? std::optional<Blob>(Blob{*standing.failure}) : std::nullopt;
  delivery_write_
      .bind(standing.seq, standing.half, stored(standing.until), as_number(standing.received_at.has_value()), version,
            std::int64_t{standing.receives}, stored(standing.sent_at), stored(standing.received_at), stored(updated_at),
            failure, as_number(standing.suspect))
      .run();
}

void Deliveries::change(const Standing& before, const Standing& after, WallTime now) {
  if (!before.until) {
    places_.remove(before);
  }
  if (!after.until) {
    places_.insert(after);
  }
  if (after.half != before.half || after.sent_at != before.sent_at) {
    message_move_.bind(before.seq, after.half, stored(after.sent_at)).run();
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
  after.suspect = false;
  after.failure = std::move(failure);
  change(before, after, now);
}

void Deliveries::remove(const Standing& standing) {
  if (!standing.until) {
    places_.remove(standing);
  }
  message_delete_.bind(standing.seq).run();
  delivery_delete_.bind(standing.seq).run();
  tally_.add(standing.half, -1);
}

}  // namespace sluice::queue::sqlite
