#include "host/runtime/isolation_ward.hpp"

#include <filesystem>

#include "base/guard.hpp"
#include "host/isolation/runner.hpp"
#include "host/work/job.hpp"
#include "host/work/job_queues.hpp"
#include "host/work/job_threads.hpp"

namespace sluice::runtime {
namespace {

// The first jobs begin without what a store that does not answer keeps from being settled.
constexpr Duration kRecoveryTime = std::chrono::seconds(3);

std::string absolute(const std::string& file) {
  std::error_code code;
  const std::filesystem::path path = std::filesystem::absolute(file, code);
  return code ? file : path.lexically_normal().string();
}

isolation::RunnerLimits limits_of(const config::JobConfig& job) {
  isolation::RunnerLimits limits;
  limits.memory = job.limits.memory;
  limits.cpu = job.limits.cpu;
  limits.kill_grace = kill_grace(job);
  return limits;
}

}  // namespace

Duration kill_grace(const config::JobConfig& job) {
  // A worker whose handler is a process of its own is not stuck: it is freed before anybody takes it for that.
  return job.isolation == config::Isolation::process ? work::kStuckGrace : work::kStuckGrace - std::chrono::seconds(1);
}

std::string ledger_folder(const config::HostConfig& config) { return config.state_dir + "/ledgers"; }

IsolationWard::IsolationWard(const WardParts& parts)
    : parts_(parts),
      folder_(ledger_folder(parts.config)),
      owner_{parts.host, absolute(parts.config.file),
             parts.owners != nullptr ? parts.owners->incarnation() : std::string()},
      ledger_(folder_, owner_, parts.clock, parts.log) {}

void IsolationWard::recover(const std::vector<JobPlan>& plans, std::function<void()> looked) {
  std::vector<config::JobConfig> jobs;
  jobs.reserve(plans.size());
  for (const JobPlan& plan : plans) {
    jobs.push_back(plan.config);
  }
  const bool begins = recovery_ == nullptr;
  if (begins) {
    recovery_ =
        std::make_unique<LedgerRecovery>(RecoveryParts{folder_, owner_, parts_.queues, parts_.owners, parts_.clock,
                                                       parts_.random, parts_.log, std::move(looked), &ledger_});
  }
  recovery_->use(std::move(jobs));
  if (!begins) {
    return;
  }
  if (auto started = recovery_->start(); !started) {
    parts_.log.warn(started.error().message());
    recovery_.reset();  // the next reload tries again
  }
}

void IsolationWard::recover_first(const std::vector<JobPlan>& plans, HostEvents& events) {
  recover(plans, [&events] { events.wake(); });
  const SteadyTime until = parts_.clock.steady_now() + kRecoveryTime;
  while (recovery_ != nullptr && !recovery_->has_looked() && !events.terminating() &&
         parts_.clock.steady_now() < until && SLUICE_GUARD(blamed_before_claimed)) {
    events.wait_until(until);
  }
}

Result<plugin::InstanceFactory> IsolationWard::runners_for(const JobPlan& plan) {
  isolation::HandlerFacts facts = facts_of(plan);
  const plugin::LoadedPlugin* const owner = parts_.plugins.owner_of(plan.handler);
  SLUICE_ASSERT(owner != nullptr);
  SLUICE_TRY(file, isolation::OpenPlugin::open(*owner));
  isolation::RunnerSpec spec{std::move(facts.job),
                             std::move(facts.plugin),
                             std::move(facts.handler),
                             plan.options,
                             limits_of(plan.config),
                             *std::move(file),
                             {}};
  spec.effects =
      plugin::effect_rules(plan.config, parts_.config.store_of(plan.config.queue).kind, parts_.random, parts_.clock);
  // One process shows that the handler takes its job; the others, and those for suspects, come when there is work.
  auto proven = std::make_shared<std::atomic<bool>>(plan.config.isolation == config::Isolation::thread);
  return plugin::InstanceFactory([this, spec = std::move(spec), proven](std::shared_ptr<plugin::HealthSeat> health) {
    const auto start = proven->exchange(true) ? isolation::RunnerStart::when_needed : isolation::RunnerStart::now;
    isolation::RunnerSpec own = spec;
    own.health = std::move(health);
    return isolation::RunnerInstance::create(std::move(own), spawner_, work::handler_log(parts_.log), start);
  });
}

std::shared_ptr<isolation::JobLedger> IsolationWard::ledger_for(const JobPlan& plan) {
  std::vector<isolation::LedgerJob> parts;
  for (const queue::QueueAddress& address : work::addresses_of(plan.config)) {
    parts.push_back({facts_of(plan), address});
  }
  return ledger_.open(parts);
}

}  // namespace sluice::runtime
