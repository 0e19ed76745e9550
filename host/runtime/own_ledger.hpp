#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/isolation/deferred_ledger.hpp"
#include "host/isolation/host_ledger.hpp"
#include "host/observe/log.hpp"

namespace sluice::runtime {

/// A host that could not make its crash ledger tries again after this.
inline constexpr Duration kLedgerRetry = std::chrono::seconds(30);

/// This host's crash ledger, from the start or from later on: decides when it is tried again, gives jobs their parts,
/// and the crash handler its place. One that comes late is honest: what is held and is not in it is counted in it,
/// until the last of that is settled. One that is lost while it is in use stays lost until the host is restarted.
///
/// Thread-safe; `begin`, `attempt` and `end` by one thread at a time.
class OwnLedger {
 public:
  /// `clock` and `log` outlive the object.
  OwnLedger(std::string folder, isolation::LedgerOwner owner, const Clock& clock, observe::Log& log);
  ~OwnLedger();
  OwnLedger(const OwnLedger&) = delete;
  OwnLedger& operator=(const OwnLedger&) = delete;

  /// Makes it. A host that cannot have one says so in its log, and goes on without until `attempt` brings it. Before
  /// any job.
  void begin();
  /// Tries again if that is due, and says when it is next; SteadyTime::max(): it is there, and if it was lost meanwhile
  /// the log says so.
  SteadyTime attempt(SteadyTime now) SLUICE_EXCLUDES(mutex_);
  /// Gives it up. What is held in it then stays for the next host.
  void end() SLUICE_EXCLUDES(mutex_);

  /// The part of a job with these queues; never null, and usable for as long as somebody has it.
  std::shared_ptr<isolation::JobLedger> open(const std::vector<isolation::LedgerJob>& parts) SLUICE_EXCLUDES(mutex_);
  /// Why there is none; empty: there is one.
  std::string trouble() const SLUICE_EXCLUDES(mutex_);

 private:
  void take(std::unique_ptr<isolation::HostLedger> ledger) SLUICE_EXCLUDES(mutex_);
  void look_after(const isolation::HostLedger& ledger) SLUICE_REQUIRES(mutex_);
  void refused(const Error& error, SteadyTime now) SLUICE_EXCLUDES(mutex_);

  // Fixed after construction.
  const std::string folder_;
  const isolation::LedgerOwner owner_;
  const Clock& clock_;
  observe::Log& log_;
  // Guarded by mutex_.
  mutable Mutex mutex_;
  std::unique_ptr<isolation::HostLedger> ledger_ SLUICE_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<isolation::DeferredLedger>> waiting_ SLUICE_GUARDED_BY(mutex_);
  std::string trouble_ SLUICE_GUARDED_BY(mutex_);
  SteadyTime due_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::max();
};

}  // namespace sluice::runtime
