// The part of EmbeddedStore with which operators change messages.

#include <algorithm>
#include <limits>
#include <utility>

#include "host/queue/content_edit.hpp"
#include "host/queue/message_errors.hpp"
#include "host/stores/sqlite/embedded_store.hpp"

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

std::vector<ChangeResult> EmbeddedStore::change(const std::string& queue, std::span<const Change> changes,
                                                Deadline deadline) {
  std::vector<ChangeResult> results(changes.size());
  for (std::size_t from = 0; from < changes.size(); from += kBatchChanges) {
    const std::size_t end = std::min(changes.size(), from + kBatchChanges);
    const auto work = [&] {
      const WallTime now = clock_.wall_now();
      changes_->begin();
      for (std::size_t i = from; i < end; ++i) {
        results[i] = changes_->apply(queue, changes[i], now);
      }
    };
    if (auto done = commits_->run(work, true, deadline); !done) {
      std::fill(results.begin() + static_cast<std::ptrdiff_t>(from), results.begin() + static_cast<std::ptrdiff_t>(end),
                ChangeResult{ChangeStatus::failed, 0, done.error()});
    }
  }
  return results;
}

Result<StoredMessage> EmbeddedStore::edit_record(const std::string& queue, const std::string& id, std::int64_t version,
                                                 std::span<const ContentEdit> edits) {
  const auto number = records_->queue(queue);
  const auto standing = number ? records_->find(*number, id) : std::nullopt;
  if (!standing) {
    return no_message(queue, id);
  }
  if (standing->version != version) {
    return changed_since(queue, id);
  }
  auto record = writer_reader_->read(standing->seq);
  if (!record) {
    return no_message(queue, id);
  }
  if (auto applied = apply_edits(record->message, edits); !applied) {
    return applied.error();
  }
  if (auto refused = refusal(queue, id, content_bytes(record->message))) {
    return std::move(*refused);
  }
  records_->replace_content(*standing, record->message, clock_.wall_now());
  record = writer_reader_->read(standing->seq);
  return record ? Result<StoredMessage>(std::move(*record)) : Result<StoredMessage>(no_message(queue, id));
}

Result<StoredMessage> EmbeddedStore::edit(const std::string& queue, const std::string& id, std::int64_t version,
                                          std::span<const ContentEdit> edits, Deadline deadline) {
  Result<StoredMessage> edited = no_message(queue, id);
  if (auto done = commits_->run([&] { edited = edit_record(queue, id, version, edits); }, true, deadline); !done) {
    return done.error();
  }
  return edited;
}

std::vector<PutResult> EmbeddedStore::put(const std::string& queue, std::span<const StoredMessage> records,
                                          PutMode mode, Deadline deadline) {
  std::vector<PutResult> results(records.size());
  for (std::size_t from = 0; from < records.size();) {
    const std::size_t count = batch_of(records.subspan(from));
    put_batch(queue, records.subspan(from, count), mode, std::span(results).subspan(from, count), deadline);
    from += count;
  }
  return results;
}

void EmbeddedStore::put_batch(const std::string& queue, std::span<const StoredMessage> records, PutMode mode,
                              std::span<PutResult> results, Deadline deadline) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string& id = records[i].message.id;
    auto refused = refusal(queue, id, size_of(records[i]));
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
  const auto work = [&] {
    const std::int64_t number = records_->make_queue(queue);
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (results[i].status != PutStatus::failed) {
        results[i].status = records_->put(number, records[i], mode);
      }
    }
  };
  if (std::all_of(results.begin(), results.end(),
                  [](const PutResult& result) { return result.status == PutStatus::failed; })) {
    return;
  }
  if (auto done = commits_->run(work, true, deadline); !done) {
    for (PutResult& result : results) {
      if (result.status != PutStatus::failed) {
        result = {PutStatus::failed, done.error()};
      }
    }
  }
}

}  // namespace sluice::queue::sqlite
