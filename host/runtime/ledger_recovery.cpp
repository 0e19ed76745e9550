#include "host/runtime/ledger_recovery.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/signal_block.hpp"
#include "host/isolation/state_file_error.hpp"

namespace sluice::runtime {
namespace {

/// Where the kernel tells of nothing, as on file systems of other machines.
constexpr Duration kLook = std::chrono::seconds(10);
constexpr Duration kSettleTime = std::chrono::seconds(3);
constexpr std::size_t kHistory = 100;

std::string why_it_died(const isolation::LedgerContents& ledger) {
  return ledger.crash ? ledger.crash->summary() : "nothing says why: killed, out of memory, or power lost";
}

}  // namespace

LedgerRecovery::LedgerRecovery(RecoveryParts parts)
    : parts_(std::move(parts)),
      folder_(parts_.folder),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  if (watch_ >= 0) {
    // A process that dies closes what it had open; a ledger that is closed for good has lost its owner.
    ::inotify_add_watch(watch_, parts_.folder.c_str(), IN_CLOSE_WRITE | IN_ONLYDIR);
  }
}

LedgerRecovery::~LedgerRecovery() {
  stop();
  ::close(bell_);
  if (watch_ >= 0) {
    ::close(watch_);
  }
}

void LedgerRecovery::use(std::vector<config::JobConfig> jobs) {
  const MutexLock lock(mutex_);
  jobs_ = std::move(jobs);
}

Result<void> LedgerRecovery::start() {
  if (bell_ < 0) {
    return isolation::state_file_error("what dead hosts held cannot be settled", EMFILE);
  }
  try {
    const SignalBlock block;
    thread_ = std::jthread([this](const std::stop_token& stop) { attend(stop); });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unavailable, std::string("no thread to settle what dead hosts held: ") + error.what());
  }
  return {};
}

void LedgerRecovery::stop() {
  thread_.request_stop();
  const std::uint64_t one = 1;
  static_cast<void>(::write(bell_, &one, sizeof(one)) < 0);
  if (thread_.joinable()) {
    thread_.join();
  }
}

void LedgerRecovery::attend(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    take_orphans();
    settle_what_is_due(stop);
    if (!looked_.exchange(true) && parts_.looked) {
      parts_.looked();
    }
    if (!stop.stop_requested()) {
      wait_until_something_happens(try_own());
    }
  }
}

SteadyTime LedgerRecovery::try_own() {
  return parts_.own == nullptr ? SteadyTime::max() : parts_.own->attempt(parts_.clock.steady_now());
}

void LedgerRecovery::take_orphans() {
  for (const std::string& file : folder_.open_ledgers()) {
    take(file);
  }
}

void LedgerRecovery::take(const std::string& file) {
  auto orphan = isolation::OrphanLedger::take(file);
  if (!orphan && orphan.error().code() == ErrorCode::corrupt) {
    parts_.log.warn("a crash ledger cannot be read and is set aside; what it held comes back when its leases run out",
                    {{"why", orphan.error().message()}, {"kept", folder_.set_aside(file)}});
    return;
  }
  if (!orphan) {
    if (std::find(troubled_.begin(), troubled_.end(), file) == troubled_.end()) {
      troubled_.push_back(file);
      parts_.log.warn("a crash ledger cannot be settled", {{"why", orphan.error().message()}});
    }
    return;
  }
  if (!*orphan || (*orphan)->contents().config != parts_.owner.config) {
    return;
  }
  std::vector<config::JobConfig> jobs;
  {
    const MutexLock lock(mutex_);
    jobs = jobs_;
  }
  auto steps = plan_recovery((*orphan)->contents(), jobs, parts_.random, parts_.clock.wall_now());
  under_way_.push_back(std::make_unique<OrphanSettlement>(std::move(*orphan), std::move(steps)));
}

void LedgerRecovery::settle_what_is_due(const std::stop_token& stop) {
  for (auto& settlement : under_way_) {
    const SteadyTime now = parts_.clock.steady_now();
    if (stop.stop_requested() || now < settlement->due()) {
      continue;
    }
    if (settlement->settle(parts_.queues, parts_.owners, now, Deadline::after(parts_.clock, kSettleTime))) {
      finish(*settlement);
      settlement.reset();
    } else {
      parts_.log.warn("what a dead host held cannot be settled yet",
                      {{"host", settlement->contents().host}, {"why", settlement->trouble()}});
    }
  }
  under_way_.erase(std::remove(under_way_.begin(), under_way_.end(), nullptr), under_way_.end());
}

void LedgerRecovery::finish(OrphanSettlement& settlement) {
  const auto closed = settlement.close(parts_.clock.wall_now(), parts_.owner.host);
  const isolation::LedgerContents& ledger = settlement.contents();
  const isolation::LedgerSettlement& tally = settlement.tally();
  if (!closed) {
    parts_.log.warn("a settled crash ledger cannot be kept", {{"why", closed.error().message()}});
  }
  if (ledger.held.empty() && !ledger.crash) {
    return;
  }
  parts_.log.warn("settled what a dead host held", {{"host", ledger.host},
                                                    {"died", why_it_died(ledger)},
                                                    {"counted", tally.counted},
                                                    {"suspects", tally.suspects},
                                                    {"released", tally.released},
                                                    {"finished", tally.finished},
                                                    {"gone", tally.gone},
                                                    {"unsettled", tally.unsettled}});
  folder_.forget_all_but(kHistory);
}

void LedgerRecovery::wait_until_something_happens(SteadyTime at_latest) {
  const SteadyTime now = parts_.clock.steady_now();
  SteadyTime until = std::min(now + kLook, at_latest);
  for (const auto& settlement : under_way_) {
    until = std::min(until, settlement->due());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(until - now, Duration::zero()));
  std::array<pollfd, 2> waits{pollfd{bell_, POLLIN, 0}, pollfd{watch_, POLLIN, 0}};
  ::poll(waits.data(), waits.size(), static_cast<int>(left.count()));
  // What the events say does not matter: the folder is looked at.
  alignas(inotify_event) std::array<char, 4096> events{};
  while (watch_ >= 0 && ::read(watch_, events.data(), events.size()) > 0) {
  }
}

}  // namespace sluice::runtime
