#include "host/stores/leased/leased_operator.hpp"

#include <algorithm>
#include <utility>

#include "host/queue/stored_message.hpp"
#include "host/stores/leased/leased_editor.hpp"
#include "host/stores/leased/leased_inserter.hpp"

namespace sluice::queue::leased {

std::vector<ChangeResult> LeasedOperator::change(std::span<const Change> changes, Deadline deadline) {
  if (const auto sure = parts_.store.clock.be_sure(queue_.place, table::kTimeTolerance, deadline); !sure) {
    return {changes.size(), ChangeResult{ChangeStatus::failed, 0, sure.error()}};
  }
  auto results = LeasedChanger(parts_, queue_, fence_of_).change(changes, deadline);
  doorbell_.ring_changed(queue_.place.queue, changes, results);
  return results;
}

Result<StoredMessage> LeasedOperator::edit(const std::string& id, std::int64_t version,
                                           std::span<const ContentEdit> edits, Deadline deadline) {
  return LeasedEditor(parts_, queue_).edit(id, version, edits, deadline);
}

// A message that is carried here from elsewhere comes in hidden, and will be shown by a write. The owners have read
// past its own time, and would come upon it by a sweep only: it goes where they look next. One of a group keeps its
// time, by which it goes before later ones of the group.
Place LeasedOperator::place_of(const StoredMessage& record, std::uint32_t shards) const {
  const std::string& queue = queue_.place.queue;
  const Message& message = record.message;
  const WallTime now = parts_.store.clock.wall_now();
  if (is_moving(record) && record.half == Half::standard && message.group.empty() && message.sent_at < now) {
    return {partition_of(queue, record.half, shard_of({}, shards, parts_.random)),
            queue_.keys.next(message.priority, now, parts_.random)};
  }
  // A message whose id says where it may lie goes there, as it needs no alias then; any other one by its times. None
  // goes to the front, which is for what was moved there.
  const auto made = record.half == Half::standard ? place_of_made_id(message.id) : std::nullopt;
  if (made && made->second < shards && due_of(made->first) == whole_milliseconds(message.sent_at) &&
      priority_of(made->first) == message.priority && message.group.empty()) {
    return {partition_of(queue, Half::standard, made->second), made->first};
  }
  return {partition_of(queue, record.half, shard_of(message.group, shards, parts_.random)),
          sort_key_of(message.priority, std::max(message.sent_at, kFrontEnd), parts_.random)};
}

std::vector<PutResult> LeasedOperator::put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) {
  std::vector<PutResult> results(records.size());
  const auto shards = records.empty() ? Result<Shards>(Shards{}) : queue_.shards.settled(deadline);
  std::vector<Inserted> fates(records.size());
  std::vector<LeasedInserter::Draft> drafts;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const StoredMessage& record = records[i];
    if (!is_storable_id(queue_.place.queue, record.message.id)) {
      results[i] = {PutStatus::failed, {ErrorCode::invalid, unstorable_id(queue_.place.queue)}};
      continue;
    }
    auto item = shards ? encode_stored(record, place_of(record, shards->count)) : shards.error();
    if (!item) {
      results[i] = {PutStatus::failed, item.error()};
      continue;
    }
    drafts.push_back(
        {.id = record.message.id, .item = std::move(*item), .replace = mode == PutMode::replace, .result = &fates[i]});
  }
  if (!drafts.empty()) {
    LeasedInserter(parts_, queue_.place).insert(std::move(drafts), deadline);
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (results[i].status == PutStatus::failed || fates[i].fate == Inserted::Fate::written) {
      continue;
    }
    const bool exists = fates[i].fate == Inserted::Fate::exists;
    results[i] = exists ? PutResult{PutStatus::exists, {}} : PutResult{PutStatus::failed, std::move(fates[i].error)};
  }
  doorbell_.ring_put(queue_.place.queue, results);
  return results;
}

}  // namespace sluice::queue::leased
