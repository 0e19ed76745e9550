#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/isolation/crash_record.hpp"
#include "host/isolation/running_handler.hpp"
#include "host/queue/message.hpp"

namespace sluice::isolation {

class LedgerMapping;

/// Whose ledger it is. A value.
struct LedgerOwner {
  std::string host;           ///< its name
  std::string config;         ///< the host file, absolute: which stores its queues lie in
  std::string incarnation{};  ///< as an owner of parts of queues; empty: it owns none
};

/// A job, as its part of the ledger names it.
struct LedgerJob {
  HandlerFacts facts;
  queue::QueueAddress address;
};

/// The crash ledger of this process: a file that the kernel keeps when the process is gone, locked for as long as it
/// lives. A ledger whose lock can be had has no living owner, whatever its process number says.
///
/// Thread-safe. Nothing of it makes a system call while messages pass, but for the rare moments in which the file
/// grows. The file disappears with the object unless something is still held in it.
class HostLedger {
 public:
  /// Makes a file in `folder` (made too, 0700). An Error where that cannot be written to: the host goes on without.
  static Result<std::unique_ptr<HostLedger>> create(const std::string& folder, const LedgerOwner& owner,
                                                    const Clock& clock);
  ~HostLedger();
  HostLedger(const HostLedger&) = delete;
  HostLedger& operator=(const HostLedger&) = delete;

  /// A job's part; null when there are too many jobs. May outlive this object. What it still holds in the end is
  /// forgotten, and left to its leases.
  std::unique_ptr<JobLedger> open(LedgerJob job);

  /// Where the crash handler writes. Lives as long as this object and every job's part.
  CrashRecord& crash_record();
  const std::string& file() const;

 private:
  explicit HostLedger(std::shared_ptr<LedgerMapping> mapping);
  std::shared_ptr<LedgerMapping> mapping_;
};

}  // namespace sluice::isolation
