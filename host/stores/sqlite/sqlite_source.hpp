#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/bell_watch.hpp"
#include "host/stores/sqlite/quiet_file.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

/// One half of a queue, for a job.
class SqliteSource final : public Source {
 public:
  SqliteSource(SharedStore& store, QueueAddress address) : store_(store), address_(std::move(address)) {}
  ~SqliteSource() override { stop(); }

  const SourceTraits& traits() const override;
  void start(SourceEvents events) override;
  void stop() override;

  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override;
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override;

 private:
  struct Settling;

  std::optional<RecordReader::Version> file_version(Deadline deadline);
  Result<Claimed> look(const ClaimRequest& request, Deadline deadline);
  void settle_batch(std::span<const Completion> completions, std::span<SettleResult> results, Deadline deadline);
  Result<void> settle_some(const std::shared_ptr<Settling>& settling, Deadline deadline);
  void extend_batch(std::span<const Receipt> receipts, std::span<ExtendResult> results, Duration visibility,
                    Deadline deadline);
  std::shared_ptr<BellWatch> watch();

  // Fixed after construction.
  SharedStore& store_;
  const QueueAddress address_;
  // Synchronises itself.
  std::atomic<bool> held_{false};  ///< the last claim found as much in flight as may be
  std::atomic<bool> told_of_order_{false};
  std::atomic<std::uint64_t> limit_{0};  ///< of what may be in flight, as the last claim had it; 0: none
  QuietFile quiet_;

  Mutex mutex_;
  // Guarded by mutex_.
  std::shared_ptr<BellWatch> watch_ SLUICE_GUARDED_BY(mutex_);
  Doorbell::Subscription listening_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::sqlite
