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

/// When in the life of its host a ledger is made.
enum class LedgerStart {
  first,  ///< before anything is held
  late,   ///< jobs may hold something already
};

/// The crash ledger of this process: a file that the kernel keeps when the process is gone, locked for as long as it
/// lives. A ledger whose lock can be had has no living owner, whatever its process number says.
///
/// Thread-safe. Nothing of it makes a system call while messages pass, but for the rare moments in which the file
/// grows. The file disappears with the object unless something is still held in it.
class HostLedger {
 public:
  /// Makes a file in `folder` (made too, 0700). An Error that names cause and mend where that cannot be: the host goes
  /// on without. One that is made late says that it does not tell of everything, until `has_all_jobs`.
  static Result<std::unique_ptr<HostLedger>> create(const std::string& folder, const LedgerOwner& owner,
                                                    const Clock& clock, LedgerStart start = LedgerStart::first);
  ~HostLedger();
  HostLedger(const HostLedger&) = delete;
  HostLedger& operator=(const HostLedger&) = delete;

  /// A job's part; never null. Beyond format::kJobs of them, and where there is no room, it counts what is held and
  /// tells no more of it. May outlive this object. What it still holds in the end is forgotten, and left to its leases.
  /// `unrecorded`: messages that the job holds already; each of them is dropped as slot 0.
  std::unique_ptr<JobLedger> open(LedgerJob job, std::uint32_t unrecorded = 0);
  /// Once, of a ledger that was made late: every job that holds something has its part.
  void has_all_jobs();

  /// False: its file was removed, replaced or cut off. It can be used as before, but the next host will not know what
  /// is held.
  bool is_whole() const;

  /// Where the crash handler writes. Lives as long as this object and every job's part.
  CrashRecord& crash_record();

 private:
  explicit HostLedger(std::shared_ptr<LedgerMapping> mapping);
  std::shared_ptr<LedgerMapping> mapping_;
};

}  // namespace sluice::isolation
