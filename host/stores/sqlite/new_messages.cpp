#include "host/stores/sqlite/new_messages.hpp"

#include <algorithm>
#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

NewMessages::NewMessages(Connection& connection, const Parts& parts)
    : parts_(parts),
      marks_(connection, parts.deliveries),
      insert_(connection,
              "INSERT OR IGNORE INTO sluice_messages (seq, half, sent_at, created_at, id, content_type, message_group, "
              "attributes, body, priority) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"),
      insert_ready_(connection,
                    "INSERT OR FAIL INTO sluice_ready SELECT half, sent_at, seq FROM sluice_messages "
                    "WHERE seq BETWEEN ?1 AND ?2"),
      retime_(connection, "UPDATE sluice_messages SET sent_at = ?2 WHERE seq = ?1") {}

void NewMessages::insert(std::int64_t queue, std::span<const Arrival> arrivals, WallTime now) {
  const auto is_keyed = [](const Arrival& arrival) { return has_send_keys(*arrival.message); };
  if (std::any_of(arrivals.begin(), arrivals.end(), is_keyed)) {
    marks_.begin(now);
  }
  // In their order, which is that of the queue.
  for (const Arrival& arrival : arrivals) {
    if (arrival.result->status != SendStatus::failed) {
      insert(queue, arrival, now);
    }
  }
  place_plain();
}

void NewMessages::insert(std::int64_t queue, const Arrival& arrival, WallTime now) {
  const NewMessage& message = *arrival.message;
  SendResult& result = *arrival.result;
  const bool keyed = has_send_keys(message);
  if (auto first = keyed ? marks_.first_of(queue, message) : std::nullopt) {
    result.status = SendStatus::deduplicated;
    result.id = std::move(*first);
    return;
  }
  const std::int64_t half = queue * 2;
  const std::int64_t seq = parts_.tally.next_seq();
  const std::string attributes = encode_attributes(message.attributes);
  // Where the queue has a message of that id, the index of ids refuses it.
  insert_.bind(seq, half, stored(later(now, message.delay)), stored(now), std::string_view(arrival.id()),
               unless(kTextPlain, message.content_type), unless({}, message.group), unless_empty(attributes),
               Blob{message.body}, stored(message.priority));
  if (insert_.run() == 0) {
    result.status = SendStatus::duplicate_id;
    return;
  }
  result.status = SendStatus::sent;
  parts_.tally.add(half, 1);
  place(half, seq, message, now);
  if (keyed) {
    marks_.note(queue, message, arrival.id(), seq);
  }
}

void NewMessages::place(std::int64_t half, std::int64_t seq, const NewMessage& message, WallTime now) {
  const bool plain = message.priority == Priority::normal && message.delay <= Duration::zero();
  if (plain && parts_.groups.kept(half) == Kept::none) {
    plain_from_ = plain_to_ == 0 ? seq : plain_from_;
    plain_to_ = seq;
    return;
  }
  place_plain();
  if (message.priority != Priority::normal) {
    parts_.groups.prioritise(half);
  }
  if (message.delay > Duration::zero()) {
    parts_.deliveries.place_delayed(seq, half, later(now, message.delay), now);
    return;
  }
  const std::int64_t sent_at = stored(now);
  if (parts_.groups.kept(half) == Kept::none) {
    parts_.ready_index.put(class_half(half, message.priority), {sent_at, seq}, false);
  } else if (const std::int64_t group = parts_.groups.group_of(half, group_hash(message.group)); group == 0) {
    parts_.ready_index.put(half, {sent_at, seq}, false);
  } else if (const std::int64_t placed = parts_.groups.arrive(half, group, {sent_at, seq}); placed != sent_at) {
    retime_.bind(seq, placed).run();
  }
}

void NewMessages::place_plain() {
  if (plain_to_ != 0) {
    insert_ready_.bind(plain_from_, plain_to_).run();
    plain_to_ = 0;
  }
}

}  // namespace sluice::queue::sqlite
