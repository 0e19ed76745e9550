#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/isolation/host_ledger.hpp"
#include "host/isolation/ledger_file.hpp"
#include "host/observe/log.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/orphan_settlement.hpp"
#include "host/runtime/own_ledger.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// What a recovery works with. All of it outlives the recovery.
struct RecoveryParts {
  std::string folder;            ///< of the ledgers
  isolation::LedgerOwner owner;  ///< this host: only ledgers of its own host file are its affair
  queue::Queues& queues;
  queue::Owners* owners;  ///< of the same stores; may be null
  const Clock& clock;
  Random& random;
  observe::Log& log;
  std::function<void()> looked;  ///< called by its thread once what lay there at its start was tried; may be empty
  OwnLedger* own = nullptr;      ///< this host's, which its thread tries again where there is none yet; may be null
};

/// Settles what dead hosts held: those before this one, as soon as it starts, and its neighbours on the same folder, as
/// soon as the kernel says that one of them has closed its ledger. Thread-safe.
class LedgerRecovery final : public Service {
 public:
  explicit LedgerRecovery(RecoveryParts parts);
  ~LedgerRecovery() override;

  /// The jobs whose policies count from now on.
  void use(std::vector<config::JobConfig> jobs);

  /// True once what lay there at the start was tried, and settled unless its store does not answer. A job that claims
  /// before that may take what is about to be settled, and then nobody is blamed for the death.
  bool has_looked() const { return looked_.load(); }

  Result<void> start() override;
  void stop() override;

 private:
  void attend(const std::stop_token& stop);
  void take_orphans();
  void take(const std::string& file);
  void settle_what_is_due(const std::stop_token& stop);
  void finish(OrphanSettlement& settlement);
  /// This host's own ledger; when to look after it again.
  SteadyTime try_own();
  void wait_until_something_happens(SteadyTime at_latest);

  // Fixed after construction.
  const RecoveryParts parts_;
  const isolation::LedgerFolder folder_;
  const int bell_;
  const int watch_;  ///< tells of files that are closed in the folder; -1: nobody does
  // Synchronises itself.
  std::atomic<bool> looked_{false};
  // Guarded by mutex_.
  Mutex mutex_;
  std::vector<config::JobConfig> jobs_ SLUICE_GUARDED_BY(mutex_);
  // Touched only by its thread.
  std::vector<std::unique_ptr<OrphanSettlement>> under_way_;
  std::vector<std::string> troubled_;  ///< files that were complained of

  std::jthread thread_;
};

}  // namespace sluice::runtime
