#include "host/stores/sqlite/records.hpp"

#include <string_view>

#include "base/guard.hpp"

namespace sluice::queue::sqlite {

namespace {

std::int64_t as_number(bool value) { return value ? 1 : 0; }

}  // namespace

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

void Records::begin() {
  tally_.begin();
  groups_.begin();
}

void Records::back_to(const Tally::Mark& mark) {
  tally_.back_to(mark);
  groups_.undone();
}

std::optional<std::int64_t> Records::queue(const std::string& name) {
  std::optional<std::int64_t> id;
  queue_find_.bind(std::string_view(name));
  if (queue_find_.row()) {
    id = queue_find_.integer(0);
    groups_.learn(*id, queue_find_.integer(1));
  }
  queue_find_.reset();
  return id;
}

std::int64_t Records::make_queue(const std::string& name) {
  if (const auto id = queue(name)) {
    return *id;
  }
  queue_insert_.bind(std::string_view(name)).run();
  return connection_.last_row();
}

std::optional<MessageRecord> Records::find(std::int64_t seq) {
  record_.bind(seq);
  std::optional<MessageRecord> found;
  if (record_.row()) {
    found.emplace();
    found->seq = seq;
    found->id = record_.bytes(0);
    found->half = record_.integer(1);
    found->sent_at = loaded(record_.integer(2));
    found->group = group_hash(record_.bytes(9));
    found->priority = stored_priority(record_.optional_integer(10));
    if (!record_.is_null(3)) {
      found->version = record_.integer(3);
      found->receives = loaded_count(record_.integer(4));
      found->until = loaded(record_.optional_integer(5));
      found->received_at = loaded(record_.optional_integer(6));
      if (!record_.is_null(7)) {
        found->failure = record_.bytes(7);
      }
      found->marks = loaded_count(record_.integer(8));
    }
  }
  record_.reset();
  return found;
}

std::optional<MessageRecord> Records::find(std::int64_t queue, const std::string& id) {
  const auto seq = by_id_.bind(std::string_view(id), queue).only();
  return seq ? find(*seq) : std::nullopt;
}

std::optional<MessageRecord> Records::held(std::int64_t half, const Receipt& receipt) {
  auto found = find(receipt.locator);
  const bool same = found && found->id == receipt.id && found->half == half &&
                    (found->version == receipt.version || !SLUICE_GUARD(sqlite_version_fence));
  if (!same) {
    found.reset();
  }
  return found;
}

bool Records::remove_leased(std::int64_t half, const Receipt& receipt) {
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

void Records::settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
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

SettleStatus Records::settle(std::int64_t half, const Completion& completion, WallTime now) {
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

bool Records::bring_back(std::int64_t half, WallTime now) {
  groups_.at(now);
  const std::vector<std::int64_t> due = ready_.due(half, now);
  for (const std::int64_t seq : due) {
    const auto before = find(seq);
    brought_back_.bind(seq).run();
    if (before) {
      MessageRecord after = *before;
      after.until.reset();
      stand(&*before, &after);
    }
  }
  return due.size() < ReadyIndex::kBringBackLimit;
}

// Each group's first turn comes as its oldest message was sent.
void Records::keep_order(std::int64_t half, Kept kept) {
  std::vector<std::int64_t> seqs;
  Statement all(connection_, "SELECT m.seq FROM (" + all_of_half() +
                                 ") AS p CROSS JOIN sluice_messages AS m ON m.seq = p.seq ORDER BY m.sent_at, m.seq");
  all.bind(half);
  while (all.row()) {
    seqs.push_back(all.integer(0));
  }
  all.reset();
  groups_.begin_order(half, kept);
  for (const std::int64_t seq : seqs) {
    if (const auto record = find(seq)) {
      groups_.at(record->sent_at);
      stand(nullptr, &*record);
    }
  }
  groups_.end_order(half);
}

void Records::stand(const MessageRecord* before, const MessageRecord* after) {
  const std::int64_t from = before == nullptr ? 0 : groups_.group_of(before->half, before->group);
  const std::int64_t to = after == nullptr ? 0 : groups_.group_of(after->half, after->group);
  if (before != nullptr && from == 0 && !before->until) {
    ready_.take(groups_.range_of(*before), {stored(before->sent_at), before->seq});
  }
  if (after != nullptr && to == 0 && !after->until) {
    ready_.put(groups_.range_of(*after), {stored(after->sent_at), after->seq});
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

std::optional<Receipt> Records::extend(std::int64_t half, const Receipt& receipt, const Lease& lease) {
  const auto before = held(half, receipt);
  if (!before) {
    return std::nullopt;
  }
  MessageRecord after = *before;
  after.apply(core::extension(lease.until));
  change(*before, after, lease.now);
  return Receipt{.id = receipt.id, .version = receipt.version + 1, .locator = receipt.locator};
}

void Records::place_delayed(std::int64_t seq, std::int64_t half, WallTime sent_at, WallTime now) {
  const std::int64_t sent = stored(sent_at);
  const std::optional<std::int64_t> none;
  delivery_write_
      .bind(seq, half, sent, as_number(false), std::int64_t{1}, std::int64_t{0}, sent, none, stored(now),
            std::optional<Blob>(), std::int64_t{0})
      .run();
}

void Records::write(const MessageRecord& standing, std::int64_t version, WallTime updated_at) {
  const std::optional<Blob> failure = standing.failure ? std::optional<Blob>(Blob{*standing.failure}) : std::nullopt;
  delivery_write_
      .bind(standing.seq, standing.half, stored(standing.until), as_number(standing.received_at.has_value()), version,
            std::int64_t{standing.receives}, stored(standing.sent_at), stored(standing.received_at), stored(updated_at),
            failure, std::int64_t{standing.marks})
      .run();
}

void Records::change(const MessageRecord& before, const MessageRecord& after, WallTime now) {
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

void Records::renew(const MessageRecord& before, const MessageRecord& after, WallTime now) {
  created_.bind(before.seq, stored(now)).run();
  change(before, after, now);
}

void Records::replace_content(const MessageRecord& before, const Message& content, WallTime now) {
  const std::string attributes = encode_attributes(content.attributes);
  content_
      .bind(before.seq, unless(kTextPlain, content.content_type), unless({}, content.group), unless_empty(attributes),
            Blob{content.body}, stored(content.priority))
      .run();
  MessageRecord after = before;
  after.group = group_hash(content.group);
  after.priority = content.priority;
  change(before, after, now);
}

void Records::remove(const MessageRecord& standing) {
  stand(&standing, nullptr);
  message_delete_.bind(standing.seq).run();
  delivery_delete_.bind(standing.seq).run();
  tally_.add(standing.half, -1);
}

PutStatus Records::put(std::int64_t queue, const StoredMessage& record, PutMode mode) {
  const Message& message = record.message;
  if (const auto taken = find(queue, message.id)) {
    if (mode == PutMode::insert) {
      return PutStatus::exists;
    }
    remove(*taken);
  }
  MessageRecord standing{.seq = tally_.next_seq(),
                         .id = message.id,
                         .half = half_of(queue, record.half),
                         .sent_at = message.sent_at,
                         .version = record.version,
                         .receives = message.attempt,
                         .until = record.invisible_until,
                         .received_at = record.received_at,
                         .failure = {},
                         .marks = record.marks,
                         .group = group_hash(message.group),
                         .priority = message.priority};
  if (!record.failure.empty()) {
    standing.failure = encode_failure(record.failure);
  }
  const std::string attributes = encode_attributes(message.attributes);
  message_put_
      .bind(standing.seq, standing.half, stored(message.sent_at), stored(record.created_at),
            std::string_view(message.id), unless(kTextPlain, message.content_type), unless({}, message.group),
            unless_empty(attributes), Blob{message.body}, unless_empty(record.native), stored(message.priority))
      .run();
  groups_.at(record.updated_at);
  stand(nullptr, &standing);
  write(standing, standing.version, record.updated_at);
  tally_.add(standing.half, 1);
  return PutStatus::written;
}

}  // namespace sluice::queue::sqlite
