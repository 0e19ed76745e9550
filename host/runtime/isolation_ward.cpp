#include "host/runtime/isolation_ward.hpp"

#include <poll.h>
#include <sys/inotify.h>

#include <cerrno>
#include <filesystem>

#include "base/ranges.hpp"
#include "base/signal_block.hpp"
#include "host/work/job.hpp"
#include "host/work/job_queues.hpp"
#include "host/work/job_threads.hpp"

namespace sluice::runtime {
namespace {

using isolation::HeldMessage;
using isolation::LedgerContents;
using isolation::LedgerSettlement;

config::JobConfig job_of(const HeldMessage& held, const std::vector<config::JobConfig>& jobs) {
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&](const config::JobConfig& job) { return job.name == held.job; });
  if (found != jobs.end()) {
    return *found;
  }
  config::JobConfig unknown;
  unknown.source = held.address.half == queue::Half::dlq ? config::Source::dlq : config::Source::standard;
  unknown.retry.max_attempts = std::numeric_limits<std::uint32_t>::max();
  return unknown;
}

std::string why_blamed(const HeldMessage& held, const LedgerContents& ledger) {
  if (held.committing == isolation::Committing::no) {
    return ledger.crash->failure_text(plugin::kReasonLimit);
  }
  return "its host ended while it committed the statements of this message, and of no other: " +
         (ledger.crash ? ledger.crash->failure_text(plugin::kReasonLimit / 2) : ledger.cause());
}

queue::Completion blame(const HeldMessage& held, const LedgerContents& ledger,
                        const std::vector<config::JobConfig>& jobs, Random& random, WallTime now) {
  work::FailurePolicy policy(job_of(held, jobs), ledger.host);
  if (held.blamed) {
    policy.handler = ledger.crash->handler;
  }
  work::Disposition disposition = work::dispose_crash(why_blamed(held, ledger), held.attempt, policy, random);
  return work::completion_of(held.receipt, std::move(disposition), now);
}

using queue::SettleStatus;

/// With the pauses below about four minutes; by then most leases have run out.
constexpr std::uint32_t kTries = 8;
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);

/// Where the kernel tells of nothing, as on file systems of other machines.
constexpr Duration kLook = std::chrono::seconds(10);
constexpr Duration kSettleTime = std::chrono::seconds(3);
constexpr std::size_t kHistory = 100;

// The first jobs begin without what a store that does not answer keeps from being settled.
constexpr Duration kRecoveryTime = std::chrono::seconds(3);

std::string absolute(const std::string& file) {
  std::error_code code;
  const std::filesystem::path path = std::filesystem::absolute(file, code);
  return code ? file : path.lexically_normal().string();
}

}  // namespace

using isolation::HostLedger;
using isolation::JobSlots;
using isolation::LedgerStart;

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

void OwnLedger::take(std::shared_ptr<HostLedger> ledger) {
  isolation::install_crash_handler(&ledger->crash_record());
  std::size_t unrecorded = 0;
  {
    const MutexLock lock(mutex_);
    for (const std::weak_ptr<JobSlots>& waiting : std::exchange(waiting_, {})) {
      if (const auto job = waiting.lock()) {
        unrecorded += job->attach(ledger);
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
  auto opened = std::make_shared<JobSlots>(parts);
  std::erase_if(waiting_, [](const auto& waiting) { return waiting.expired(); });
  if (ledger_) {
    opened->attach(ledger_);
  } else {
    waiting_.push_back(opened);
  }
  return opened;
}

std::vector<RecoveryStep> plan_recovery(const LedgerContents& ledger, const std::vector<config::JobConfig>& jobs,
                                        Random& random, WallTime now) {
  const bool blames = ledger.crash && ledger.crash->blamed && ledger.crash->slot != isolation::kNoSlot;
  const bool known = blames || (ledger.unclean_end && !ledger.crash);
  std::map<queue::QueueAddress, RecoveryStep> steps;
  for (const HeldMessage& held : ledger.held) {
    RecoveryStep& step = steps.try_emplace(held.address, RecoveryStep{held.address, {}, {}}).first->second;
    if (held.finished && SLUICE_GUARD(finished_before_death_not_run_again)) {
      step.completions.push_back({.receipt = held.receipt, .action = queue::CompletionAction::remove});
      step.counts.push_back(&LedgerSettlement::finished);
      continue;
    }
    const bool alone = held.committing == isolation::Committing::alone && !known;
    const bool counts = alone || (SLUICE_GUARD(innocents_beside_a_bomb) ? held.blamed : blames);
    if (counts) {
      step.completions.push_back(blame(held, ledger, jobs, random, now));
      step.counts.push_back(&LedgerSettlement::counted);
      continue;
    }
    const bool accused = (held.running || held.committing != isolation::Committing::no) && !known;
    step.completions.push_back(work::completion_of(held.receipt, work::put_back(), now));
    if (accused) {
      step.completions.back().marks = queue::core::kSuspect;
    }
    step.counts.push_back(accused ? &LedgerSettlement::suspects : &LedgerSettlement::released);
  }
  return mapped(steps, [](auto& entry) { return std::move(entry.second); });
}

bool OrphanSettlement::settle(queue::Queues& queues, queue::Owners& owners, SteadyTime now, Deadline deadline) {
  trouble_.clear();
  for (RecoveryStep& step : open_) {
    auto source = queues.open_source(step.address);
    if (source) {
      settle_step(step, **source, deadline);
    } else {
      trouble_ = source.error().message();
    }
  }
  std::erase_if(open_, [](const RecoveryStep& step) { return step.completions.empty(); });
  due_ = now + work::doubled(kFirstPause, tries_, kLongestPause);
  ++tries_;
  const bool last = tries_ >= kTries;
  if (open_.empty() || last) {
    tell(owners, deadline);
  }
  return (open_.empty() && told_) || last;
}

// Not before its messages are settled: whoever takes its shards then knows what was at work by what their records say.
void OrphanSettlement::tell(queue::Owners& owners, Deadline deadline) {
  const isolation::LedgerContents& ledger = contents();
  if (told_ || ledger.incarnation.empty() || ledger.queues.empty()) {
    told_ = true;
    return;
  }
  auto told = owners.ended({ledger.incarnation, ledger.queues, open_.empty() && ledger.complete}, deadline);
  told_ = told.has_value();
  if (!told) {
    trouble_ = told.error().message();
  }
}

void OrphanSettlement::settle_step(RecoveryStep& step, queue::Source& source, Deadline deadline) {
  const std::vector<queue::SettleResult> results = source.settle(step.completions, deadline);
  RecoveryStep left{step.address, {}, {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    switch (results[i].status) {
      case SettleStatus::applied:
        ++(tally_.*step.counts[i]);
        break;
      case SettleStatus::lost:
        ++tally_.gone;
        break;
      case SettleStatus::refused:
      case SettleStatus::failed:
        trouble_ = results[i].error.message();
        left.completions.push_back(std::move(step.completions[i]));
        left.counts.push_back(step.counts[i]);
        break;
    }
  }
  step = std::move(left);
}

Result<void> OrphanSettlement::close(WallTime now, std::string by) {
  for (const RecoveryStep& step : open_) {
    tally_.unsettled += static_cast<std::uint32_t>(step.completions.size());
  }
  if (ledger_->contents().held.empty() && !ledger_->contents().crash && !ledger_->contents().unclean_end) {
    ledger_->remove();
    return {};
  }
  tally_.time = now;
  tally_.by = std::move(by);
  return ledger_->archive(tally_);
}

LedgerRecovery::LedgerRecovery(RecoveryParts parts)
    : parts_(std::move(parts)), folder_(parts_.folder), watch_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

Result<void> LedgerRecovery::start() {
  if (bell_.descriptor() < 0) {
    bell_ = Bell();
  }
  if (bell_.descriptor() < 0) {
    return isolation::state_file_error("what dead hosts held cannot be settled", EMFILE);
  }
  if (watch_.open()) {
    // A process that dies closes what it had open; a ledger that is closed for good has lost its owner.
    ::inotify_add_watch(watch_.get(), parts_.folder.c_str(), IN_CLOSE_WRITE | IN_ONLYDIR);
  }
  const SignalBlock block;
  return thread_.start([this](const std::stop_token& stop) { attend(stop); });
}

void LedgerRecovery::attend(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    for (const std::string& file : folder_.open_ledgers()) {
      take(file);
    }
    settle_what_is_due(stop);
    if (!looked_.exchange(true)) {
      parts_.events.wake();
    }
    if (!stop.stop_requested()) {
      wait_until_something_happens(parts_.own.attempt(parts_.clock.steady_now()));
    }
  }
}

void LedgerRecovery::take(const std::string& file) {
  auto orphan = isolation::OrphanLedger::take(file);
  if (!orphan) {
    const Error error = orphan.error();
    const bool corrupt = error.code() == ErrorCode::corrupt;
    const std::string& why = error.message();
    const std::string kept = corrupt ? folder_.set_aside(file) : file;
    // One that stays where it is, as in a folder that is read-only, is met with each look.
    if (std::exchange(troubles_[file], why + kept) == why + kept) {
      return;
    }
    corrupt ? parts_.log.warn(
                  "a crash ledger cannot be read and is set aside; what it held comes back when its leases run out",
                  {{"why", why}, {"kept", kept}})
            : parts_.log.warn("a crash ledger cannot be settled", {{"why", why}});
    return;
  }
  if (!*orphan || (*orphan)->contents().config != parts_.owner.config) {
    return;
  }
  const LedgerContents& ledger = (*orphan)->contents();
  std::vector<config::JobConfig> jobs;
  {
    const MutexLock lock(mutex_);
    jobs = jobs_;
    if (!ledger.incarnation.empty()) {
      ended_.push_back({fleet::instance_of(ledger.host, ledger.process, ledger.incarnation), ledger.cause()});
    }
  }
  auto steps = plan_recovery(ledger, jobs, parts_.random, parts_.clock.wall_now());
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
  std::erase(under_way_, nullptr);
}

void LedgerRecovery::finish(OrphanSettlement& settlement) {
  const auto closed = settlement.close(parts_.clock.wall_now(), parts_.owner.host);
  const isolation::LedgerContents& ledger = settlement.contents();
  const isolation::LedgerSettlement& tally = settlement.tally();
  if (!closed) {
    parts_.log.warn("a settled crash ledger cannot be kept", {{"why", closed.error().message()}});
  }
  folder_.forget_all_but(kHistory);
  if (ledger.held.empty() && !ledger.crash) {
    return;
  }
  parts_.log.warn("settled what a dead host held", {{"host", ledger.host},
                                                    {"died", ledger.cause()},
                                                    {"counted", tally.counted},
                                                    {"suspects", tally.suspects},
                                                    {"released", tally.released},
                                                    {"finished", tally.finished},
                                                    {"gone", tally.gone},
                                                    {"unsettled", tally.unsettled}});
}

void LedgerRecovery::wait_until_something_happens(SteadyTime at_latest) {
  const SteadyTime now = parts_.clock.steady_now();
  SteadyTime until = std::min(now + kLook, at_latest);
  for (const auto& settlement : under_way_) {
    until = std::min(until, settlement->due());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(until - now, Duration::zero()));
  std::array<pollfd, 2> waits{pollfd{bell_.descriptor(), POLLIN, 0}, pollfd{watch_.get(), POLLIN, 0}};
  ::poll(waits.data(), waits.size(), static_cast<int>(left.count()));
  // What the events say does not matter: the folder is looked at.
  alignas(inotify_event) std::array<char, 4096> events{};
  while (watch_.open() && ::read(watch_.get(), events.data(), events.size()) > 0) {
  }
}

Duration kill_grace(const config::JobConfig& job) {
  // A worker whose handler is a process of its own is not stuck: it is freed before anybody takes it for that.
  return job.isolation == config::Isolation::process ? work::kStuckGrace : work::kStuckGrace - std::chrono::seconds(1);
}

std::string ledger_folder(const config::HostConfig& config) { return config.state_dir + "/ledgers"; }

IsolationWard::IsolationWard(const WardParts& parts)
    : parts_(parts),
      owner_{parts.host, absolute(parts.config.file), parts.owners.incarnation()},
      ledger_(ledger_folder(parts.config), owner_, parts.clock, parts.log),
      recovery_({.folder = ledger_folder(parts.config),
                 .owner = owner_,
                 .queues = parts.queues,
                 .owners = parts.owners,
                 .clock = parts.clock,
                 .random = parts.random,
                 .log = parts.log,
                 .events = parts.events,
                 .own = ledger_}) {}

bool IsolationWard::recover(const std::vector<JobPlan>& plans) {
  recovery_.use(mapped(plans, &JobPlan::config));
  const auto started = recovery_.start();  // once; where that fails the next reload tries again
  if (!started) {
    parts_.log.warn(started.error().message());
  }
  return started.has_value();
}

void IsolationWard::recover_first(const std::vector<JobPlan>& plans) {
  const bool recovers = recover(plans) && SLUICE_GUARD(blamed_before_claimed);
  const SteadyTime until = parts_.clock.steady_now() + kRecoveryTime;
  while (recovers && !recovery_.has_looked() && !parts_.events.terminating() && parts_.clock.steady_now() < until) {
    parts_.events.wait_until(until);
  }
}

Result<std::vector<isolation::RunnerAround>> open_arounds(const JobPlan& plan, const plugin::PluginRegistry& registry) {
  std::vector<isolation::RunnerAround> arounds;
  for (const plugin::AroundSpec& around : plan.arounds) {
    const plugin::LoadedPlugin* const owner = registry.owner_of(around.handler);
    SLUICE_ASSERT(owner != nullptr);
    SLUICE_TRY(file, isolation::open_plugin(*owner));
    arounds.push_back({{owner->file, around.handler->name, around.options}, *std::move(file)});
  }
  return arounds;
}

Result<plugin::InstanceFactory> IsolationWard::runners_for(const JobPlan& plan) {
  const plugin::LoadedPlugin* const owner = parts_.plugins.owner_of(plan.handler);
  SLUICE_ASSERT(owner != nullptr);
  SLUICE_TRY(file, isolation::open_plugin(*owner));
  const auto& limits = plan.config.limits;
  const config::StoreKind store = parts_.config.store_of(plan.config.queue).kind;
  isolation::RunnerSpec spec{facts_of(plan),
                             plan.options,
                             {.memory = limits.memory, .cpu = limits.cpu, .kill_grace = kill_grace(plan.config)},
                             *std::move(file),
                             plugin::effect_rules(plan.config, store, parts_.random, parts_.clock)};
  SLUICE_TRY(arounds, open_arounds(plan, parts_.plugins));
  spec.arounds = *std::move(arounds);
  // One process shows that the handler takes its job; the others, and those for suspects, come when there is work.
  auto proven = std::make_shared<std::atomic<bool>>(plan.config.isolation == config::Isolation::thread);
  return plugin::InstanceFactory([this, spec = std::move(spec), proven](std::shared_ptr<plugin::HealthSeat> health,
                                                                        std::shared_ptr<plugin::MetricBoard> metrics) {
    const auto start = proven->exchange(true) ? isolation::RunnerStart::when_needed : isolation::RunnerStart::now;
    isolation::RunnerSpec own = spec;
    own.health = std::move(health);
    own.metrics = std::move(metrics);
    return isolation::RunnerInstance::create(std::move(own), spawner_, work::handler_log(parts_.log), start);
  });
}

std::shared_ptr<isolation::JobLedger> IsolationWard::ledger_for(const JobPlan& plan) {
  return ledger_.open(mapped(work::addresses_of(plan.config), [this, &plan](const queue::QueueAddress& address) {
    return isolation::LedgerJob{facts_of(plan), address};
  }));
}

}  // namespace sluice::runtime
