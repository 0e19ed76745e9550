// The part of SqliteOperator that changes messages.

#include <algorithm>
#include <limits>
#include <utility>

#include "host/queue/content_edit.hpp"
#include "host/queue/message_errors.hpp"
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

}  // namespace

std::vector<ChangeResult> SqliteOperator::change(std::span<const Change> changes, Deadline deadline) {
  std::vector<ChangeResult> results(changes.size());
  for (std::size_t from = 0; from < changes.size(); from += kBatchChanges) {
    const std::size_t end = std::min(changes.size(), from + kBatchChanges);
    const auto work = [&](Writer& writer) {
      const WallTime now = store_.clock().wall_now();
      writer.changes.begin();
      for (std::size_t i = from; i < end; ++i) {
        results[i] = writer.changes.apply(queue_, changes[i], now);
      }
    };
    if (auto done = store_.write(work, true, deadline); !done) {
      std::fill(results.begin() + static_cast<std::ptrdiff_t>(from), results.begin() + static_cast<std::ptrdiff_t>(end),
                ChangeResult{ChangeStatus::failed, 0, done.error()});
    }
  }
  store_.doorbell().ring_changed(queue_, changes, results);
  return results;
}

Result<StoredMessage> SqliteOperator::edit_record(Writer& writer, const std::string& id, std::int64_t version,
                                                  std::span<const ContentEdit> edits) const {
  const auto number = writer.records.queue(queue_);
  const auto standing = number ? writer.records.find(*number, id) : std::nullopt;
  if (!standing) {
    return no_message(queue_, id);
  }
  if (standing->version != version) {
    return changed_since(queue_, id);
  }
  auto record = writer.reader.read(standing->seq);
  if (!record) {
    return no_message(queue_, id);
  }
  if (auto applied = apply_edits(record->message, edits); !applied) {
    return applied.error();
  }
  if (auto refused = store_.refused(id, content_bytes(record->message))) {
    return std::move(*refused);
  }
  writer.records.replace_content(*standing, record->message, store_.clock().wall_now());
  record = writer.reader.read(standing->seq);
  return record ? Result<StoredMessage>(std::move(*record)) : Result<StoredMessage>(no_message(queue_, id));
}

Result<StoredMessage> SqliteOperator::edit(const std::string& id, std::int64_t version,
                                           std::span<const ContentEdit> edits, Deadline deadline) {
  Result<StoredMessage> edited = no_message(queue_, id);
  const auto work = [&](Writer& writer) { edited = edit_record(writer, id, version, edits); };
  if (auto done = store_.write(work, true, deadline); !done) {
    return done.error();
  }
  return edited;
}

std::vector<PutResult> SqliteOperator::put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) {
  std::vector<PutResult> results(records.size());
  for (std::size_t from = 0; from < records.size();) {
    const std::size_t count = batch_of(records.subspan(from));
    put_batch(records.subspan(from, count), mode, std::span(results).subspan(from, count), deadline);
    from += count;
  }
  store_.doorbell().ring_put(queue_, results);
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
  const auto work = [&](Writer& writer) {
    const std::int64_t number = writer.records.make_queue(queue_);
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (results[i].status != PutStatus::failed) {
        results[i].status = writer.records.put(number, records[i], mode);
      }
    }
  };
  if (std::all_of(results.begin(), results.end(),
                  [](const PutResult& result) { return result.status == PutStatus::failed; })) {
    return;
  }
  if (auto done = store_.write(work, true, deadline); !done) {
    for (PutResult& result : results) {
      if (result.status != PutStatus::failed) {
        result = {PutStatus::failed, done.error()};
      }
    }
  }
}

}  // namespace sluice::queue::sqlite
