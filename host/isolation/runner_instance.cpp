#include "host/isolation/runner_instance.hpp"

#include <algorithm>
#include <utility>

namespace sluice::isolation {
namespace {

constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr std::uint32_t kMostDoublings = 6;

}  // namespace

RunnerInstance::RunnerInstance(RunnerSpec spec, RunnerSpawner& spawner, plugin::HandlerLog log)
    : spec_(std::move(spec)), spawner_(spawner), log_(std::move(log)) {}

Result<std::unique_ptr<plugin::HandlerInstance>> RunnerInstance::create(RunnerSpec spec, RunnerSpawner& spawner,
                                                                        plugin::HandlerLog log, RunnerStart start) {
  auto instance = std::unique_ptr<RunnerInstance>(new RunnerInstance(std::move(spec), spawner, std::move(log)));
  if (start == RunnerStart::now) {
    SLUICE_PASS_ON(instance->start());
  }
  return std::unique_ptr<plugin::HandlerInstance>(std::move(instance));
}

Result<void> RunnerInstance::start() {
  SLUICE_TRY(runner, Runner::start(spec_, spawner_, {log_, spec_.job, {}}));
  runner_ = std::move(*runner);
  return {};
}

std::optional<plugin::Outcome> RunnerInstance::make_ready() {
  const RunnerLog log{log_, spec_.job, {}};
  if (runner_ && !runner_->alive()) {
    log.write(false, SLUICE_LOG_WARN, "the handler's process has ended between two messages: " + runner_->last_words());
    runner_.reset();
  }
  if (runner_) {
    return std::nullopt;
  }
  const SteadyTime now = clock_.steady_now();
  if (now >= not_before_) {
    auto started = start();
    if (started) {
      failed_starts_ = 0;
      return std::nullopt;
    }
    why_not_ = started.error().message();
    const Duration pause = kFirstPause * (1U << std::min(failed_starts_++, kMostDoublings));
    not_before_ = clock_.steady_now() + pause;
    log.write(false, SLUICE_LOG_ERROR, "no process for the handler, messages wait: " + why_not_);
  }
  // Nobody has seen the message: its attempt is given back.
  return plugin::Outcome{plugin::OutcomeStatus::snooze, std::max(not_before_ - clock_.steady_now(), kFirstPause),
                         why_not_};
}

plugin::Outcome RunnerInstance::handle(const queue::Message& message, std::string_view queue,
                                       std::uint32_t max_attempts, plugin::Attempt& attempt) {
  if (auto waits = make_ready()) {
    return *std::move(waits);
  }
  runner_->expect_message();
  attempt.watch(this);
  plugin::Outcome outcome = runner_->handle(message, queue, max_attempts, attempt, {log_, spec_.job, message.id});
  attempt.watch(nullptr);
  if (outcome.status == plugin::OutcomeStatus::crashed) {
    runner_.reset();
    if (spawner_.closed()) {
      return {plugin::OutcomeStatus::release, {}, "the host has killed its process to stop"};
    }
  }
  return outcome;
}

}  // namespace sluice::isolation
