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

Deliveries::Deliveries(Connection& connection, Tally& tally, ReadyIndex& ready_index, GroupOrder& groups)
    : tally_(tally),
      ready_index_(ready_index),
      groups_(groups),
      remove_leased_(
          connection,
          "DELETE FROM sluice_messages WHERE seq = ?1 AND id = ?2 AND EXISTS (SELECT 1 FROM sluice_deliveries AS d "
          "WHERE d.seq = ?1 AND d.version = ?3 AND d.half = ?4 AND d.until IS NOT NULL)"),
      group_(connection, "SELECT message_group FROM sluice_messages WHERE seq = ?1"),
      brought_back_(connection, "UPDATE sluice_deliveries SET until = NULL WHERE seq = ?1"),
      message_delete_(connection, "DELETE FROM sluice_messages WHERE seq = ?1"),
      message_move_(connection, "UPDATE sluice_messages SET half = ?2, sent_at = ?3 WHERE seq = ?1"),
      delivery_delete_(connection, "DELETE FROM sluice_deliveries WHERE seq = ?1"),
      delivery_delete_run_(connection, "DELETE FROM sluice_deliveries WHERE seq BETWEEN ?1 AND ?2"),
      delivery_write_(connection,
                      "INSERT OR REPLACE INTO sluice_deliveries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"),
      standing_(connection,
                "SELECT m.id, m.half, m.sent_at, d.version, d.receives, d.until, d.received_at, d.failure, "
                "d.suspect, m.message_group, m.priority "
                "FROM sluice_messages AS m LEFT JOIN sluice_deliveries AS d ON d.seq = m.seq WHERE m.seq = ?1") {}

void MessageRecord::apply(const core::StateChange& change) {
  if (change.half) {
    half = *change.half == Half::dlq ? half | 1 : half & ~std::int64_t{1};
  }
  sent_at = change.sent_at.value_or(sent_at);
  until = change.hidden_until.value_or(until);
  received_at = change.received_at.value_or(received_at);
  receives = change.receives.value_or(receives);
  suspect = change.suspect.value_or(suspect);
  if (change.failure) {
    failure = change.failure->empty() ? std::nullopt : std::optional(encode_failure(*change.failure));
  }
}

std::optional<MessageRecord> Deliveries::standing(std::int64_t seq) {
  standing_.bind(seq);
  std::optional<MessageRecord> found;
  if (standing_.row()) {
    found.emplace();
    found->seq = seq;
    found->id = standing_.bytes(0);
    found->half = standing_.integer(1);
    found->sent_at = loaded(standing_.integer(2));
    found->group = group_hash(standing_.bytes(9));
    found->priority = stored_priority(standing_.optional_integer(10));
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

std::optional<MessageRecord> Deliveries::held(std::int64_t half, const Receipt& receipt) {
  auto found = standing(receipt.locator);
  const bool same = found && found->id == receipt.id && found->half == half &&
                    (found->version == receipt.version || !SLUICE_GUARD(sqlite_version_fence));
  if (!same) {
    found.reset();
  }
  return found;
}

bool Deliveries::remove_leased(std::int64_t half, const Receipt& receipt) {
  std::int64_t group = 0;
  if (groups_.tracks(half)) {
    group_.bind(receipt.locator);
    group = group_.row() ? groups_.group_of(half, group_hash(group_.bytes(0))) : 0;
    group_.reset();
  }
  if (remove_leased_.bind(receipt.locator, std::string_view(receipt.id), receipt.version, half).run() != 1) {
    return false;
  }
  tally_.add(half, -1);
  if (group != 0) {
    groups_.end(half, group, receipt.locator);
  }
  if ((half & 1) != 0 && groups_.tracks(half)) {
    groups_.let_go(receipt.locator);
  }
  return true;
}

void Deliveries::settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
                        WallTime now) {
  groups_.at(now);
  // Messages that were sent one after the other are mostly settled so: one statement for a run of them.
  std::int64_t first = 0;
  std::int64_t last = -1;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const std::int64_t seq = completions[i].receipt.locator;
    if (completions[i].action == CompletionAction::remove && remove_leased(half, completions[i].receipt)) {
      results[i].status = SettleStatus::applied;
      if (seq != last + 1) {
        delivery_delete_run_.bind(first, last).run();
        first = seq;
      }
      last = seq;
    } else {
      results[i].status = settle(half, completions[i], now);
    }
  }
  delivery_delete_run_.bind(first, last).run();
}

SettleStatus Deliveries::settle(std::int64_t half, const Completion& completion, WallTime now) {
  groups_.at(now);
  const Receipt& receipt = completion.receipt;
  if (completion.action == CompletionAction::remove && remove_leased(half, receipt)) {
    delivery_delete_.bind(receipt.locator).run();
    return SettleStatus::applied;
  }
  const auto before = held(half, receipt);
  if (!before) {
    return SettleStatus::lost;
  }
  core::StateChange made = core::end(completion, before->receives, now);
  if (made.removes) {
    remove(*before);
    return SettleStatus::applied;
  }
  if (completion.action == CompletionAction::dead_letter && completion.hold_group && (half & 1) == 0) {
    groups_.hold(*before);
  }
  if (made.failure && before->failure) {
    made.failure = core::with_earlier(std::move(*made.failure), decode_failure(*before->failure));
  }
  MessageRecord after = *before;
  after.apply(made);
  change(*before, after, now);
  return SettleStatus::applied;
}

bool Deliveries::bring_back(std::int64_t half, WallTime now) {
  if (groups_.kept(half) == Kept::none && !groups_.prioritised(half)) {
    return ready_index_.bring_back(half, now);
  }
  groups_.at(now);
  const std::vector<std::int64_t> due = ready_index_.due(half, now);
  for (const std::int64_t seq : due) {
    const auto before = standing(seq);
    brought_back_.bind(seq).run();
    if (before) {
      MessageRecord after = *before;
      after.until.reset();
      stand(&*before, &after);
    }
  }
  return due.size() < ReadyIndex::kBringBackLimit;
}

void Deliveries::stand(const MessageRecord* before, const MessageRecord* after) {
  const std::int64_t from = before == nullptr ? 0 : groups_.group_of(before->half, before->group);
  const std::int64_t to = after == nullptr ? 0 : groups_.group_of(after->half, after->group);
  if (before != nullptr && from == 0 && !before->until) {
    ready_index_.take(before->suspected() ? before->half : groups_.place_half(*before),
                      {stored(before->sent_at), before->seq}, before->suspected());
  }
  if (after != nullptr && to == 0 && !after->until) {
    ready_index_.put(after->suspected() ? after->half : groups_.place_half(*after),
                     {stored(after->sent_at), after->seq}, after->suspected());
  }
  if (from != 0 || to != 0) {
    groups_.change(from == 0 ? nullptr : before, to == 0 ? nullptr : after);
  }
  const bool leaves_dlq =
      before != nullptr && (before->half & 1) != 0 && (after == nullptr || after->half != before->half);
  if (leaves_dlq && groups_.tracks(before->half)) {
    groups_.let_go(before->seq);
  }
}

std::optional<Receipt> Deliveries::extend(std::int64_t half, const Receipt& receipt, const Lease& lease) {
  const auto before = held(half, receipt);
  if (!before) {
    return std::nullopt;
  }
  MessageRecord after = *before;
  after.apply(core::extension(lease.until));
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

void Deliveries::place(const MessageRecord& standing, WallTime updated_at) {
  groups_.at(updated_at);
  stand(nullptr, &standing);
  write(standing, standing.version, updated_at);
}

void Deliveries::write(const MessageRecord& standing, std::int64_t version, WallTime updated_at) {
  const std::optional<Blob> failure = standing.failure ? std::optional<Blob>(Blob{*standing.failure}) : std::nullopt;
  delivery_write_
      .bind(standing.seq, standing.half, stored(standing.until), as_number(standing.received_at.has_value()), version,
            std::int64_t{standing.receives}, stored(standing.sent_at), stored(standing.received_at), stored(updated_at),
            failure, as_number(standing.suspect))
      .run();
}

void Deliveries::change(const MessageRecord& before, const MessageRecord& after, WallTime now) {
  groups_.at(now);
  stand(&before, &after);
  if (after.half != before.half || after.sent_at != before.sent_at) {
    message_move_.bind(before.seq, after.half, stored(after.sent_at)).run();
  }
  if (after.half != before.half) {
    tally_.add(before.half, -1);
    tally_.add(after.half, 1);
  }
  write(after, before.version + 1, now);
}

void Deliveries::remove(const MessageRecord& standing) {
  stand(&standing, nullptr);
  message_delete_.bind(standing.seq).run();
  delivery_delete_.bind(standing.seq).run();
  tally_.add(standing.half, -1);
}

}  // namespace sluice::queue::sqlite
