#include "host/runtime/own_ledger.hpp"

#include <utility>

#include "host/isolation/crash_handler.hpp"
#include "host/isolation/split_ledger.hpp"

namespace sluice::runtime {

using isolation::DeferredLedger;
using isolation::HostLedger;
using isolation::LedgerStart;

OwnLedger::OwnLedger(std::string folder, isolation::LedgerOwner owner, const Clock& clock, observe::Log& log)
    : folder_(std::move(folder)), owner_(std::move(owner)), clock_(clock), log_(log) {}

OwnLedger::~OwnLedger() { end(); }

void OwnLedger::begin() {
  auto made = HostLedger::create(folder_, owner_, clock_);
  isolation::install_crash_handler(made ? &(*made)->crash_record() : nullptr);
  if (!made) {
    refused(made.error(), clock_.steady_now());
    return;
  }
  const MutexLock lock(mutex_);
  ledger_ = std::move(*made);
}

SteadyTime OwnLedger::attempt(SteadyTime now) {
  {
    const MutexLock lock(mutex_);
    if (ledger_) {
      look_after(*ledger_);
      return SteadyTime::max();
    }
    if (now < due_) {
      return due_;
    }
  }
  auto made = HostLedger::create(folder_, owner_, clock_, LedgerStart::late);
  if (!made) {
    refused(made.error(), now);
    return now + kLedgerRetry;
  }
  take(std::move(*made));
  return SteadyTime::max();
}

void OwnLedger::look_after(const isolation::HostLedger& ledger) {
  if (!trouble_.empty() || ledger.is_whole()) {
    return;
  }
  trouble_ = "the file in " + folder_ + " was removed, replaced or cut off; restart the host, which makes another";
  log_.warn("the crash ledger is lost: after a crash what was in flight waits for its leases to run out",
            {{"why", trouble_}});
}

void OwnLedger::refused(const Error& error, SteadyTime now) {
  {
    const MutexLock lock(mutex_);
    due_ = now + kLedgerRetry;
    if (!std::exchange(trouble_, error.message()).empty()) {
      return;
    }
  }
  log_.warn("no crash ledger: after a crash what was in flight waits for its leases to run out; it is tried again",
            {{"why", error.message()}, {"every", "30s"}});
}

void OwnLedger::take(std::unique_ptr<HostLedger> ledger) {
  isolation::install_crash_handler(&ledger->crash_record());
  std::size_t unrecorded = 0;
  {
    const MutexLock lock(mutex_);
    for (const std::weak_ptr<DeferredLedger>& waiting : std::exchange(waiting_, {})) {
      if (const auto job = waiting.lock()) {
        unrecorded += job->attach(*ledger);
      }
    }
    ledger->has_all_jobs();
    ledger_ = std::move(ledger);
    trouble_.clear();
    due_ = SteadyTime::max();
  }
  log_.info("the crash ledger is kept from now on", {{"folder", folder_}, {"held_before", unrecorded}});
}

void OwnLedger::end() {
  const MutexLock lock(mutex_);
  if (ledger_) {
    isolation::install_crash_handler(nullptr);
  }
  ledger_.reset();
  waiting_.clear();
  due_ = SteadyTime::max();
}

std::shared_ptr<isolation::JobLedger> OwnLedger::open(const std::vector<isolation::LedgerJob>& parts) {
  const MutexLock lock(mutex_);
  if (ledger_) {
    return isolation::open_parts(*ledger_, parts);
  }
  std::erase_if(waiting_, [](const auto& waiting) { return waiting.expired(); });
  auto deferred = std::make_shared<DeferredLedger>(parts);
  waiting_.push_back(deferred);
  return deferred;
}

std::string OwnLedger::trouble() const {
  const MutexLock lock(mutex_);
  return trouble_;
}

}  // namespace sluice::runtime
