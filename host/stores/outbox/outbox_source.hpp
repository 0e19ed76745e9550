#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/source.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/session_threads.hpp"
#include "host/stores/owned/event_gate.hpp"

namespace sluice::queue::outbox {

inline constexpr SourceTraits kOutboxTraits{
    .lease_per_delivery = false, .attempts_at_claim = false, .groups = true, .suspects = false};

/// Is told what becomes of an outbox's rows. Thread-safe; a call costs next to nothing, for there is one for each row.
class OutboxObserver {
 public:
  OutboxObserver() = default;
  OutboxObserver(const OutboxObserver&) = delete;
  OutboxObserver& operator=(const OutboxObserver&) = delete;
  virtual ~OutboxObserver() = default;

  /// A row of this aggregate type is marked as sent; `latency`: since its created_at, or since it was fetched first.
  virtual void published(const std::string& type, Duration latency) = 0;
  /// One is marked as failed, for this reason.
  virtual void failed(const std::string& type, const std::string& reason) = 0;
  /// So many rows were marked in one transaction.
  virtual void marked(std::size_t rows) = 0;
};

/// What a source or an operator of an outbox is told beside where it lies. A value.
struct OutboxOptions {
  Settings settings;
  std::string producer{};  ///< goes out with every message; empty: the table's id (SourceId)
  std::size_t fetch_limit = 1000;
  Duration poll_interval = std::chrono::seconds(5);
  std::function<void(const std::string& warning)> report{};  ///< from any thread, seldom; may be empty
  std::shared_ptr<OutboxObserver> observer{};                ///< may be null
};

/// A job's side of an outbox: rows as messages, in order within each group, while other hosts have the other buckets.
///
/// Nothing is written when a row is handed out: the source holds the right to it by the locks of its buckets. A
/// completion marks the row on the session that holds them; when that is gone all that is out is `lost`, and comes back
/// to whoever has the bucket next. A source that was not started can settle what another process was handed, under the
/// condition that the row has as many tries as then; it claims nothing.
class OutboxSource final : public Source {
 public:
  /// The references outlive it.
  OutboxSource(OutboxOptions options, const Selection& selection, Database& database, const Clock& clock,
               Random& random);
  ~OutboxSource() override;

  const SourceTraits& traits() const override { return kOutboxTraits; }
  void start(SourceEvents events) override;
  void stop() override;
  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override;
  bool holds(std::uint32_t /*part*/) override { return holder_.usable(); }
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override;

 private:
  /// What settling one completion takes.
  struct Step {
    std::size_t place;  ///< among the completions
    Mark mark;
  };

  /// What is out: the receipt's own number, and the tries it was handed out with.
  struct Held {
    std::int64_t number = 0;
    std::int64_t tries = 0;
    WallTime sent_at{};
    std::string type;
  };

  RowReader::Events row_events();
  void lost_all();
  bool is_ours(const Receipt& receipt, const RowKey& id) const SLUICE_REQUIRES(mutex_);
  Delivery deliver(Row&& row, WallTime now);
  /// What a claim took from the line, unless it was lost meanwhile.
  std::vector<Delivery> take(const ClaimRequest& request);
  void end(const RowKey& id, Fate fate);
  void write(std::span<const Step> steps, std::span<const Completion> completions, std::vector<SettleResult>& results,
             Deadline deadline);
  using WriteMarks = std::function<Result<std::vector<MarkStatus>>(std::span<const Mark>)>;
  Result<std::vector<MarkStatus>> mark_anyhow(std::vector<Mark> marks, const WriteMarks& write) const;
  void observe(const Mark& mark);
  void written_one(const Step& step, MarkStatus status, std::span<const Completion> completions,
                   std::vector<SettleResult>& results);
  std::vector<SettleResult> settle_for_others(std::span<const Completion> completions, Deadline deadline);
  void remember(const RowKey& id, WallTime fetched_at) SLUICE_REQUIRES(mutex_);
  std::shared_ptr<owned::EventGate> events() const;
  void put_aside(const std::vector<Row>& rows);
  void named(const SourceId& source);
  void warn(const std::string& text) const;

  // Fixed after construction.
  const OutboxOptions options_;
  Database& database_;
  const Clock& clock_;

  RowReader reader_;
  LockHolder holder_;

  mutable Mutex mutex_;
  std::shared_ptr<owned::EventGate> events_ SLUICE_GUARDED_BY(mutex_);  ///< null: it has not been started
  bool stopped_ SLUICE_GUARDED_BY(mutex_) = false;
  Origin origin_ SLUICE_GUARDED_BY(mutex_);      ///< known before the first row is
  std::string doubt_ SLUICE_GUARDED_BY(mutex_);  ///< about it, as it was told last
  std::int64_t handed_out_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint64_t losses_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< how often all that was out was lost
  std::unordered_map<RowKey, Held, RowKeyHash> held_ SLUICE_GUARDED_BY(mutex_);
  /// When rows that were lost had been fetched first, so that they are known again when they come back.
  std::unordered_map<RowKey, WallTime, RowKeyHash> seen_at_ SLUICE_GUARDED_BY(mutex_);
  std::deque<RowKey> seen_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::outbox
