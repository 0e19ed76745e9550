#include "host/stores/sqlite/records.hpp"

#include <string_view>

#include "base/guard.hpp"

namespace sluice::queue::sqlite {

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

std::int64_t Records::make_queue(const std::string& name) {
  if (const std::int64_t number = queue(name); number != 0) {
    return number;
  }
  queue_insert_.bind(std::string_view(name)).run();
  return connection_.last_row();
}

std::optional<MessageRecord> Records::find(std::int64_t seq) {
  return record_.bind(seq).only([&] { return read_record(record_, seq); });
}

std::optional<MessageRecord> Records::find(std::int64_t queue, const std::string& id) {
  const auto seq = by_id_.bind(std::string_view(id), queue).only();
  return seq ? find(*seq) : std::nullopt;
}

std::optional<MessageRecord> Records::held(std::int64_t half, const Receipt& receipt) {
  auto found = find(receipt.locator);
  const bool same = found && found->id == receipt.id && found->half() == half &&
                    (found->state.version == receipt.version || !SLUICE_GUARD(sqlite_version_fence));
  if (!same) {
    found.reset();
  }
  return found;
}

bool Records::remove_leased(std::int64_t half, const Receipt& receipt) {
  std::int64_t group = 0;
  if (const Kept kept = groups_.kept(half); kept == Kept::group || kept == Kept::queue) {
    group = group_.bind(receipt.locator).only([&] { return groups_.group_of(half, group_.bytes(0)); }).value_or(0);
  }
  if (remove_leased_.bind(receipt.locator, std::string_view(receipt.id), receipt.version, half).run() != 1) {
    return false;
  }
  tally_.add(half, -1);
  if (group != 0) {
    groups_.gone(half, group, receipt.locator);
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
  const auto delete_run = [&] {
    if (first <= last) {
      delivery_delete_run_.bind(first, last).run();
    }
  };
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const Completion& completion = completions[i];
    const std::int64_t seq = completion.receipt.locator;
    results[i].status = SettleStatus::applied;
    if (completion.action == CompletionAction::remove && remove_leased(half, completion.receipt)) {
      if (seq != last + 1) {
        delete_run();
        first = seq;
      }
      last = seq;
    } else if (const auto before = held(half, completion.receipt)) {
      change(*before, core::end(completion, before->state, now), now);
    } else {
      results[i].status = SettleStatus::lost;
    }
  }
  delete_run();
}

SettleStatus Records::settle(std::int64_t half, const Completion& completion, WallTime now) {
  SettleResult result;
  settle(half, {&completion, 1}, {&result, 1}, now);
  return result.status;
}

bool Records::bring_back(std::int64_t half, WallTime now) {
  groups_.at(now);
  const std::vector<std::int64_t> due = ready_.due(half, now);
  for (const std::int64_t seq : due) {
    const auto before = find(seq);
    brought_back_.bind(seq).run();
    if (before) {
      MessageRecord after = *before;
      after.state.hidden_until.reset();
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
  all.bind(half).each([&] { seqs.push_back(all.integer(0)); });
  groups_.begin_order(half, kept);
  for (const std::int64_t seq : seqs) {
    if (const auto record = find(seq)) {
      groups_.at(record->state.sent_at);
      stand(nullptr, &*record);
    }
  }
  groups_.end_order(half);
}

void Records::stand(const MessageRecord* before, const MessageRecord* after) {
  const std::int64_t from = before == nullptr ? 0 : groups_.group_of(*before);
  const std::int64_t to = after == nullptr ? 0 : groups_.group_of(*after);
  if (before != nullptr && from == 0 && !before->state.hidden_until) {
    ready_.take(groups_.range_of(*before), before->place());
  }
  if (after != nullptr && to == 0 && !after->state.hidden_until) {
    ready_.put(groups_.range_of(*after), after->place());
  }
  if (from != 0 || to != 0) {
    groups_.change(from == 0 ? nullptr : before, to == 0 ? nullptr : after);
  }
  if (before != nullptr && groups_.tracks(before->half()) &&
      core::lets_group_go(before->state, after == nullptr ? nullptr : &after->state)) {
    groups_.let_go(before->seq);
  }
}

std::optional<Receipt> Records::extend(std::int64_t half, const Receipt& receipt, const Lease& lease) {
  const auto before = held(half, receipt);
  if (!before) {
    return std::nullopt;
  }
  change(*before, core::extension(lease.until), lease.now);
  return Receipt{.id = receipt.id, .version = receipt.version + 1, .locator = receipt.locator};
}

void Records::write(const MessageRecord& record, WallTime updated_at) {
  const core::MessageState& state = record.state;
  const std::string failure = state.failure.empty() ? std::string() : encode_failure(state.failure);
  delivery_write_
      .bind(record.seq, record.half(), stored(state.hidden_until), std::int64_t{state.received_at ? 1 : 0},
            state.version, std::int64_t{state.receives}, stored(state.sent_at), stored(state.received_at),
            stored(updated_at), unless_empty(failure), std::int64_t{state.marks}, unless_empty(state.checkpoint))
      .run();
}

void Records::change(const MessageRecord& before, const core::StateChange& change, WallTime now) {
  groups_.at(now);
  if (change.removes) {
    remove(before);
    return;
  }
  if (change.holds_group) {
    groups_.hold(before);
  }
  if (change.created_at) {
    created_.bind(before.seq, stored(*change.created_at)).run();
  }
  MessageRecord after = before;
  core::apply(change, after.state);
  stand(&before, &after);
  if (after.place() != before.place() || after.half() != before.half()) {
    message_move_.bind(before.seq, after.half(), stored(after.state.sent_at)).run();
  }
  if (after.half() != before.half()) {
    tally_.add(before.half(), -1);
    tally_.add(after.half(), 1);
  }
  write(after, now);
}

void Records::edit(const MessageRecord& before, const Message& content, WallTime now) {
  const std::string attributes = encode_attributes(content.attributes);
  content_
      .bind(before.seq, unless(kTextPlain, content.content_type), unless({}, content.group), unless_empty(attributes),
            Blob{content.body}, stored(content.priority))
      .run();
  change(before, core::edit(content), now);
}

void Records::remove(const MessageRecord& record) {
  stand(&record, nullptr);
  message_delete_.bind(record.seq).run();
  delivery_delete_.bind(record.seq).run();
  tally_.add(record.half(), -1);
}

PutStatus Records::put(std::int64_t queue, const StoredMessage& record, PutMode mode) {
  const Message& message = record.message;
  if (const auto taken = find(queue, message.id)) {
    if (mode == PutMode::insert) {
      return PutStatus::exists;
    }
    remove(*taken);
  }
  const MessageRecord made{
      .seq = tally_.next_seq(), .queue = queue, .id = message.id, .state = core::MessageState::of(record)};
  const std::string attributes = encode_attributes(message.attributes);
  message_put_
      .bind(made.seq, made.half(), stored(message.sent_at), stored(record.created_at), std::string_view(message.id),
            unless(kTextPlain, message.content_type), unless({}, message.group), unless_empty(attributes),
            Blob{message.body}, unless_empty(record.native), stored(message.priority))
      .run();
  groups_.at(record.updated_at);
  stand(nullptr, &made);
  write(made, record.updated_at);
  tally_.add(made.half(), 1);
  return PutStatus::written;
}

}  // namespace sluice::queue::sqlite
