// The part of SqliteOperator that changes messages.

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "host/queue/content_edit.hpp"
#include "host/queue/message.hpp"
#include "host/stores/sqlite/sqlite_operator.hpp"

namespace sluice::queue::sqlite {

namespace {

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

// What one call works on. It is the call's and the store's together, for the caller may leave before the disk answers.

struct Changing {
  explicit Changing(std::span<const Change> batch) : changes(batch.begin(), batch.end()), results(batch.size()) {}
  std::vector<Change> changes;
  std::vector<ChangeResult> results;
  bool freed = false;
};

struct Editing {
  std::string id;
  std::int64_t version = 0;
  std::vector<ContentEdit> edits;
  std::size_t most_bytes = 0;
  Result<StoredMessage> edited = Error();
  bool freed = false;
};

struct Putting {
  Putting(std::span<const StoredMessage> batch, std::span<const PutResult> begun)
      : records(batch.begin(), batch.end()), results(begun.begin(), begun.end()) {}
  std::vector<StoredMessage> records;
  std::vector<PutResult> results;
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

Result<StoredMessage> edit_record(Writer& writer, const std::string& queue, const Editing& editing, WallTime now) {
  const auto number = writer.records.queue(queue);
  const auto standing = number ? writer.records.find(*number, editing.id) : std::nullopt;
  if (!standing) {
    return no_message(queue, editing.id);
  }
  if (standing->version != editing.version) {
    return changed_since(queue, editing.id);
  }
  auto record = writer.reader.read(standing->seq);
  if (!record) {
    return no_message(queue, editing.id);
  }
  SLUICE_PASS_ON(apply_edits(record->message, editing.edits));
  if (auto error = SharedStore::refused(editing.id, content_bytes(record->message), editing.most_bytes)) {
    return std::move(*error);
  }
  writer.records.replace_content(*standing, record->message, now);
  record = writer.reader.read(standing->seq);
  return record ? Result<StoredMessage>(std::move(*record)) : Result<StoredMessage>(no_message(queue, editing.id));
}

}  // namespace

std::vector<ChangeResult> SqliteOperator::change(std::span<const Change> changes, Deadline deadline) {
  std::vector<ChangeResult> results(changes.size());
  for (std::size_t from = 0; from < changes.size(); from += kBatchChanges) {
    const std::size_t count = std::min(changes.size() - from, kBatchChanges);
    const auto changing = std::make_shared<Changing>(changes.subspan(from, count));
    const auto work = [changing, queue = queue_, &clock = store_.clock()](Writer& writer) {
      const WallTime now = clock.wall_now();
      writer.changes.begin();
      for (std::size_t i = 0; i < changing->changes.size(); ++i) {
        changing->results[i] = writer.changes.apply(queue, changing->changes[i], now);
      }
      changing->freed = freed_any(writer, queue);
    };
    const auto ring = [changing, queue = queue_, &doorbell = store_.doorbell()] {
      if (changing->freed) {
        ring_both(doorbell, queue);
      }
      doorbell.ring_changed(queue, changing->changes, changing->results);
    };
    const auto place = results.begin() + static_cast<std::ptrdiff_t>(from);
    if (auto done = store_.write({.work = work, .committed = ring}, deadline); !done) {
      std::fill_n(place, count, ChangeResult{ChangeStatus::failed, 0, done.error()});
    } else {
      std::move(changing->results.begin(), changing->results.end(), place);
    }
  }
  return results;
}

Result<StoredMessage> SqliteOperator::edit(const std::string& id, std::int64_t version,
                                           std::span<const ContentEdit> edits, Deadline deadline) {
  const auto editing =
      std::make_shared<Editing>(Editing{id, version, {edits.begin(), edits.end()}, store_.most_bytes()});
  const auto work = [editing, queue = queue_, &clock = store_.clock()](Writer& writer) {
    editing->edited = edit_record(writer, queue, *editing, clock.wall_now());
    editing->freed = freed_any(writer, queue);
  };
  const auto ring = [editing, queue = queue_, &doorbell = store_.doorbell()] {
    if (editing->freed) {
      ring_both(doorbell, queue);
    }
  };
  SLUICE_PASS_ON(store_.write({.work = work, .committed = ring}, deadline));
  return std::move(editing->edited);
}

std::vector<PutResult> SqliteOperator::put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) {
  std::vector<PutResult> results(records.size());
  for (std::size_t from = 0; from < records.size();) {
    const std::size_t count = batch_of(records.subspan(from));
    put_batch(records.subspan(from, count), mode, std::span(results).subspan(from, count), deadline);
    from += count;
  }
  return results;
}

void SqliteOperator::put_batch(std::span<const StoredMessage> records, PutMode mode, std::span<PutResult> results,
                               Deadline deadline) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string& id = records[i].message.id;
    auto refused = store_.refused(id, size_of(records[i]));
    if (id.empty()) {
      refused = Error(ErrorCode::invalid, "a record without an id cannot be kept; give it one");
    }
    if (records[i].version > kLastVersion) {
      refused = Error(ErrorCode::invalid, "the record's version " + std::to_string(records[i].version) +
                                              " leaves no room for changes; give it a smaller one");
    }
    if (refused) {
      results[i] = {PutStatus::failed, std::move(*refused)};
    }
  }
  if (std::all_of(results.begin(), results.end(),
                  [](const PutResult& result) { return result.status == PutStatus::failed; })) {
    return;
  }
  const auto putting = std::make_shared<Putting>(records, results);
  const auto work = [putting, mode, queue = queue_](Writer& writer) {
    const std::int64_t number = writer.records.make_queue(queue);
    for (std::size_t i = 0; i < putting->records.size(); ++i) {
      if (putting->results[i].status != PutStatus::failed) {
        putting->results[i].status = writer.records.put(number, putting->records[i], mode);
      }
    }
  };
  const auto ring = [putting, queue = queue_, &doorbell = store_.doorbell()] {
    doorbell.ring_put(queue, putting->results);
  };
  if (auto done = store_.write({.work = work, .committed = ring}, deadline); !done) {
    for (PutResult& result : results) {
      if (result.status != PutStatus::failed) {
        result = {PutStatus::failed, done.error()};
      }
    }
  } else {
    std::move(putting->results.begin(), putting->results.end(), results.begin());
  }
}

}  // namespace sluice::queue::sqlite
