#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "host/queue/content_edit.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/sqlite/roles.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kListLimit = 1'000;
constexpr std::size_t kListBytes = std::size_t{16} * 1024 * 1024;
// Of one transaction: large enough to share its flush, small enough that nobody waits long for it.
constexpr std::size_t kBatchChanges = 500;
constexpr std::size_t kBatchBytes = std::size_t{8} * 1024 * 1024;
// Each change makes the version one more; so many can never come together.
constexpr std::int64_t kLastVersion = std::numeric_limits<std::int64_t>::max() / 2;

std::size_t size_of(const StoredMessage& record) { return content_bytes(record.message) + record.native.size(); }

/// How many of `records` go into the next transaction.
std::size_t batch_of(std::span<const StoredMessage> records) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  while (count < records.size() && count < kBatchChanges && (count == 0 || bytes < kBatchBytes)) {
    bytes += size_of(records[count++]);
  }
  return count;
}

std::string write_cursor(const Place& place) {
  return std::to_string(place.first) + ":" + std::to_string(place.second);
}

std::optional<Place> read_cursor(const std::string& cursor, bool newest_first) {
  Place place = newest_first ? kLast : kFirst;
  if (cursor.empty()) {
    return place;
  }
  const char* end = cursor.data() + cursor.size();
  const auto time = std::from_chars(cursor.data(), end, place.first);
  if (time.ec != std::errc() || time.ptr == end || *time.ptr != ':') {
    return std::nullopt;
  }
  const auto seq = std::from_chars(time.ptr + 1, end, place.second);
  return seq.ec == std::errc() && seq.ptr == end ? std::optional(place) : std::nullopt;
}

/// A page of at most `limit` records from these places; the cursor leads on when there are more of them.
ListPage page_of(RecordReader& reader, const ListRequest& request, const std::vector<Place>& places,
                 std::size_t limit) {
  ListPage page;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < places.size() && i < limit; ++i) {
    const std::int64_t seq = places[i].second;
    if (auto record = request.content ? reader.read(seq) : reader.read_head(seq)) {
      if (request.native) {
        record->native = reader.native(seq);
      }
      bytes += record->message.body.size() + record->native.size();
      page.messages.push_back(std::move(*record));
    }
    if (i + 1 < places.size() && (i + 1 == limit || bytes >= kListBytes)) {
      page.next = write_cursor(places[i]);
      break;
    }
  }
  return page;
}

/// Changes of one transaction.
class Changes {
 public:
  Changes(Records& records, const std::string& queue, WallTime now) : records_(records), queue_(queue), now_(now) {}

  ChangeResult apply(const Change& change) {
    const auto number = records_.queue(queue_);
    const auto before = number ? records_.find(*number, change.id) : std::nullopt;
    if (!before) {
      return {ChangeStatus::not_found, 0, no_message(queue_, change.id)};
    }
    if (change.version && *change.version != before->version) {
      return {ChangeStatus::conflict, before->version, changed_since(queue_, change.id)};
    }
    const core::Verdict verdict = core::judge(change.action, before->state(), now_);
    if (verdict == core::Verdict::unchanged) {
      return {ChangeStatus::applied, before->version, {}};
    }
    if (verdict != core::Verdict::apply) {
      return {ChangeStatus::conflict, before->version, core::refusal(verdict, queue_, before->id)};
    }
    const core::StateChange made = core::change(change, now_, place_for(change.action, *before));
    if (made.removes) {
      records_.remove(*before);
      return {};
    }
    MessageRecord after = *before;
    after.apply(made);
    if (made.created_at) {
      records_.renew(*before, after, now_);
    } else {
      records_.change(*before, after, now_);
    }
    return {ChangeStatus::applied, before->version + 1, {}};
  }

 private:
  std::optional<WallTime> place_for(ChangeAction action, const MessageRecord& before) {
    if (action == ChangeAction::move_to_front) {
      return next_front(before.half);
    }
    fronts_.clear();
    return action == ChangeAction::redrive ? records_.groups().held_place(before.seq) : std::nullopt;
  }

  WallTime next_front(std::int64_t half) {
    auto known = fronts_.find(half);
    if (known == fronts_.end()) {
      const auto first = records_.ready().front(half, records_.groups().kept(half) != Kept::none);
      known = fronts_.emplace(half, std::min(first.value_or(now_), now_)).first;
    }
    if (known->second > WallTime::min()) {
      known->second -= Duration(1);
    }
    return known->second;
  }

  Records& records_;
  const std::string& queue_;
  const WallTime now_;
  std::map<std::int64_t, WallTime> fronts_;  ///< where the first message of a half is, while it is known
};

/// A group of the queue has something to hand out that waited for another message.
bool freed_any(Writer& writer, const std::string& queue) {
  const auto number = writer.records.queue(queue);
  GroupOrder& groups = writer.records.groups();
  const bool standard = number && groups.take_offered(half_of(*number, Half::standard));
  return (number && groups.take_offered(half_of(*number, Half::dlq))) || standard;
}

void ring_both(Doorbell& doorbell, const std::string& queue) {
  doorbell.ring({queue, Half::standard});
  doorbell.ring({queue, Half::dlq});
}

struct Editing {
  std::string id;
  std::int64_t version = 0;
  std::vector<ContentEdit> edits;
  std::size_t most_bytes = 0;
};

Result<StoredMessage> edit_record(Writer& writer, const std::string& queue, const Editing& editing, WallTime now) {
  const auto number = writer.records.queue(queue);
  const auto before = number ? writer.records.find(*number, editing.id) : std::nullopt;
  if (!before) {
    return no_message(queue, editing.id);
  }
  if (before->version != editing.version) {
    return changed_since(queue, editing.id);
  }
  auto record = writer.reader.read(before->seq);
  if (!record) {
    return no_message(queue, editing.id);
  }
  SLUICE_PASS_ON(apply_edits(record->message, editing.edits));
  if (auto error = refused_message(editing.id, content_bytes(record->message), editing.most_bytes)) {
    return std::move(*error);
  }
  writer.records.replace_content(*before, record->message, now);
  record = writer.reader.read(before->seq);
  return record ? Result<StoredMessage>(std::move(*record)) : Result<StoredMessage>(no_message(queue, editing.id));
}

class SqliteOperator final : public Operator {
 public:
  SqliteOperator(SharedStore& store, std::string queue) : store_(store), queue_(std::move(queue)) {}

  Result<StoredMessage> get(const std::string& id, Deadline deadline) override {
    SLUICE_TRY(found, look<std::optional<StoredMessage>>(
                          [id](RecordReader& reader, std::int64_t queue) { return reader.find(queue, id); }, deadline));
    return *found ? Result<StoredMessage>(std::move(**found)) : no_message(queue_, id);
  }

  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    const auto from = read_cursor(request.cursor, request.newest_first);
    if (!from) {
      return Error(ErrorCode::invalid, "\"" + request.cursor + "\" is not a cursor of this list; start without one");
    }
    return look<ListPage>(
        [request, from = *from](RecordReader& reader, std::int64_t queue) {
          const std::size_t limit = std::min(request.limit, kListLimit);
          const auto places = reader.list(half_of(queue, request.half), from, limit + 1, request.newest_first);
          return page_of(reader, request, places, limit);
        },
        deadline);
  }

  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override {
    return look<QueueStats>(
        [half = request.half, &clock = store_.clock()](RecordReader& reader, std::int64_t queue) {
          return reader.stats(half_of(queue, half), clock.wall_now());
        },
        deadline);
  }

  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    return look<QueueOverview>(
        [request, &clock = store_.clock()](RecordReader& reader, std::int64_t queue) {
          return reader.overview(half_of(queue, request.half), request.ids, request.errors, clock.wall_now());
        },
        deadline);
  }

  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override {
    std::vector<ChangeResult> results;
    for (std::size_t from = 0; from < changes.size(); from += kBatchChanges) {
      const auto batch = changes.subspan(from, std::min(changes.size() - from, kBatchChanges));
      auto done = change_batch({batch.begin(), batch.end()}, deadline);
      std::move(done.begin(), done.end(), std::back_inserter(results));
    }
    return results;
  }

  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override {
    const Editing editing{id, version, {edits.begin(), edits.end()}, store_.most_bytes()};
    struct Edited {
      bool freed = false;
      Result<StoredMessage> record = Error();
    };
    const auto work = [editing, queue = queue_, &clock = store_.clock()](Writer& writer) {
      Edited edited{false, edit_record(writer, queue, editing, clock.wall_now())};
      edited.freed = freed_any(writer, queue);
      return edited;
    };
    const auto ring = [queue = queue_, &doorbell = store_.doorbell()](const Edited& edited) {
      if (edited.freed) {
        ring_both(doorbell, queue);
      }
    };
    SLUICE_TRY(edited, store_.write<Edited>({.work = work, .committed = ring}, deadline));
    return std::move(edited->record);
  }

  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override {
    std::vector<PutResult> results;
    for (std::size_t from = 0; from < records.size();) {
      const auto batch = records.subspan(from, batch_of(records.subspan(from)));
      auto done = put_batch({batch.begin(), batch.end()}, mode, deadline);
      std::move(done.begin(), done.end(), std::back_inserter(results));
      from += batch.size();
    }
    return results;
  }

 private:
  /// Nothing seen, a value without anything in it, of a queue that is not there.
  template <typename Seen>
  Result<Seen> look(std::function<Seen(RecordReader&, std::int64_t)> work, Deadline deadline) {
    return store_.read<Seen>(
        [name = queue_, work = std::move(work)](RecordReader& reader) {
          const auto queue = reader.queue(name);
          return queue ? work(reader, *queue) : Seen();
        },
        deadline);
  }
  std::vector<ChangeResult> change_batch(std::vector<Change> changes, Deadline deadline);
  std::vector<PutResult> put_batch(std::vector<StoredMessage> records, PutMode mode, Deadline deadline);

  SharedStore& store_;
  const std::string queue_;
};

std::vector<ChangeResult> SqliteOperator::change_batch(std::vector<Change> batch, Deadline deadline) {
  const auto changes = std::make_shared<const std::vector<Change>>(std::move(batch));
  struct Changed {
    std::vector<ChangeResult> results;
    bool freed = false;
  };
  const auto work = [changes, queue = queue_, &clock = store_.clock()](Writer& writer) {
    Changed changed;
    Changes applied(writer.records, queue, clock.wall_now());
    for (const Change& change : *changes) {
      changed.results.push_back(applied.apply(change));
    }
    changed.freed = freed_any(writer, queue);
    return changed;
  };
  const auto ring = [changes, queue = queue_, &doorbell = store_.doorbell()](const Changed& changed) {
    if (changed.freed) {
      ring_both(doorbell, queue);
    }
    doorbell.ring_changed(queue, *changes, changed.results);
  };
  auto changed = store_.write<Changed>({.work = work, .committed = ring}, deadline);
  return changed ? std::move(changed->results)
                 : std::vector<ChangeResult>(changes->size(), {ChangeStatus::failed, 0, changed.error()});
}

std::vector<PutResult> SqliteOperator::put_batch(std::vector<StoredMessage> batch, PutMode mode, Deadline deadline) {
  std::vector<PutResult> begun(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto refused = refused_message(batch[i].message.id, size_of(batch[i]), store_.most_bytes());
    if (batch[i].message.id.empty()) {
      refused = Error(ErrorCode::invalid, "a record without an id cannot be kept; give it one");
    }
    if (batch[i].version > kLastVersion) {
      refused = Error(ErrorCode::invalid, "the record's version " + std::to_string(batch[i].version) +
                                              " leaves no room for changes; give it a smaller one");
    }
    if (refused) {
      begun[i] = {PutStatus::failed, std::move(*refused)};
    }
  }
  const auto failed = [](const PutResult& result) { return result.status == PutStatus::failed; };
  if (std::all_of(begun.begin(), begun.end(), failed)) {
    return begun;
  }
  const auto work = [records = std::make_shared<const std::vector<StoredMessage>>(std::move(batch)), begun, mode,
                     queue = queue_](Writer& writer) {
    std::vector<PutResult> results = begun;
    const std::int64_t number = writer.records.make_queue(queue);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].status != PutStatus::failed) {
        results[i].status = writer.records.put(number, (*records)[i], mode);
      }
    }
    return results;
  };
  const auto ring = [queue = queue_, &doorbell = store_.doorbell()](const std::vector<PutResult>& results) {
    doorbell.ring_put(queue, results);
  };
  auto put = store_.write<std::vector<PutResult>>({.work = work, .committed = ring}, deadline);
  if (put) {
    return std::move(*put);
  }
  for (PutResult& result : begun) {
    result = failed(result) ? result : PutResult{PutStatus::failed, put.error()};
  }
  return begun;
}

}  // namespace

std::unique_ptr<Operator> make_operator(SharedStore& store, std::string queue) {
  return std::make_unique<SqliteOperator>(store, std::move(queue));
}

}  // namespace sluice::queue::sqlite
