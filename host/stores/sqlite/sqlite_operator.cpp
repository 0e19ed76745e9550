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
constexpr std::size_t kBatchChanges = 500;  // of one transaction
// Each change makes the version one more; so many can never come together.
constexpr std::int64_t kLastVersion = std::numeric_limits<std::int64_t>::max() / 2;

std::size_t size_of(const StoredMessage& record) { return content_bytes(record.message) + record.native.size(); }

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
      bytes += payload_bytes(*record);
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
  Changes(Records& records, const std::string& queue, WallTime now)
      : records_(records), queue_(queue), number_(records.queue(queue)), now_(now) {}

  ChangeResult apply(const Change& change) {
    auto before = records_.find(number_, change.id);
    if (!before) {
      return {ChangeStatus::not_found, 0, no_message(queue_, change.id)};
    }
    if (auto end = core::foregone(change, before->state, queue_, now_)) {
      return std::move(*end);
    }
    std::optional<WallTime> front;
    if (change.action == ChangeAction::move_to_front) {
      front = next_front(before->half());
    } else {
      fronts_.clear();
    }
    if (change.action == ChangeAction::redrive) {
      before->state.held_place = records_.groups().held_place(before->seq);
    }
    const core::StateChange made = core::change(change, before->state, now_, front);
    records_.change(*before, made, now_);
    return {ChangeStatus::applied, made.removes ? 0 : before->state.version + 1, {}};
  }

 private:
  WallTime next_front(std::int64_t half) {
    const auto [known, fresh] = fronts_.try_emplace(half);
    const auto first =
        fresh ? records_.ready().front(half, records_.groups().kept(half) != Kept::none) : std::optional(known->second);
    return known->second = core::place_before(first, now_);
  }

  Records& records_;
  const std::string& queue_;
  const std::int64_t number_;
  const WallTime now_;
  std::map<std::int64_t, WallTime> fronts_;  ///< where the first message of a half is, while it is known
};

struct Editing {
  std::string id;
  std::int64_t version = 0;
  std::vector<ContentEdit> edits;
  std::size_t most_bytes = 0;
};

Result<StoredMessage> edit_record(Writer& writer, const std::string& queue, const Editing& editing, WallTime now) {
  const auto before = writer.records.find(writer.records.queue(queue), editing.id);
  if (!before) {
    return no_message(queue, editing.id);
  }
  if (before->state.version != editing.version) {
    return changed_since(queue, editing.id);
  }
  // It is there, unless the connection has failed: then nobody looks at what comes of this.
  StoredMessage record = writer.reader.read(before->seq).value_or(StoredMessage());
  SLUICE_PASS_ON(apply_edits(record.message, editing.edits));
  if (auto error = refused_message(editing.id, content_bytes(record.message), editing.most_bytes)) {
    return std::move(*error);
  }
  writer.records.edit(*before, record.message, now);
  return writer.reader.read(before->seq).value_or(StoredMessage());
}

class SqliteOperator final : public Operator {
 public:
  SqliteOperator(SharedStore& store, std::string queue) : store_(store), queue_(std::move(queue)) {}

  Result<StoredMessage> get(const std::string& id, Deadline deadline) override {
    SLUICE_TRY(found, store_.look<std::optional<StoredMessage>>(
                          queue_, [id](RecordReader& reader, std::int64_t queue) { return reader.find(queue, id); },
                          deadline));
    return *found ? Result<StoredMessage>(std::move(**found)) : no_message(queue_, id);
  }

  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    const auto from = read_cursor(request.cursor, request.newest_first);
    if (!from) {
      return Error(ErrorCode::invalid, "\"" + request.cursor + "\" is not a cursor of this list; start without one");
    }
    const auto work = [request, from = *from](RecordReader& reader, std::int64_t queue) {
      const std::size_t limit = std::min(request.limit, kListLimit);
      const auto places = reader.list(half_of(queue, request.half), from, limit + 1, request.newest_first);
      return page_of(reader, request, places, limit);
    };
    return store_.look<ListPage>(queue_, work, deadline);
  }

  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override {
    const auto work = [half = request.half, &clock = store_.clock()](RecordReader& reader, std::int64_t queue) {
      return reader.stats(half_of(queue, half), clock.wall_now());
    };
    return store_.look<QueueStats>(queue_, work, deadline);
  }

  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    const auto work = [request, &clock = store_.clock()](RecordReader& reader, std::int64_t queue) {
      return reader.overview(half_of(queue, request.half), request.ids, request.errors, clock.wall_now());
    };
    return store_.look<QueueOverview>(queue_, work, deadline);
  }

  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override {
    return in_batches<ChangeResult>(changes, kBatchChanges, [&](std::span<const Change> batch) {
      return change_batch({batch.begin(), batch.end()}, deadline);
    });
  }

  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override {
    const Editing editing{id, version, {edits.begin(), edits.end()}, store_.most_bytes()};
    struct Edited {
      StoredMessage record;
      std::optional<Error> refused;
    };
    const auto work = [editing, queue = queue_, &clock = store_.clock()](Writer& writer) {
      auto record = edit_record(writer, queue, editing, clock.wall_now());
      return record ? Edited{*std::move(record), {}} : Edited{{}, record.error()};
    };
    const auto tell = [queue = queue_, &doorbell = store_.doorbell()](const Edited& edited) {
      if (!edited.refused) {
        ring(doorbell, queue);
      }
    };
    SLUICE_TRY(edited, store_.write<Edited>({.work = work, .committed = tell}, deadline));
    return edited->refused ? Result<StoredMessage>(*std::move(edited->refused)) : std::move(edited->record);
  }

  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override {
    const auto put = [&](std::span<const StoredMessage> batch) {
      return put_batch({batch.begin(), batch.end()}, mode, deadline);
    };
    return in_batches<PutResult>(records, kBatchChanges, put, size_of);
  }

 private:
  /// Whatever an operator changes may show a message, let its group go on, or make room in flight: who waits looks.
  static void ring(Doorbell& doorbell, const std::string& queue) {
    doorbell.ring({queue, Half::standard});
    doorbell.ring({queue, Half::dlq});
  }
  std::vector<ChangeResult> change_batch(std::vector<Change> changes, Deadline deadline);
  std::vector<PutResult> put_batch(std::vector<StoredMessage> records, PutMode mode, Deadline deadline);

  SharedStore& store_;
  const std::string queue_;
};

std::vector<ChangeResult> SqliteOperator::change_batch(std::vector<Change> batch, Deadline deadline) {
  const auto changes = std::make_shared<const std::vector<Change>>(std::move(batch));
  using Results = std::vector<ChangeResult>;
  const auto work = [changes, queue = queue_, &clock = store_.clock()](Writer& writer) {
    Results results;
    Changes applied(writer.records, queue, clock.wall_now());
    for (const Change& change : *changes) {
      results.push_back(applied.apply(change));
    }
    return results;
  };
  const auto tell = [queue = queue_, &doorbell = store_.doorbell()](const Results& results) {
    if (std::any_of(results.begin(), results.end(),
                    [](const ChangeResult& result) { return result.status == ChangeStatus::applied; })) {
      ring(doorbell, queue);
    }
  };
  auto changed = store_.write<Results>({.work = work, .committed = tell}, deadline);
  return changed ? std::move(*changed) : Results(changes->size(), {ChangeStatus::failed, 0, changed.error()});
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
