#include "host/stores/leased/leased_operator.hpp"

#include <algorithm>
#include <iterator>

#include "host/queue/content_edit.hpp"
#include "host/queue/message.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/record_operator.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::leased {
namespace {

// Of each shard, where nobody tells what lies there and the count need not be exact: a megabyte.
constexpr std::size_t kCountedPages = 1;
// Of one round over the shards.
constexpr std::size_t kListRound = 1'000;
constexpr std::size_t kFencedTogether = dynamo::kMostActions / 2;  // with as many fences
// DynamoDB's limit is 4 MB for all items of a transaction, those that are only changed or removed included.
constexpr std::size_t kMostBytes = 3'000'000;

/// The first ids in claiming order, of records that come in none.
class FirstIds {
 public:
  explicit FirstIds(std::size_t most) : most_(most) {}

  void add(RecordPosition position, const std::string& id) {
    if (most_ == 0) {
      return;
    }
    ids_.emplace(std::move(position), id);
    if (ids_.size() > most_) {
      ids_.erase(std::prev(ids_.end()));
    }
  }
  std::vector<std::string> finish() && {
    std::vector<std::string> ids;
    for (auto& [position, id] : ids_) {
      ids.push_back(std::move(id));
    }
    return ids;
  }

 private:
  std::size_t most_;
  std::multimap<RecordPosition, std::string> ids_;
};

StoredMessage listed(const dynamo::Item& item, const ListRequest& request) {
  StoredMessage record = request.content ? decode_record(item, request.half) : decode_standing(item, request.half);
  if (request.content && request.native) {
    record.native = native_of(item);
  }
  return record;
}

void take_over(dynamo::Item& into, const dynamo::Item& from, std::string_view name) {
  if (const auto stale = into.find(name); stale != into.end()) {
    into.erase(stale);
  }
  if (const auto fresh = from.find(name); fresh != from.end()) {
    into.emplace(fresh->first, fresh->second);
  }
}

}  // namespace

LeasedOperator::LeasedOperator(LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell, FenceOf fence_of)
    : RecordOperator(parts.store, make_leased_layout(parts.store, queue.place, {}), doorbell),
      queue_(queue),
      random_(parts.random),
      reader_(parts, queue),
      fence_of_(std::move(fence_of)) {}

// Looks.

Result<ListPage> LeasedOperator::list(const ListRequest& request, Deadline deadline, Scope* scope) const {
  HalfReader::Look look{.half = request.half, .newest_first = request.newest_first, .consistent = request.consistent};
  look.only = scope == nullptr ? nullptr : &scope->shards;
  if (!request.content) {
    table::project(look, {attribute::kPartition, attribute::kSort, attribute::kOwnId, attribute::kPriority,
                          attribute::kSentAt, attribute::kCreatedAt, attribute::kUpdated, attribute::kVersion,
                          attribute::kReceiveCount, attribute::kNotBefore, attribute::kReceived, attribute::kSuspect,
                          attribute::kFailure, attribute::kHold});
  }
  if (!request.cursor.empty()) {
    SLUICE_TRY(after, decode_cursor(request.cursor, request.newest_first));
    look.after = std::move(*after);
  }
  ListPage result;
  std::size_t bytes = 0;
  for (bool more = true; more && result.messages.size() < request.limit && bytes < table::kListBytes;) {
    look.limit = std::min(request.limit - result.messages.size(), kListRound);
    SLUICE_TRY(records, reader_.in_order(look, deadline));
    for (const dynamo::Item& item : records->items) {
      result.messages.push_back(listed(item, request));
      bytes += result.messages.back().message.body.size() + result.messages.back().native.size();
      look.after = RecordPosition::of(Place::of(item));
      if (scope != nullptr) {
        scope->found.insert_or_assign(result.messages.back().message.id, look.after->shard);
      }
    }
    more = records->more;
    result.next = more ? encode_cursor(*look.after, request.newest_first) : std::string();
  }
  return result;
}

Result<std::optional<QueueStats>> LeasedOperator::announced(Half half, Deadline deadline) const {
  const auto heartbeats = read_partition(parts_.client, place().table, std::string(kHosts), false, deadline);
  if (!heartbeats) {
    return table::store_error(place(), heartbeats.error());
  }
  OwnWords own;
  for (const Half one : {Half::standard, Half::dlq}) {
    if (auto word = queue_.own_word ? queue_.own_word(one) : std::nullopt) {
      own.emplace(one, *std::move(word));
    }
  }
  auto said = announced_stats(*heartbeats, {place().queue, half}, parts_.clock.wall_now(), own);
  if (!said) {
    return std::optional<QueueStats>();
  }
  if (said->in_use == 0) {
    SLUICE_TRY(shards, queue_.shards.get(deadline));
    said->in_use = shards->count;
  }
  said->stats.at_least = said->stats.at_least || said->held < said->in_use;
  return std::optional(said->stats);
}

Result<QueueStats> LeasedOperator::stats(const StatsRequest& request, Deadline deadline) {
  const bool exact = request.consistent || request.exact;
  if (!exact) {
    SLUICE_TRY(said, announced(request.half, deadline));
    if (*said) {
      return **said;
    }
    if (request.cheap) {
      return Error(ErrorCode::unavailable, "no host that works on queue " + place().queue +
                                               " tells how much lies in it; it will within a lease of its start");
    }
  }
  auto counted = count({.half = request.half, .ids = 0, .exact = exact}, request.consistent, deadline);
  return counted ? Result<QueueStats>(counted->counts) : counted.error();
}

Result<QueueOverview> LeasedOperator::overview(const OverviewRequest& request, Deadline deadline) {
  if (!request.exact) {
    SLUICE_TRY(said, announced(request.half, deadline));
    if (*said) {
      return QueueOverview{.counts = **said, .first_ids = {}, .first_in_flight_ids = {}, .errors = {}};
    }
  }
  return count(request, false, deadline);
}

// The time by which the records are judged is taken after the first answer, which may have put it right.
Result<QueueOverview> LeasedOperator::count(const OverviewRequest& request, bool consistent, Deadline deadline) const {
  HalfReader::Look look{.half = request.half, .consistent = consistent};
  table::project(look, {attribute::kPartition, attribute::kSort, attribute::kOwnId, attribute::kSentAt,
                        attribute::kReceiveCount, attribute::kNotBefore, attribute::kReceived});
  if (request.errors > 0) {
    table::project(look, {attribute::kFailure});
  }
  OverviewRequest wanted = request;
  wanted.ids = 0;  // they come in no order
  std::optional<table::OverviewCount> sum;
  WallTime now{};
  FirstIds first(request.ids);
  FirstIds first_hidden(request.ids);
  const auto add = [&](const dynamo::Item& item) {
    if (!sum) {
      now = parts_.clock.wall_now();
      sum.emplace(wanted, now);
    }
    const StoredMessage record = decode_standing(item, request.half);
    sum->add(record);
    first.add(RecordPosition::of(Place::of(item)), record.message.id);
    if (record.state(now) != MessageState::ready) {
      first_hidden.add(RecordPosition::of(Place::of(item)), record.message.id);
    }
  };
  SLUICE_TRY(whole, reader_.all(look, deadline, add, request.exact ? 0 : kCountedPages));
  QueueOverview overview = sum ? std::move(*sum).finish() : QueueOverview{};
  overview.first_ids = std::move(first).finish();
  overview.first_in_flight_ids = std::move(first_hidden).finish();
  overview.counts.at_least = !*whole;
  return overview;
}

// Changes.

/// A change that holds only as long as its shard is in the hands of whoever makes it.
struct LeasedOperator::OfShard {
  Task* task;
  OwnerFence fence;
};

void LeasedOperator::write(const std::vector<Task*>& tasks, Deadline deadline) const {
  std::vector<Task*> staying;
  std::vector<OfShard> fenced;
  std::vector<Task*> moving;
  for (Task* task : tasks) {
    task->nonce = parts_.nonces.anonymous();
    if (auto fence = fence_of_ ? fence_of_(task->change->id) : std::nullopt) {
      fenced.push_back({task, std::move(*fence)});
    } else {
      const bool stays = task->removes() || task->change->action == ChangeAction::set_visibility;
      (stays ? staying : moving).push_back(task);
    }
  }
  const WallTime now = parts_.clock.wall_now();
  write_fenced(fenced, now, deadline);
  write_in_place(staying, now, deadline);
  move(moving, now, deadline);
}

table::RecordWrite LeasedOperator::in_place(const Task& task, WallTime now) const {
  const Fenced fenced{Place::of(task.item), task.before};
  return task.removes()
             ? remove_message(place().table, fenced)
             : update_message(place().table, fenced, task.nonce, now, attributes_of(task.wanted(now), false));
}

void LeasedOperator::write_in_place(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const {
  if (tasks.empty()) {
    return;
  }
  std::vector<table::RecordWrite> writes;
  std::transform(tasks.begin(), tasks.end(), std::back_inserter(writes),
                 [&](const Task* task) { return in_place(*task, now); });
  const auto outcomes = parts_.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    note(*tasks[i], outcomes[i], true);
  }
  clean_up(tasks, deadline);
}

// What leads to messages that are gone. A failure leaves no more than an item that nobody minds: a stale alias gives
// way to the next message of that id.
void LeasedOperator::clean_up(const std::vector<Task*>& tasks, Deadline deadline) const {
  std::vector<table::RecordWrite> writes;
  for (const Task* task : tasks) {
    if (task->open || !task->removes() || task->result->status != ChangeStatus::applied) {
      continue;
    }
    const Candidate record = Candidate::of(task->item);
    if (!record.own_id.empty()) {
      writes.push_back(remove_alias(place().table, place().queue, record.own_id, record.place));
    }
    if (const auto partition = parse_partition(record.place.partition); record.hold && partition) {
      writes.push_back(remove_hold(place().table, place().queue, partition->shard, record.group, record.id));
    }
  }
  if (!writes.empty()) {
    parts_.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  }
}

// In transactions that look at who owns the shards. Whoever was frozen before such a write, for however long, writes
// nothing then.
void LeasedOperator::write_fenced(const std::vector<OfShard>& tasks, WallTime now, Deadline deadline) const {
  for (auto first = tasks.begin(); first != tasks.end();) {
    auto last = first;
    for (std::size_t bytes = 0; last != tasks.end() && last - first < std::ptrdiff_t{kFencedTogether}; ++last) {
      bytes += table::item_bytes(last->task->item);
      if (last != first && bytes > kMostBytes) {
        break;
      }
    }
    dynamo::TransactWriteRequest request{.actions = {}, .token = table::transaction_token(place(), random_)};
    std::vector<OwnerFence> fences;
    for (auto one = first; one != last; ++one) {
      if (std::find(fences.begin(), fences.end(), one->fence) == fences.end()) {
        fences.push_back(one->fence);
        request.actions.push_back(owner_check(place().table, one->fence));
      }
    }
    for (auto one = first; one != last; ++one) {
      request.actions.push_back(table::action_of(in_place(*one->task, now)));
    }
    const auto result = parts_.client.transact_each(std::span(&request, 1), deadline).front();
    for (; first != last; ++first) {
      const auto fence =
          static_cast<std::size_t>(std::find(fences.begin(), fences.end(), first->fence) - fences.begin());
      const bool gone = result.error && fence < result.reasons.size() && !result.reasons[fence].code.empty() &&
                        result.reasons[fence].code != "None";
      if (gone) {
        first->task->end(ChangeStatus::conflict, 0, changed_since(place().queue, first->task->change->id));
      } else {
        note(*first->task, result);
      }
    }
  }
}

// Of dead letters that are to be redriven and hold their groups back: where they lay before, and go back to.
std::map<const LeasedOperator::Task*, Place> LeasedOperator::old_places(const std::vector<Task*>& tasks,
                                                                        Deadline deadline) const {
  std::map<Place, Task*> held;
  std::set<Place> places;
  for (Task* task : tasks) {
    const auto free = task->change->action == ChangeAction::redrive ? free_group(place(), task->item) : std::nullopt;
    if (free) {
      held.emplace(Place::of(free->item_or_key), task);
      places.insert(Place::of(free->item_or_key));
    }
  }
  std::map<const Task*, Place> old;
  if (places.empty()) {
    return old;
  }
  const auto holds = read_places(parts_.client, place(), places, deadline);
  for (const auto& [where, task] : held) {
    if (!holds) {
      task->end(ChangeStatus::failed, 0, table::store_error(place(), holds.error()));
      continue;
    }
    const auto hold = holds->find(where);
    const auto* sort = hold == holds->end() ? nullptr : dynamo::find<std::string>(hold->second, attribute::kTargetSort);
    const auto partition = parse_partition(Place::of(task->item).partition);
    if (sort != nullptr && partition && is_sort_key(*sort)) {
      old.emplace(task, Place{partition_of(place().queue, Half::standard, partition->shard), *sort});
    }
  }
  return old;
}

Place LeasedOperator::goal(const Task& task, std::uint32_t shards, WallTime now, std::int64_t number) const {
  const Candidate record = Candidate::of(task.item);
  const auto partition = parse_partition(record.place.partition).value_or(Partition{});
  // A shard beyond the number is to run empty.
  const std::uint32_t shard = partition.shard < shards ? partition.shard : shard_of(record.group, shards, random_);
  const auto in = [&](Half half) { return partition_of(place().queue, half, shard); };
  const auto key_at = [&](WallTime due) { return sort_key_of(record.priority, due, random_); };
  switch (task.change->action) {
    case ChangeAction::delay:
      return {in(partition.half), key_at(later(now, task.change->after))};
    case ChangeAction::move_to_front:
      return {in(partition.half), front_sort_key(now + std::chrono::milliseconds(number), random_)};
    case ChangeAction::dead_letter:
      return {in(Half::dlq), key_at(now)};
    default:
      return {in(Half::standard), key_at(now)};
  }
}

dynamo::Item LeasedOperator::moved(const Task& task, const Place& to, WallTime now) const {
  const ChangeAction action = task.change->action;
  WallTime sent_at = action == ChangeAction::delay ? due_of(to.sort) : whole_milliseconds(now);
  if (action == ChangeAction::move_to_front) {
    sent_at = std::min(sent_at, decode_standing(task.item, Half::standard).message.sent_at);
  }
  dynamo::Item item = moved_item(task.item, to, sent_at);
  const core::StateChange change = task.wanted(now, due_of(to.sort));
  change_item(item, change);
  if (change.half) {
    item.erase(std::string(attribute::kHold));
  }
  if (change.created_at) {
    item.erase(std::string(attribute::kCreatedAt));
  }
  touch(item, task.nonce, now);
  return item;
}

dynamo::TransactWriteRequest LeasedOperator::move_request(const dynamo::Item& read, const dynamo::Item& moved) const {
  dynamo::TransactWriteRequest request{.actions = {}, .token = table::transaction_token(place(), random_)};
  request.actions.push_back(remove_record(place(), read));
  request.actions.push_back(table::put_message(place().table, moved, kLoneNames));
  request.actions.push_back(put_alias_anyway(place(), id_of(moved), Place::of(moved)));
  const bool still_held = Candidate::of(moved).hold;
  if (auto freed = still_held ? std::nullopt : free_group(place(), read)) {
    request.actions.push_back(std::move(*freed));
  }
  return request;
}

void LeasedOperator::move(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const {
  if (tasks.empty()) {
    return;
  }
  const auto old = old_places(tasks, deadline);
  const auto shards = queue_.shards.get(deadline);
  std::vector<dynamo::TransactWriteRequest> requests;
  std::vector<Task*> moving;
  for (Task* task : tasks) {
    if (!task->open) {
      continue;
    }
    if (!shards) {
      task->end(ChangeStatus::failed, 0, shards.error());
      continue;
    }
    const auto before = old.find(task);
    const Place to = before != old.end() ? before->second
                                         : goal(*task, shards->count, now, static_cast<std::int64_t>(requests.size()));
    requests.push_back(move_request(task->item, moved(*task, to, now)));
    moving.push_back(task);
  }
  const auto results = parts_.client.transact_each(requests, deadline);
  for (std::size_t i = 0; i < moving.size(); ++i) {
    note(*moving[i], results[i]);
  }
}

// Edits.

// Where it lies afterwards: a group is in one shard, and a priority is a part of the key, but for what was moved to the
// front.
Result<Place> LeasedOperator::place_for(const dynamo::Item& before, const Message& was, const Message& is,
                                        Deadline deadline) const {
  Place at = Place::of(before);
  if (was.priority != is.priority && is_sort_key(at.sort) && due_of(at.sort) >= kFrontEnd) {
    at.sort.front() = static_cast<char>('0' + static_cast<int>(is.priority));
  }
  const auto partition = parse_partition(at.partition);
  if (was.group != is.group && !is.group.empty() && partition) {
    SLUICE_TRY(shards, queue_.shards.get(deadline));
    at.partition = partition_of(partition->queue, partition->half, shard_of(is.group, shards->count, random_));
  }
  return at;
}

Result<dynamo::Item> LeasedOperator::edited(const dynamo::Item& before, std::span<const ContentEdit> edits,
                                            Deadline deadline) const {
  const Message was = decode_record(before, half_of(before)).message;
  Message is = was;
  SLUICE_PASS_ON(apply_edits(is, edits));
  SLUICE_TRY(content, encode_content(table::content_of(is)));
  SLUICE_TRY(to, place_for(before, was, is, deadline));
  dynamo::Item after = *to == Place::of(before) ? before : moved_item(before, *to);
  if (was.body != is.body || was.content_type != is.content_type) {
    take_over(after, *content, attribute::kBody);
    take_over(after, *content, attribute::kContentType);
  }
  if (was.attributes != is.attributes) {
    take_over(after, *content, attribute::kAttributes);
  }
  if (was.group != is.group) {
    take_over(after, *content, attribute::kGroup);
    take_over(after, {}, attribute::kHold);  // it held the other one back
  }
  dynamo::Item priority;
  put_priority(priority, is.priority);
  take_over(after, priority, attribute::kPriority);
  return after;
}

dynamo::Result<dynamo::Item> LeasedOperator::put_edited(const dynamo::Item& before, const dynamo::Item& after,
                                                        Deadline deadline) const {
  if (Place::of(before) != Place::of(after)) {
    const auto request = move_request(before, after);
    const auto result = parts_.client.transact_each(std::span(&request, 1), deadline).front();
    return result.error ? dynamo::Result<dynamo::Item>(*result.error) : after;
  }
  auto written = RecordOperator::put_edited(before, after, deadline);
  const auto hold = Candidate::of(after).hold ? std::nullopt : free_group(place(), before);
  if (written && hold) {
    // Without it the group waits until an operator removes the message: it is not worth failing the edit.
    static_cast<void>(parts_.client.delete_item({.table = place().table,
                                                 .key = hold->item_or_key,
                                                 .condition = hold->condition,
                                                 .names = hold->names,
                                                 .values = hold->values},
                                                deadline));
  }
  return written;
}

// Copies.

// A message that is carried here from elsewhere comes in hidden, and will be shown by a write. The owners have read
// past its own time, and would come upon it by a sweep only: it goes where they look next. One of a group keeps its
// time, by which it goes before later ones of the group.
Place LeasedOperator::place_of(const StoredMessage& record, std::uint32_t shards) const {
  const std::string& queue = place().queue;
  const Message& message = record.message;
  const WallTime now = parts_.clock.wall_now();
  if (is_moving(record) && record.half == Half::standard && message.group.empty() && message.sent_at < now) {
    return {partition_of(queue, record.half, shard_of({}, shards, random_)),
            queue_.keys.next(message.priority, now, random_)};
  }
  // A message whose id says where it may lie goes there, as it needs no alias then; any other one by its times. None
  // goes to the front, which is for what was moved there.
  const auto made = record.half == Half::standard ? place_of_made_id(message.id) : std::nullopt;
  if (made && made->second < shards && due_of(made->first) == whole_milliseconds(message.sent_at) &&
      priority_of(made->first) == message.priority && message.group.empty()) {
    return {partition_of(queue, Half::standard, made->second), made->first};
  }
  return {partition_of(queue, record.half, shard_of(message.group, shards, random_)),
          sort_key_of(message.priority, std::max(message.sent_at, kFrontEnd), random_)};
}

std::vector<PutResult> LeasedOperator::put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) {
  std::vector<SendResult> fates(records.size());
  const auto shards = records.empty() ? Result<Shards>(Shards{}) : queue_.shards.settled(deadline);
  std::vector<LeasedInserter::Draft> drafts;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const StoredMessage& record = records[i];
    fates[i].id = record.message.id;
    auto item = !layout_->is_storable_id(record.message.id) ? Error(ErrorCode::invalid, unstorable_id(place().queue))
                : shards                                    ? encode_stored(record, place_of(record, shards->count))
                                                            : Result<dynamo::Item>(shards.error());
    if (item) {
      drafts.push_back({.item = std::move(*item), .result = &fates[i], .replace = mode == PutMode::replace});
    } else {
      fates[i] = {SendStatus::failed, {}, item.error()};
    }
  }
  LeasedInserter(parts_, *layout_, random_).insert(std::move(drafts), deadline);
  std::vector<PutResult> results;
  results.reserve(fates.size());
  for (SendResult& fate : fates) {
    results.push_back(fate.status == SendStatus::sent           ? PutResult{}
                      : fate.status == SendStatus::duplicate_id ? PutResult{PutStatus::exists, {}}
                                                                : PutResult{PutStatus::failed, std::move(fate.error)});
  }
  doorbell_.ring_put(place().queue, results);
  return results;
}

}  // namespace sluice::queue::leased
