#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/outbox_message.hpp"
#include "host/stores/outbox/outbox_source.hpp"

namespace sluice::queue::outbox {

/// An operator's side of an outbox. Its standard half is what has not been sent and has tries left, its DLQ half what
/// has none left; what was sent lies in neither. To remove a row is to mark it as sent without having published it: the
/// table is the application's, and only `prune` deletes. Content is never changed.
class OutboxOperator final : public Operator {
 public:
  /// `database` and `clock` outlive it.
  OutboxOperator(OutboxOptions options, Database& database, const Clock& clock)
      : options_(std::move(options)), database_(database), clock_(clock) {}

  Result<StoredMessage> get(const std::string& id, Deadline deadline) override;
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override;
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override;
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override;
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override;
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override;
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override;

 private:
  /// Asks a session, which is put back unless it is over.
  template <typename T>
  Result<T> ask(Deadline deadline, const std::function<Result<T>(AdminSession&)>& question);
  Result<void> inspected(Deadline deadline);
  std::optional<WallTime> oldest_since(std::int64_t id);
  /// What goes out with every message.
  Result<Origin> origin(Deadline deadline);
  StoredMessage message_of_row(StoredRow&& stored, const Origin& origin) const;
  std::string name() const { return "outbox:" + options_.settings.name; }

  // Fixed after construction.
  const OutboxOptions options_;
  Database& database_;
  const Clock& clock_;

  Mutex mutex_;
  std::vector<std::unique_ptr<AdminSession>> idle_ SLUICE_GUARDED_BY(mutex_);
  bool inspected_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<Origin> origin_ SLUICE_GUARDED_BY(mutex_);  ///< nothing: not yet known
  struct Oldest {
    std::int64_t id = 0;
    WallTime seen_at{};
  };
  std::optional<Oldest> oldest_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::outbox
