#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/queues.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/outbox_source.hpp"
#include "host/stores/outbox/rows.hpp"

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
  template <typename Question>
  auto ask(Deadline deadline, Question question) -> decltype(question(std::declval<AdminSession&>()));
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

/// The sides of one outbox, whatever the name says that they are asked for by. It has no sender, no board and no keys.
class OutboxQueues final : public Queues {
 public:
  /// The references outlive it.
  OutboxQueues(OutboxOptions options, std::unique_ptr<Database> database, const Clock& clock, Random& random)
      : options_(std::move(options)), database_(std::move(database)), clock_(clock), random_(random) {}

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override {
    return open_selected(address, {});
  }
  Result<std::unique_ptr<Source>> open_selected(const QueueAddress& address, const Selection& selection) override;
  Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) override;
  Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) override;
  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) override;

  Database& database() { return *database_; }

 private:
  // Fixed after construction.
  const OutboxOptions options_;
  const std::unique_ptr<Database> database_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace sluice::queue::outbox
