#include "host/stores/leased/leased_operator.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/guard.hpp"
#include "base/ranges.hpp"
#include "host/queue/content_edit.hpp"
#include "host/queue/message.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/leased/leased_writer.hpp"
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

constexpr std::int64_t kMostAPage = 1'000;
constexpr char kForward = 'f';
constexpr char kBackward = 'b';
constexpr std::size_t kCursorDigits = 4;  // that tell the lists of other queues from it
constexpr std::string_view kDigits = "0123";

// What sorts behind every key of a priority: its digit's keys are of digits and capital letters.
constexpr char kBeyond = '~';

/// Where a record stands in the order of its half, whatever its priority: by the time of its key, then by what makes
/// keys differ. A value.
struct RecordPosition {
  std::string time;  ///< of the sort key, and its chance
  char digit = '0';  ///< of its priority
  std::uint32_t shard = 0;

  static RecordPosition of(const std::string& sort, std::uint32_t shard) {
    const bool ours = sort.size() > 1;
    return {.time = ours ? sort.substr(1) : sort, .digit = sort.empty() ? '0' : sort.front(), .shard = shard};
  }
  static RecordPosition of(const dynamo::Item& item) {
    return of(dynamo::text_of(item, attribute::kSort), shard_of(item));
  }
  friend auto operator<=>(const RecordPosition&, const RecordPosition&) = default;
};

/// What the cursors of such a list begin with.
std::string cursor_mark(const QueueAddress& address, bool newest_first) {
  std::string mark(1, newest_first ? kBackward : kForward);
  owned::append_digits(mark, table::stable_hash(owned::half_name(address)), kCursorDigits);
  return mark;
}

/// A place in a list, as opaque text; it leads on although what lay there is gone.
std::string encode_cursor(const RecordPosition& last, std::string mark) {
  return std::move(mark) + made_id(last.digit + last.time, last.shard);
}

/// ErrorCode::invalid for what is no cursor of such a list.
Result<RecordPosition> decode_cursor(std::string_view cursor, std::string_view mark) {
  const auto keys = cursor.starts_with(mark) ? listed_keys(cursor.substr(mark.size())) : std::nullopt;
  if (!keys || keys->first.size() > 1024 || keys->second >= kMostShards) {
    return Error(ErrorCode::invalid,
                 "the cursor is not one that such a list has given; leave it out to begin at the start");
  }
  return RecordPosition::of(keys->first, keys->second);
}

/// Reads one half of a queue across its shards.
class HalfReader {
 public:
  struct Look {
    Half half = Half::standard;
    std::size_t limit = 0;
    const HeldShards* only = nullptr;  ///< null: of all shards
    std::optional<RecordPosition> after{};
    bool newest_first = false;
    bool consistent = false;
    std::string projection{};
    std::map<std::string, std::string> names{};
  };
  struct Records {
    std::vector<dynamo::Item> items;  ///< in the order asked for
    bool more = false;
  };

  /// Used for one look; the references outlive it.
  HalfReader(LeasedQueue& queue, const Look& look, Deadline deadline)
      : queue_(queue), look_(look), deadline_(deadline) {}

  /// So many records in order. A shard is asked once, and for each priority of which it has more than fit; half a read
  /// unit at least each time.
  Result<Records> in_order() {
    SLUICE_TRY(count, queue_.shards.get(deadline_));
    for (std::uint32_t shard = 0; shard < count->most_ever; ++shard) {
      if (look_.only == nullptr || look_.only->fence_of(look_.half, shard)) {
        SLUICE_PASS_ON(open_shard(shard));
      }
    }
    Records records;
    for (;;) {
      Stream* next = nullptr;
      RecordPosition best;
      for (Stream& stream : streams_) {
        SLUICE_PASS_ON(fill(stream));
        if (stream.items.empty()) {
          continue;
        }
        RecordPosition position = RecordPosition::of(stream.items.front());
        if (next == nullptr || (look_.newest_first ? position > best : position < best)) {
          next = &stream;
          best = std::move(position);
        }
      }
      records.more = next != nullptr;
      if (next == nullptr || records.items.size() == look_.limit) {
        return records;
      }
      records.items.push_back(std::move(next->items.front()));
      next->items.pop_front();
    }
  }

  /// Every record of the half, shard by shard, in no order. `each` is called with each of them. With `most_pages`, no
  /// more than so many of a shard; false: there are more.
  Result<bool> all(const std::function<void(const dynamo::Item&)>& each, std::size_t most_pages) const {
    SLUICE_TRY(count, queue_.shards.get(deadline_));
    bool whole = true;
    for (std::uint32_t shard = 0; shard < count->most_ever; ++shard) {
      dynamo::QueryRequest query = query_of(shard);
      std::size_t pages = 0;
      do {
        SLUICE_TRY(page, ask(query));
        std::for_each(page->items.begin(), page->items.end(), each);
        query.exclusive_start_key = std::move(page->last_evaluated_key);
      } while (!query.exclusive_start_key.empty() && ++pages != most_pages);
      whole = whole && query.exclusive_start_key.empty();
    }
    return whole;
  }

 private:
  /// The records of one priority in one shard, as far as they have been read.
  struct Stream {
    dynamo::QueryRequest query;  ///< for those that follow
    std::deque<dynamo::Item> items{};
    bool done = false;  ///< none follow
  };

  dynamo::QueryRequest query_of(std::uint32_t shard) const {
    auto query =
        partition_query(queue_.place.table, partition_of(queue_.place.queue, look_.half, shard), look_.consistent);
    query.names.insert(look_.names.begin(), look_.names.end());
    query.projection = look_.projection;
    query.forward = !look_.newest_first;
    return query;
  }
  dynamo::QueryRequest query_of(std::uint32_t shard, char digit) const {
    dynamo::QueryRequest query = query_of(shard);
    std::string low(1, digit);
    std::string high = low + kBeyond;
    if (look_.after) {
      (look_.newest_first ? high : low) = digit + look_.after->time;
    }
    limit_range(query, low, high);
    query.limit = std::min<std::int64_t>(static_cast<std::int64_t>(look_.limit) + 2, kMostAPage);
    return query;
  }
  Result<dynamo::Page> ask(const dynamo::QueryRequest& query) const {
    return table::checked(queue_.place, queue_.parts.client.query(query, deadline_));
  }

  // All of a shard in one query, where there are no more than are wanted.
  Result<void> open_shard(std::uint32_t shard) {
    std::map<char, Stream> opened;
    for (const char digit : kDigits) {
      opened[digit].query = query_of(shard, digit);
    }
    if (!look_.after) {
      dynamo::QueryRequest query = query_of(shard);
      query.limit = std::min<std::int64_t>(static_cast<std::int64_t>(look_.limit) + 1, kMostAPage);
      SLUICE_TRY(page, ask(query));
      for (dynamo::Item& item : page->items) {
        Stream& stream = opened[Place::of(item).sort.front()];
        stream.items.push_back(std::move(item));
      }
      const dynamo::Item& end = page->last_evaluated_key;
      const char last = end.empty() ? '\0' : Place::of(end).sort.front();
      for (auto& [digit, stream] : opened) {
        const bool passed = look_.newest_first ? digit > last : digit < last;
        stream.done = end.empty() || passed || kDigits.find(digit) == std::string_view::npos;  // somebody else's
        if (digit == last) {
          stream.query.exclusive_start_key = end;
        }
      }
    }
    for (auto& [digit, stream] : opened) {
      streams_.push_back(std::move(stream));
    }
    return {};
  }

  // Reads on in one priority of a shard. The bounds belong to what is between them.
  Result<void> fill(Stream& stream) const {
    while (stream.items.empty() && !stream.done) {
      SLUICE_TRY(page, ask(stream.query));
      for (dynamo::Item& item : page->items) {
        const RecordPosition position = RecordPosition::of(item);
        if (!look_.after || (look_.newest_first ? position < *look_.after : position > *look_.after)) {
          stream.items.push_back(std::move(item));
        }
      }
      stream.done = page->last_evaluated_key.empty();
      stream.query.exclusive_start_key = std::move(page->last_evaluated_key);
    }
    return {};
  }

  LeasedQueue& queue_;
  const Look& look_;
  const Deadline deadline_;
  std::vector<Stream> streams_;
};

/// The first ids in claiming order, of records that come in none.
using FirstIds = std::multimap<RecordPosition, std::string>;

void add_first(FirstIds& ids, std::size_t most, const RecordPosition& position, const std::string& id) {
  ids.emplace(position, id);
  if (ids.size() > most) {
    ids.erase(std::prev(ids.end()));
  }
}

StoredMessage listed(const dynamo::Item& item, const ListRequest& request) {
  StoredMessage record = request.content ? decode_record(item) : decode_standing(item);
  if (request.content && request.native) {
    record.native = native_of(item);
  }
  return record;
}

/// The operators' side of one queue. What it lists goes by the time of the keys, over all shards and priorities.
class LeasedOperator final : public table::RecordOperator {
 public:
  LeasedOperator(LeasedQueue& queue, const HeldShards* held)
      : RecordOperator(*queue.layout), queue_(queue), held_(held) {}

  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    HalfReader::Look look{
        .half = request.half, .only = held_, .newest_first = request.newest_first, .consistent = request.consistent};
    if (!request.content) {
      table::project(
          look, {attribute::kPartition, attribute::kSort, attribute::kOwnId, attribute::kPriority, attribute::kSentAt,
                 attribute::kCreatedAt, attribute::kUpdated, attribute::kVersion, attribute::kReceiveCount,
                 attribute::kNotBefore, attribute::kReceived, attribute::kMarks, attribute::kFailure});
    }
    const std::string mark = cursor_mark({place().queue, request.half}, request.newest_first);
    if (!request.cursor.empty()) {
      SLUICE_TRY(after, decode_cursor(request.cursor, mark));
      look.after = std::move(*after);
    }
    ListPage result;
    std::size_t bytes = 0;
    for (bool more = true; more && result.messages.size() < request.limit && bytes < table::kListBytes;) {
      look.limit = std::min(request.limit - result.messages.size(), kListRound);
      SLUICE_TRY(records, HalfReader(queue_, look, deadline).in_order());
      for (const dynamo::Item& item : records->items) {
        result.messages.push_back(listed(item, request));
        bytes += payload_bytes(result.messages.back());
        look.after = RecordPosition::of(item);
      }
      more = records->more;
      result.next = more ? encode_cursor(*look.after, mark) : std::string();
    }
    return result;
  }

  /// What the owners of its shards have announced, for one read of the heartbeats. Where nobody tells, as nobody works
  /// on it, a megabyte of each shard is counted; all of it with an exact or consistent look.
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override {
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
    SLUICE_TRY(counted, count({.half = request.half, .ids = 0, .exact = exact}, request.consistent, deadline));
    return counted->counts;
  }

  /// The same; without ids and errors where its owners have said it.
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    if (!request.exact) {
      SLUICE_TRY(said, announced(request.half, deadline));
      if (*said) {
        return QueueOverview{.counts = **said, .first_ids = {}, .first_in_flight_ids = {}, .errors = {}};
      }
    }
    auto counted = count(request, false, deadline);
    if (counted && request.exact) {
      add_announced(request.half, counted->counts, deadline);
    }
    return counted;
  }

  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override {
    std::vector<SendResult> fates(records.size());
    const auto shards = records.empty() ? Result<Shards>(Shards{}) : queue_.shards.settled(deadline);
    std::vector<KeyedDraft> drafts;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const StoredMessage& record = records[i];
      fates[i].id = record.message.id;
      auto item = !layout_.is_storable_id(record.message.id) ? Error(ErrorCode::invalid, unstorable_id(place().queue))
                  : shards                                   ? encode_stored(record, place_of(record, shards->count))
                                                             : Result<dynamo::Item>(shards.error());
      if (item) {
        drafts.push_back({.item = std::move(*item), .result = &fates[i], .replace = mode == PutMode::replace});
      } else {
        fates[i] = {SendStatus::failed, {}, item.error()};
      }
    }
    insert_keyed(layout_, std::move(drafts), deadline);
    auto results = table::put_results(std::move(fates));
    parts_.doorbell.ring_put(place().queue, results);
    return results;
  }

  /// One more read, of the shard's ownership item.
  Result<std::optional<PartOwner>> owner_of(const std::string& id, Deadline deadline) override {
    SLUICE_TRY(item, record(id, deadline));
    const auto partition = parse_partition(Place::of(*item).partition);
    if (!partition) {
      return std::optional<PartOwner>();
    }
    SLUICE_TRY(owned, ownership(partition->half, partition->shard, deadline));
    const std::string& incarnation = owned->owner;
    PartOwner owner{.part = "shard " + std::to_string(partition->shard), .owner = ""};
    if (!incarnation.empty()) {
      owner.owner = "host " + incarnation.substr(0, incarnation.rfind('/'));
    }
    return std::optional(std::move(owner));
  }

 private:
  Result<owned::Ownership> ownership(Half half, std::uint32_t shard, Deadline deadline) const {
    const Place where{ownership_partition(place().queue, half), ownership_sort(shard)};
    SLUICE_TRY(found,
               table::checked(place(), parts_.client.get_item({.table = place().table, .key = where.key()}, deadline)));
    return decode_ownership(std::span(&found->item, 1)).of(shard);
  }

  Result<std::optional<QueueStats>> announced(Half half, Deadline deadline) const {
    SLUICE_TRY(beats, table::checked(place(), read_beats(parts_.client, place().table, deadline)));
    if (queue_.bring_up_to_date) {
      queue_.bring_up_to_date(*beats);
    }
    return announced_stats(*beats, {place().queue, half}, parts_.clock.wall_now());
  }

  /// Owners hand out without a write: by its record what is at work with them is ready, and they alone tell of it.
  void add_announced(Half half, QueueStats& counts, Deadline deadline) const {
    if (const auto said = announced(half, deadline); said && *said && (*said)->in_flight > counts.in_flight) {
      const std::uint64_t more = std::min((*said)->in_flight - counts.in_flight, counts.ready);
      counts.in_flight += more;
      counts.ready -= more;
    }
  }

  // The time by which the records are judged is taken after the first answer, which may have put it right.
  Result<QueueOverview> count(const OverviewRequest& request, bool consistent, Deadline deadline) const {
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
    FirstIds first;
    FirstIds first_hidden;
    const auto add = [&](const dynamo::Item& item) {
      if (!sum) {
        now = parts_.clock.wall_now();
        sum.emplace(wanted, now);
      }
      const StoredMessage record = decode_standing(item);
      sum->add(record);
      const RecordPosition position = RecordPosition::of(item);
      add_first(first, request.ids, position, record.message.id);
      if (record.state(now) != MessageState::ready) {
        add_first(first_hidden, request.ids, position, record.message.id);
      }
    };
    SLUICE_TRY(whole, HalfReader(queue_, look, deadline).all(add, request.exact ? 0 : kCountedPages));
    QueueOverview overview = sum ? std::move(*sum).finish() : QueueOverview{};
    overview.first_ids = mapped(first, &FirstIds::value_type::second);
    overview.first_in_flight_ids = mapped(first_hidden, &FirstIds::value_type::second);
    overview.counts.at_least = !*whole;
    return overview;
  }

  // Changes.

  /// A change that holds only as long as its shard is in the hands of whoever makes it.
  struct OfShard {
    Task* task;
    OwnerFence fence;
  };

  void write(const std::vector<Task*>& tasks, Deadline deadline) const override {
    std::vector<Task*> staying;
    std::vector<OfShard> fenced;
    std::vector<Task*> moving;
    const bool taking = held_ != nullptr && held_->taking && SLUICE_GUARD(leased_move_fence);
    for (Task* task : tasks) {
      task->nonce = parts_.nonces.anonymous();
      const bool stays =
          task->removes() ? held_sort(task->item).empty() : task->change->action == ChangeAction::set_visibility;
      if (!taking) {
        (stays ? staying : moving).push_back(task);
      } else if (auto fence = held_->fence_of(half_of(task->item), shard_of(task->item))) {
        fenced.push_back({task, std::move(*fence)});
      } else {
        task->end(ChangeStatus::conflict, 0, changed_since(place().queue, task->change->id));
      }
    }
    const WallTime now = parts_.clock.wall_now();
    write_fenced(fenced, now, deadline);
    write_in_place(staying, now, deadline);
    move(moving, now, deadline);
  }

  table::RecordWrite in_place(const Task& task, WallTime now) const {
    table::Expected expected = as_read(Place::of(task.item), task.before);
    return task.removes() ? removal_of(kNames, place().table, std::move(expected))
                          : update_of(kNames, place().table, std::move(expected), {task.nonce, now},
                                      attributes_of(kNames, task.wanted(now), {.marks = false}));
  }

  void write_in_place(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const {
    if (tasks.empty()) {
      return;
    }
    const auto outcomes = parts_.runner.run(mapped(tasks, [&](const Task* task) { return in_place(*task, now); }),
                                            table::Repetition::until_known, deadline);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      note(*tasks[i], outcomes[i], true);
    }
    std::vector<owned::Out> gone;
    for (const Task* task : tasks) {
      if (!task->open && task->removes() && task->result->status == ChangeStatus::applied) {
        gone.push_back(out_of(task->item));
      }
    }
    drop_aliases(layout_, gone, deadline);
  }

  // In transactions that look at who owns the shards. Whoever was frozen before such a write, for however long, writes
  // nothing then.
  void write_fenced(const std::vector<OfShard>& tasks, WallTime now, Deadline deadline) const {
    const auto bytes_of = [](const OfShard& one) { return table::item_bytes(one.task->item); };
    for (std::span<const OfShard> left(tasks); !left.empty();) {
      const auto together = left.first(table::fitting(left, kFencedTogether, bytes_of));
      left = left.subspan(together.size());
      dynamo::TransactWriteRequest request{.actions = {}, .token = table::transaction_token(place(), parts_.nonces)};
      std::vector<OwnerFence> fences;
      for (const OfShard& one : together) {
        if (std::find(fences.begin(), fences.end(), one.fence) == fences.end()) {
          fences.push_back(one.fence);
          request.actions.push_back(owner_check(place().table, one.fence));
        }
      }
      for (const OfShard& one : together) {
        request.actions.push_back(table::request_of(in_place(*one.task, now)));
      }
      const auto result = parts_.client.transact(request, deadline);
      for (const OfShard& one : together) {
        const auto fence =
            static_cast<std::size_t>(std::find(fences.begin(), fences.end(), one.fence) - fences.begin());
        const bool gone = !result && fence < result.error().cancellation_reasons.size() &&
                          result.error().cancellation_reasons[fence].stood_in_the_way();
        if (gone) {
          one.task->end(ChangeStatus::conflict, 0, changed_since(place().queue, one.task->change->id));
        } else {
          note(*one.task, result);
        }
      }
    }
  }

  void on_end(const Task& task) const override {
    if (task.result->status == ChangeStatus::applied && !held_sort(task.item).empty()) {
      parts_.doorbell.ring({place().queue, Half::standard});  // its group may go on
    }
  }

  /// Nobody works on that shard any more.
  Result<bool> is_given_up(std::uint32_t shard, Deadline deadline) const {
    SLUICE_TRY(owned, ownership(Half::standard, shard, deadline));
    return owned->drained;
  }

  Result<Place> goal(const Task& task, const core::StateChange& change, WallTime now, std::int64_t number,
                     Deadline deadline) const {
    SLUICE_TRY(known, queue_.shards.get(deadline));
    const std::uint32_t shards = known->count;
    const ChangeAction action = task.change->action;
    const core::MessageState state = state_of(task.item);
    const std::uint32_t from = shard_of(task.item);
    std::string held = held_sort(task.item);
    bool waits_there = action != ChangeAction::reset;
    if (action == ChangeAction::redrive && !held.empty() && from >= shards) {
      SLUICE_TRY(given_up, is_given_up(from, deadline));
      waits_there = !*given_up;
    }
    if (!waits_there) {
      held.clear();  // its group waits there no more
    }
    // A shard beyond the number is to run empty; but what holds a group lies beside what says so, for as long as it
    // does.
    const bool stays = from < shards || !held.empty();
    const std::uint32_t shard = stays ? from : queue_.shard_for(state.group, shards);
    std::string sort;
    if (action == ChangeAction::move_to_front) {
      sort = front_sort_key(now + std::chrono::milliseconds(number), parts_.random);
    } else if (action == ChangeAction::redrive && is_sort_key(held)) {
      sort = std::move(held);  // what its group waits for goes back to where it lay
    } else {
      sort = sort_key_of(state.priority, *change.sent_at, parts_.random);
    }
    return Place{partition_of(place().queue, change.half.value_or(state.half), shard), std::move(sort)};
  }

  dynamo::Item moved(const Task& task, const core::StateChange& change, const Place& to, WallTime now) const {
    WallTime sent_at = whole_milliseconds(*change.sent_at);
    if (task.change->action == ChangeAction::move_to_front) {
      sent_at = std::min(sent_at, decode_standing(task.item).message.sent_at);
    }
    dynamo::Item item = moved_item(task.item, to, sent_at);
    change_item(item, change);
    if (change.half) {
      item.erase(std::string(attribute::kHold));
    }
    if (change.created_at) {
      item.erase(std::string(attribute::kCreatedAt));
    }
    touch(kNames, item, version_of(item), {task.nonce, now});
    return item;
  }

  /// `moved`: empty where it goes.
  dynamo::TransactWriteRequest move_request(const dynamo::Item& read, const dynamo::Item& moved) const {
    dynamo::TransactWriteRequest request{.actions = {}, .token = table::transaction_token(place(), parts_.nonces)};
    request.actions.push_back(remove_record(place(), read));
    if (!moved.empty()) {
      request.actions.push_back(table::put_message(place().table, moved, kNames));
    }
    const std::string id = id_of(read);
    const bool has_alias = !moved.empty() && made_place(place().queue, id) != Place::of(moved);
    request.actions.push_back(has_alias ? put_alias_anyway(place(), id, Place::of(moved))
                                        : remove_item(place(), alias_place(place().queue, id)));
    if (auto freed = held_sort(moved).empty() ? free_group(place(), read) : std::nullopt) {
      request.actions.push_back(std::move(*freed));
    }
    return request;
  }

  void move(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const {
    if (tasks.empty()) {
      return;
    }
    std::vector<dynamo::TransactWriteRequest> requests;
    std::vector<Task*> moving;
    for (Task* task : tasks) {
      dynamo::Item there;
      if (!task->removes()) {
        const core::StateChange change = task->wanted(now);
        const auto to = goal(*task, change, now, static_cast<std::int64_t>(requests.size()), deadline);
        if (!to) {
          task->end(ChangeStatus::failed, 0, to.error());
          continue;
        }
        there = moved(*task, change, *to, now);
      }
      requests.push_back(move_request(task->item, there));
      moving.push_back(task);
    }
    const auto results = parts_.client.transact_each(requests, deadline);
    for (std::size_t i = 0; i < moving.size(); ++i) {
      note(*moving[i], results[i]);
    }
  }

  // Edits.

  // Where it lies afterwards: a group is in one shard, and a priority is a part of the key, but for what was moved to
  // the front. What frees a group is a transaction, which may be had by a move alone.
  Result<Place> place_for(const dynamo::Item& before, const Message& was, const Message& is, Deadline deadline) const {
    Place at = Place::of(before);
    if (was.priority != is.priority && is_sort_key(at.sort) && due_of(at.sort) >= kFrontEnd) {
      at.sort.front() = static_cast<char>('0' + static_cast<int>(is.priority));
    }
    const auto partition = parse_partition(at.partition);
    if (was.group != is.group && !is.group.empty() && partition) {
      SLUICE_TRY(shards, queue_.shards.get(deadline));
      at.partition = partition_of(partition->queue, partition->half, queue_.shard_for(is.group, shards->count));
    }
    if (was.group != is.group && !held_sort(before).empty()) {
      at.sort = sort_key_of(priority_of(at.sort), due_of(at.sort), parts_.random);
    }
    return at;
  }

  Result<dynamo::Item> edited(const dynamo::Item& before, std::span<const ContentEdit> edits,
                              Deadline deadline) const override {
    const Message was = decode_record(before).message;
    Message is = was;
    SLUICE_PASS_ON(apply_edits(is, edits));
    SLUICE_TRY(content, encode_content(table::content_of(is)));
    SLUICE_TRY(to, place_for(before, was, is, deadline));
    dynamo::Item after = *to == Place::of(before) ? before : moved_item(before, *to);
    if (was.body != is.body || was.content_type != is.content_type) {
      table::take_over(after, *content, attribute::kBody);
      table::take_over(after, *content, attribute::kContentType);
    }
    if (was.attributes != is.attributes) {
      table::take_over(after, *content, attribute::kAttributes);
    }
    if (was.group != is.group) {
      table::take_over(after, *content, attribute::kGroup);
      table::take_over(after, {}, attribute::kHold);  // it held the other one back
    }
    dynamo::Item priority;
    put_priority(priority, is.priority);
    table::take_over(after, priority, attribute::kPriority);
    return after;
  }

  void put_edited(Task& task, const dynamo::Item& after, Deadline deadline) const override {
    if (Place::of(task.item) == Place::of(after)) {
      return RecordOperator::put_edited(task, after, deadline);
    }
    note(task, parts_.client.transact(move_request(task.item, after), deadline));
  }

  // Copies.

  // A message that is carried here from elsewhere comes in hidden, and will be shown by a write. The owners have read
  // past its own time, and would come upon it by a sweep only: it goes where they look next. One of a group keeps its
  // time, by which it goes before later ones of the group.
  Place place_of(const StoredMessage& record, std::uint32_t shards) const {
    const std::string& queue = place().queue;
    const Message& message = record.message;
    const WallTime now = parts_.clock.wall_now();
    if (is_moving(record) && record.half == Half::standard && message.group.empty() && message.sent_at < now) {
      return queue_.new_place({}, message.priority, now, shards);
    }
    // A message whose id says where it may lie goes there, as it needs no alias then; any other one by its times. None
    // goes to the front, which is for what was moved there.
    const auto made = record.half == Half::standard ? place_of_made_id(message.id) : std::nullopt;
    if (made && made->second < shards && due_of(made->first) == whole_milliseconds(message.sent_at) &&
        priority_of(made->first) == message.priority && message.group.empty()) {
      return {partition_of(queue, Half::standard, made->second), made->first};
    }
    return {partition_of(queue, record.half, queue_.shard_for(message.group, shards)),
            sort_key_of(message.priority, std::max(message.sent_at, kFrontEnd), parts_.random)};
  }

  LeasedQueue& queue_;
  const HeldShards* const held_;
};

}  // namespace

std::unique_ptr<Operator> make_leased_operator(LeasedQueue& queue, const HeldShards* held) {
  return std::make_unique<LeasedOperator>(queue, held);
}

}  // namespace sluice::queue::leased
