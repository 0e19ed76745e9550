#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "host/isolation/ledger_file.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/recovery_plan.hpp"

namespace sluice::runtime {

/// A dead host's ledger on its way to history: tells the sources, again where they could not be reached, and keeps
/// count. Of one thread.
class OrphanSettlement {
 public:
  OrphanSettlement(std::unique_ptr<isolation::OrphanLedger> ledger, std::vector<RecoveryStep> steps);

  /// Settles what is open, and then tells the owners' stores that the host has ended; `owners` may be null. True when
  /// nothing is left to try: everything is settled, or has been tried often enough.
  bool settle(queue::Queues& queues, queue::Owners* owners, SteadyTime now, Deadline deadline);
  /// When to try again.
  SteadyTime due() const { return due_; }

  const isolation::LedgerContents& contents() const { return ledger_->contents(); }
  /// What came of it so far.
  const isolation::LedgerSettlement& tally() const { return tally_; }
  /// Why something is still open; empty: nothing is.
  const std::string& trouble() const { return trouble_; }
  /// The end: it becomes history, or goes where it has nothing to tell.
  Result<void> close(WallTime now, std::string by);

 private:
  void tell(queue::Owners* owners, Deadline deadline);
  void settle_step(RecoveryStep& step, queue::Source& source, Deadline deadline);

  const std::unique_ptr<isolation::OrphanLedger> ledger_;
  std::vector<RecoveryStep> open_;
  isolation::LedgerSettlement tally_;
  std::string trouble_;
  bool told_ = false;  ///< the owners' stores
  std::uint32_t tries_ = 0;
  SteadyTime due_{};
};

}  // namespace sluice::runtime
