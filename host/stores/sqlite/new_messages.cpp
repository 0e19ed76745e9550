#include "host/stores/sqlite/new_messages.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "host/stores/core/keys.hpp"

namespace sluice::queue::sqlite {

void SendMarks::begin(WallTime now) {
  const auto read = clock_read_.only([this] { return std::pair(clock_read_.integer(0), clock_read_.integer(1)); });
  auto [last, ahead] = read.value_or(std::pair<std::int64_t, std::int64_t>());
  const std::int64_t machine = stored(now);
  ahead = std::max(ahead, last - machine);
  now_ = machine + ahead;
  clock_write_.bind(now_, ahead).run();
}

std::optional<std::string> SendMarks::first_of(std::int64_t queue, const NewMessage& message) {
  std::optional<std::string> first;
  if (!message.dedup_id.empty()) {
    first = dedup_find_.bind(queue, Blob{message.dedup_id}, now_).only([this] {
      return std::string(dedup_find_.bytes(0));
    });
  }
  if (!first && !message.unique_key.empty()) {
    first = holder_of(queue, message.unique_key);
  }
  return first;
}

std::optional<std::string> SendMarks::holder_of(std::int64_t queue, const std::string& key) {
  const auto mark = unique_find_.bind(queue, Blob{key}).only([this] {
    return std::pair(unique_find_.integer(0), unique_find_.integer(1) != 0 ? UniqueUntil::done : UniqueUntil::claimed);
  });
  const auto holder = mark ? records_.find(mark->first) : std::nullopt;
  return holder && core::holds_unique_key(holder->state, mark->second) ? std::optional(holder->id) : std::nullopt;
}

void SendMarks::note(std::int64_t queue, const NewMessage& message, const std::string& id, std::int64_t seq) {
  if (!message.dedup_id.empty()) {
    dedup_write_.bind(queue, Blob{message.dedup_id}, now_ + message.dedup_window.count(), std::string_view(id)).run();
  }
  if (!message.unique_key.empty()) {
    const std::int64_t until_done = message.unique_until == UniqueUntil::done ? 1 : 0;
    unique_write_.bind(queue, Blob{message.unique_key}, until_done, seq).run();
  }
  sweep();
}

void SendMarks::sweep() {
  dedup_sweep_.bind(now_).run();
  const std::int64_t end = unique_end_.bind(swept_to_).only().value_or(0);
  if (end > swept_to_) {
    unique_sweep_.bind(swept_to_).run();
  }
  swept_to_ = end > swept_to_ ? end : 0;  // round again
}

void NewMessages::insert(std::int64_t queue, std::span<const NewMessage> messages, std::span<SendResult> results,
                         WallTime now) {
  if (std::any_of(messages.begin(), messages.end(), has_send_keys)) {
    marks_.begin(now);
  }
  // In their order, which is that of the queue.
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].status != SendStatus::failed) {
      insert(queue, messages[i], results[i], now);
    }
  }
  place_plain();
}

void NewMessages::insert(std::int64_t queue, const NewMessage& message, SendResult& result, WallTime now) {
  const bool keyed = has_send_keys(message);
  if (auto first = keyed ? marks_.first_of(queue, message) : std::nullopt) {
    result.status = SendStatus::deduplicated;
    result.id = std::move(*first);
    return;
  }
  const std::int64_t half = queue * 2;
  const std::int64_t seq = records_.tally().next_seq();
  const std::string attributes = encode_attributes(message.attributes);
  // Where the queue has a message of that id, the index of ids refuses it.
  insert_.bind(seq, half, stored(later(now, message.delay)), stored(now), std::string_view(message.id),
               unless(kTextPlain, message.content_type), unless({}, message.group), unless_empty(attributes),
               Blob{message.body}, stored(message.priority));
  if (insert_.run() == 0) {
    result.status = SendStatus::duplicate_id;
    return;
  }
  result.status = SendStatus::sent;
  records_.tally().add(half, 1);
  place(half, seq, message, now);
  if (keyed) {
    marks_.note(queue, message, message.id, seq);
  }
}

void NewMessages::place(std::int64_t half, std::int64_t seq, const NewMessage& message, WallTime now) {
  GroupOrder& groups = records_.groups();
  const bool ordered = groups.kept(half) != Kept::none;
  if (!ordered && message.priority == Priority::normal && message.delay <= Duration::zero()) {
    plain_from_ = plain_to_ == 0 ? seq : plain_from_;
    plain_to_ = seq;
    return;
  }
  place_plain();
  const std::int64_t sent_at = stored(now);
  if (message.delay > Duration::zero()) {
    records_.write({seq, half / 2, message.id, core::sent(message, now)}, now);
  } else if (const std::int64_t group = groups.group_of(half, message.group); group != 0) {
    if (const std::int64_t placed = groups.arrive(half, group, {sent_at, seq}); placed != sent_at) {
      retime_.bind(seq, placed).run();
    }
  } else {
    records_.ready().put(ordered ? half : ready_half(half, message.priority), {sent_at, seq});
  }
}

void NewMessages::place_plain() {
  if (plain_to_ != 0) {
    insert_ready_.bind(plain_from_, plain_to_).run();
    plain_to_ = 0;
  }
}

}  // namespace sluice::queue::sqlite
