#pragma once

#include <boost/core/noncopyable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "config/config.hpp"
#include "host/isolation/trial_child.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/validate/inputs.hpp"
#include "host/validate/report.hpp"

namespace sluice::validate {

/// What a check of one handler works with, in the child that makes it: instances made as a host makes them, calls with
/// a time-out, and somewhere to tell what was found. Each step is told before it is taken. `call` is thread-safe; the
/// rest is for one thread.
class Probe : boost::noncopyable {
 public:
  using Instance = std::unique_ptr<plugin::HandlerInstance>;

  Probe(const sluice_handler& handler, config::JobConfig job, std::uint64_t seed, Duration step_limit,
        const isolation::TrialSteps& steps)
      : handler_(handler), job_(std::move(job)), seed_(seed), step_limit_(step_limit), steps_(steps) {}

  const sluice_handler& handler() const { return handler_; }
  bool is_async() const { return async_; }
  const config::JobConfig& job() const { return job_; }
  std::uint64_t seed() const { return seed_; }

  /// Time for what a check repeats, or for one of its parts; it goes on while there is some.
  void begin_repeating(std::size_t parts = 1) {
    repeat_until_ = clock_.steady_now() + step_limit_ / 5 / static_cast<Duration::rep>(parts);
  }
  bool has_time() const { return clock_.steady_now() < repeat_until_; }
  /// After which a call is asked to stop.
  Duration call_timeout() const { return step_limit_ / 10; }

  void step(const std::string& what) const;
  void note(const std::string& text) const { steps_.tell(told_line({"note", text})); }
  /// Why nothing that calls the handler can be tried.
  void hinder(const std::string& why) const { steps_.tell(told_line({"hindrance", why})); }
  void figure(const std::string& name, std::int64_t number) const;
  /// Once, with whatever input the same shows again. Thread-safe.
  void find(const Finding& finding);

  /// An instance with the job's options, or the handler's refusal; one that the ABI forbids (`corrupt`) is a finding.
  Result<Instance> create() { return create(job_, "the job's options"); }
  /// With other options, which the step tells as `what`.
  Result<Instance> create(const config::JobConfig& job, const std::string& what);
  void destroy(Instance instance);

  /// The attempt begins, and is timed out as a job's would be.
  void arm(plugin::Attempt& attempt) const { attempt.arm(clock_.steady_now() + call_timeout()); }
  /// One call in an attempt that has begun; its step is to be told before. What the ABI forbids is told once.
  plugin::Outcome call_armed(plugin::HandlerInstance& instance, const OddMessage& odd, plugin::Attempt& attempt);
  plugin::Outcome call(plugin::HandlerInstance& instance, const OddMessage& odd, plugin::Attempt& attempt) {
    arm(attempt);
    return call_armed(instance, odd, attempt);
  }
  /// What is wrong with an outcome is a finding. Thread-safe.
  void judge(const plugin::Outcome& outcome, const std::string& what);

  const Clock& clock() const { return clock_; }

 private:
  const sluice_handler& handler_;
  const bool async_ = plugin::kind_of(handler_) == plugin::HandlerKind::async;
  const config::JobConfig job_;
  const std::uint64_t seed_;
  const Duration step_limit_;
  const isolation::TrialSteps& steps_;
  const SystemClock clock_;
  SeededRandom ids_;
  plugin::HealthBoard health_;
  SteadyTime repeat_until_{};
  Mutex mutex_;
  std::vector<std::string> told_ SLUICE_GUARDED_BY(mutex_);  ///< findings
};

/// One check of a handler.
struct Check {
  std::string_view name;
  bool calls = true;  ///< calls the handler, and so is not made where that hangs or no instance can be made
  void (*run)(Probe& probe) = nullptr;
  std::optional<plugin::HandlerKind> kind{};  ///< of handlers of this kind alone
};

/// All of them, in the order in which they are made.
const std::vector<Check>& handler_checks();

}  // namespace sluice::validate
