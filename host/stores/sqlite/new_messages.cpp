#include "host/stores/sqlite/new_messages.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "host/queue/send_keys.hpp"
#include "host/queue/visibility.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

NewMessages::NewMessages(Connection& connection, Tally& tally, Deliveries& deliveries, IdLookup& ids, Lanes& lanes)
    : tally_(tally),
      deliveries_(deliveries),
      ids_(ids),
      marks_(connection, deliveries),
      lanes_(lanes),
      rows_(connection),
      // Without `native`, which then costs nothing; nor does the priority where all have the normal one.
      insert_(connection,
              "INSERT OR FAIL INTO messages (seq, half, sent_at, created_at, id, content_type, message_group, "
              "attributes, body) SELECT seq, ?1, sent_at, ?2, id, content_type, message_group, attributes, body "
              "FROM sluice_sending"),
      insert_prioritised_(connection,
                          "INSERT OR FAIL INTO messages (seq, half, sent_at, created_at, id, content_type, "
                          "message_group, attributes, body, priority) SELECT seq, ?1, sent_at, ?2, id, content_type, "
                          "message_group, attributes, body, priority FROM sluice_sending"),
      insert_ready_(connection,
                    "INSERT OR IGNORE INTO ready SELECT place_half, sent_at, seq FROM sluice_sending WHERE place_half"),
      insert_line_(
          connection,
          "INSERT OR FAIL INTO chains SELECT seq, ?1, sent_at, 0, before, next FROM sluice_sending WHERE in_line") {}

void NewMessages::Rows::column(std::size_t row, int column, ColumnValue value) const {
  const Row& at = list[row];
  const NewMessage& message = *at.arrival.message;
  switch (column) {
    case 0:
      return value.set(at.seq);
    case 1:
      return value.set(stored(at.sent_at));
    case 2:
      return value.set(at.place_half);
    case 3:
      return value.set(std::string_view(at.arrival.id()));
    case 4:
      return value.set(unless(kTextPlain, message.content_type));
    case 5:
      return value.set(unless({}, message.group));
    case 6:
      if (!message.attributes.empty()) {
        value.set_copy(Blob{encode_attributes(message.attributes)});
      }
      return;
    case 7:
      return value.set(Blob{message.body});
    case 8:
      return value.set(stored(message.priority));
    case 9:
      return value.set(std::int64_t{at.lane != 0 && !at.newcomer.head ? 1 : 0});
    case 10:
      return value.set(at.newcomer.before);
    default:
      return value.set(at.newcomer.next);
  }
}

void NewMessages::insert(std::int64_t queue, std::span<const Arrival> arrivals, WallTime now) {
  const auto is_keyed = [](const Arrival& arrival) { return has_send_keys(*arrival.message); };
  if (std::any_of(arrivals.begin(), arrivals.end(), is_keyed)) {
    marks_.begin(now);
  }
  // In their order, which is that of the queue.
  for (std::size_t from = 0; from < arrivals.size();) {
    const auto keyed = std::find_if(arrivals.begin() + static_cast<std::ptrdiff_t>(from), arrivals.end(), is_keyed);
    const auto end = static_cast<std::size_t>(keyed - arrivals.begin());
    if (end > from) {
      insert_plain(queue, arrivals.subspan(from, end - from), now);
    }
    if (end < arrivals.size()) {
      insert_keyed(queue, arrivals[end], now);
    }
    from = end + 1;
  }
}

void NewMessages::insert_keyed(std::int64_t queue, const Arrival& arrival, WallTime now) {
  SendResult& result = *arrival.result;
  if (result.status == SendStatus::failed) {
    return;
  }
  if (auto first = marks_.first_of(queue, *arrival.message)) {
    result.status = SendStatus::deduplicated;
    result.id = std::move(*first);
    return;
  }
  insert_plain(queue, std::span(&arrival, 1), now);
  if (result.status == SendStatus::sent) {
    marks_.note(queue, *arrival.message, arrival.id(), (entries_.empty() ? entries_with_time_ : entries_).front().seq);
  }
}

void NewMessages::insert_plain(std::int64_t queue, std::span<const Arrival> arrivals, WallTime now) {
  gather(queue, arrivals, now);
  find_duplicates(queue);
  number();
  write(queue * 2, now);
  rows_.list.clear();
}

void NewMessages::gather(std::int64_t queue, std::span<const Arrival> arrivals, WallTime now) {
  rows_.list.clear();
  keys_.clear();
  for (const Arrival& arrival : arrivals) {
    if (arrival.result->status != SendStatus::failed) {
      arrival.result->status = SendStatus::sent;
      keys_.push_back({IdLookup::hash(queue, arrival.id()), rows_.list.size(), IdLookup::has_time(arrival.id())});
      rows_.list.push_back({arrival, 0, later(now, arrival.message->delay)});
    }
  }
  // In the index of ids, neighbours by hash lie on one page.
  std::sort(keys_.begin(), keys_.end(),
            [](const Key& a, const Key& b) { return std::tie(a.hash, a.row) < std::tie(b.hash, b.row); });
}

void NewMessages::find_duplicates(std::int64_t queue) {
  const std::vector<std::int64_t> known = known_hashes();
  std::size_t first_of_hash = 0;
  for (std::size_t key = 0; key < keys_.size(); ++key) {
    if (keys_[key].hash != keys_[first_of_hash].hash) {
      first_of_hash = key;
    }
    const Arrival& arrival = rows_.list[keys_[key].row].arrival;
    if (arrival.made_id) {
      continue;
    }
    // Either the same id came before in this batch, whatever became of it, or it is stored.
    const bool may_be_stored = std::binary_search(known.begin(), known.end(), keys_[key].hash);
    if (came_before(key, first_of_hash) || (may_be_stored && ids_.find(queue, arrival.id()))) {
      arrival.result->status = SendStatus::duplicate_id;
    }
  }
}

std::vector<std::int64_t> NewMessages::known_hashes() {
  asked_.clear();
  for (const Key& key : keys_) {
    if (!rows_.list[key.row].arrival.made_id) {
      asked_.push_back(key.hash);
    }
  }
  return tally_.known_hashes(asked_);
}

bool NewMessages::came_before(std::size_t key, std::size_t first_of_hash) const {
  const std::string& id = rows_.list[keys_[key].row].arrival.id();
  for (std::size_t other = first_of_hash; other < key; ++other) {
    if (rows_.list[keys_[other].row].arrival.id() == id) {
      return true;
    }
  }
  return false;
}

void NewMessages::number() {
  for (Row& row : rows_.list) {
    if (row.arrival.result->status == SendStatus::sent) {
      row.seq = tally_.next_seq();
    }
  }
  entries_.clear();
  entries_with_time_.clear();
  for (const Key& key : keys_) {
    const Row& row = rows_.list[key.row];
    if (row.arrival.result->status == SendStatus::sent) {
      (key.has_time ? entries_with_time_ : entries_).push_back({key.hash, row.seq});
    }
  }
  rows_.list.erase(std::remove_if(rows_.list.begin(), rows_.list.end(),
                                  [](const Row& row) { return row.arrival.result->status != SendStatus::sent; }),
                   rows_.list.end());
}

void NewMessages::find_places(std::int64_t half) {
  lines_ = false;
  priorities_ = false;
  const bool kept = lanes_.kept(half) != Kept::none;
  for (Row& row : rows_.list) {
    const NewMessage& message = *row.arrival.message;
    if (message.priority != Priority::normal) {
      priorities_ = true;
      lanes_.prioritise(half);
    }
    if (message.delay > Duration::zero()) {
      continue;
    }
    row.lane = kept ? lanes_.lane_of(half, group_hash(message.group)) : 0;
    lines_ = lines_ || row.lane != 0;
    row.place_half = row.lane != 0 ? 0 : kept ? half : class_half(half, message.priority);
  }
  if (lines_) {
    find_line(half);
  }
}

void NewMessages::find_line(std::int64_t half) {
  std::vector<std::pair<std::int64_t, Lanes::Newcomer*>> by_lane;
  std::vector<std::int64_t> lanes;
  for (Row& row : rows_.list) {
    if (row.lane != 0) {
      row.newcomer.place = {stored(row.sent_at), row.seq};
      by_lane.emplace_back(row.lane, &row.newcomer);
      lanes.push_back(row.lane);
    }
  }
  std::stable_sort(by_lane.begin(), by_lane.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  lanes_.gather_growth(half, lanes);
  std::vector<Lanes::Newcomer*> newcomers;
  for (auto first = by_lane.begin(); first != by_lane.end();) {
    const std::int64_t lane = first->first;
    newcomers.clear();
    for (; first != by_lane.end() && first->first == lane; ++first) {
      newcomers.push_back(first->second);
    }
    lanes_.grow(half, lane, newcomers);
  }
  lanes_.flush();
  for (Row& row : rows_.list) {
    row.place_half = row.newcomer.head ? half : row.place_half;
    row.sent_at = row.lane != 0 ? loaded(row.newcomer.place.first) : row.sent_at;
  }
}

void NewMessages::write(std::int64_t half, WallTime now) {
  if (rows_.list.empty()) {
    return;
  }
  find_places(half);
  (priorities_ ? insert_prioritised_ : insert_).bind(half, stored(now)).run();
  insert_ready_.run();
  if (lines_) {
    insert_line_.bind(half).run();
  }
  for (const Row& row : rows_.list) {
    if (row.arrival.message->delay > Duration::zero()) {
      deliveries_.place_delayed(row.seq, half, row.sent_at, now);
    }
  }
  tally_.index_ids({entries_, entries_with_time_});
  tally_.add(half, static_cast<std::int64_t>(rows_.list.size()));
}

}  // namespace sluice::queue::sqlite
