#pragma once

#include <utility>

#include "base/mutex.hpp"
#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox {

/// Is told what becomes of an outbox's rows. Thread-safe; a call costs next to nothing, for there is one for each row.
class OutboxObserver : public Resource {
 public:
  /// A row of this aggregate type is marked as sent; `latency`: since its created_at, or since it was fetched first.
  virtual void published(const std::string& type, Duration latency) = 0;
  /// One is marked as failed, for this reason.
  virtual void failed(const std::string& type, const std::string& reason) = 0;
  /// So many rows were marked in one transaction.
  virtual void marked(std::size_t rows) = 0;
  /// So many were counted that no job takes.
  virtual void excluded(std::uint64_t rows) = 0;
};

/// The jobs that take rows of an outbox. What none of them takes is excluded: it waits for nobody. Thread-safe.
class TakingJobs : public Resource {
 public:
  /// `standing`: those of whoever only looks, and has no sources of theirs.
  explicit TakingJobs(std::vector<Selection> standing = {}) : standing_(std::move(standing)) {}

  /// One more, for as long as somebody has what is returned.
  [[nodiscard]] std::shared_ptr<const Selection> add(const Selection& job);
  std::vector<Selection> all() const;

 private:
  const std::vector<Selection> standing_;
  mutable Mutex mutex_;
  std::vector<std::weak_ptr<const Selection>> with_source_ SLUICE_GUARDED_BY(mutex_);
};

/// What a source or an operator of an outbox is told. A value.
struct OutboxOptions {
  Settings settings;
  std::function<void(const std::string& warning)> report{};  ///< from any thread, seldom; may be empty
  std::shared_ptr<OutboxObserver> observer{};                ///< may be null
  std::shared_ptr<TakingJobs> jobs = std::make_shared<TakingJobs>();
};

/// A job's side of an outbox. The references outlive it. Fails where no file descriptor is left.
Result<std::unique_ptr<Source>> make_outbox_source(OutboxOptions options, const Selection& selection,
                                                   Database& database, const Clock& clock, Random& random);
/// An operator's side of it.
std::unique_ptr<Operator> make_outbox_operator(OutboxOptions options, Database& database, const Clock& clock);

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
  /// By whose lists its rows count.
  std::vector<Selection> jobs() const { return options_.jobs->all(); }

 private:
  // Fixed after construction.
  const OutboxOptions options_;
  const std::unique_ptr<Database> database_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace sluice::queue::outbox
