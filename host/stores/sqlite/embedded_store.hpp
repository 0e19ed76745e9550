#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "host/stores/sqlite/changes.hpp"
#include "host/stores/sqlite/commit_queue.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/record_reader.hpp"
#include "host/stores/sqlite/records.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/stores/sqlite/store_file.hpp"

namespace sluice::queue::sqlite {

/// The Store on SQLite. What changes messages goes through the one writing connection, in group commits; operators read
/// through another, so that neither waits for the other.
class EmbeddedStore final : public Store {
 public:
  EmbeddedStore(SqliteOptions options, const Clock& clock, Random& random);

  /// Once, before anything else.
  Result<void> open();

  Result<std::vector<Claim>> claim(const QueueAddress& address, std::size_t max, Duration visibility,
                                   Deadline deadline) override;
  std::vector<SettleResult> settle(const QueueAddress& address, std::span<const Settlement> settlements,
                                   Deadline deadline) override;
  std::vector<ExtendResult> extend(const QueueAddress& address, std::span<const Receipt> receipts, Duration visibility,
                                   Deadline deadline) override;
  std::vector<SendResult> send(const std::string& queue, std::span<const NewMessage> messages,
                               Deadline deadline) override;

  Result<StoredMessage> get(const std::string& queue, const std::string& id, Deadline deadline) override;
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override;
  Result<QueueStats> stats(const QueueAddress& address, Deadline deadline) override;
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override;
  std::vector<ChangeResult> change(const std::string& queue, std::span<const Change> changes,
                                   Deadline deadline) override;
  Result<StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                             std::span<const ContentEdit> edits, Deadline deadline) override;
  std::vector<PutResult> put(const std::string& queue, std::span<const StoredMessage> records, PutMode mode,
                             Deadline deadline) override;

 private:
  /// `bytes` counts body, content type, group, attributes and what else is kept with the message.
  std::optional<Error> refusal(const std::string& queue, const std::string& id, std::size_t bytes) const;
  void send_batch(const std::string& queue, std::span<const NewMessage> messages, std::span<SendResult> results,
                  Deadline deadline);
  Result<StoredMessage> edit_record(const std::string& queue, const std::string& id, std::int64_t version,
                                    std::span<const ContentEdit> edits);
  void put_batch(const std::string& queue, std::span<const StoredMessage> records, PutMode mode,
                 std::span<PutResult> results, Deadline deadline);
  /// Runs `work` on one state of the file.
  Result<void> read(Deadline deadline, const std::function<void(RecordReader&)>& work);

  // Fixed after construction.
  const SqliteOptions options_;
  const Clock& clock_;
  // Synchronises itself.
  Random& random_;
  StoreFile file_;

  // Touched only by the leader of commits_.
  std::unique_ptr<Connection> writer_;
  std::unique_ptr<Records> records_;
  std::unique_ptr<RecordReader> writer_reader_;
  std::unique_ptr<Changes> changes_;

  Mutex reader_mutex_;
  // Guarded by reader_mutex_.
  std::unique_ptr<Connection> reader_ SLUICE_GUARDED_BY(reader_mutex_);
  std::unique_ptr<RecordReader> record_reader_ SLUICE_GUARDED_BY(reader_mutex_);

  // Synchronises itself.
  std::unique_ptr<CommitQueue> commits_;
};

}  // namespace sluice::queue::sqlite
