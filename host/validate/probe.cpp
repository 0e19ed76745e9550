#include "host/validate/probe.hpp"

#include <algorithm>

#include "base/text/visible.hpp"
#include "host/plugin/around.hpp"

namespace sluice::validate {
namespace {

using Level = Finding::Level;

/// How the host ends a line about what a plugin did and must not do, such as to complete a message twice.
constexpr std::string_view kDefect = "a defect of the plugin";

/// How it begins one about what it has called later for a plugin.
constexpr std::string_view kThrewLater = "what was to be called later threw";

/// `function`: out of which it came.
Finding exception_finding(const std::string& function, const std::string& where) {
  return {"exceptions",
          Level::error,
          "an exception leaves " + function,
          where,
          "no exception may cross the ABI: what it passes is not cleaned up, and a host that is built otherwise ends",
          "catch it and report SLUICE_FAULT; sluice/handler.hpp does so"};
}

Finding breach_finding(const plugin::Outcome& outcome, const std::string& what, bool async) {
  if (outcome.breach == plugin::Breach::exception) {
    return exception_finding(async ? "`begin`" : "`handle`", "at " + what + ": " + outcome.reason);
  }
  const std::string why = "the host takes it for a failed attempt, and retries the message until none is left";
  if (outcome.breach == plugin::Breach::no_outcome) {
    return {"outcomes",   Level::error, "`handle` returns without an outcome",
            "at " + what, why,          "call `report` on every way out of `handle`"};
  }
  return {"outcomes",
          Level::error,
          "`handle` reports an outcome that is none",
          "at " + what + ": " + outcome.reason,
          why,
          "report one of the statuses of sluice/abi.h, in a whole sluice_outcome"};
}

/// What a handler that goes around others is tried around: it does what it has to, and no more.
const sluice_handler kInside{sizeof(sluice_handler),
                             SLUICE_HANDLER_CONCURRENT,
                             "inside",
                             nullptr,
                             nullptr,
                             0,
                             [](const sluice_host*, const sluice_option_value* const*, std::size_t, void** instance,
                                void (*)(void*, sluice_string), void*) -> std::int32_t {
                               *instance = nullptr;
                               return 0;
                             },
                             [](void*) {},
                             [](void*, const sluice_message*, const sluice_context* context) {
                               const sluice_outcome done{sizeof(sluice_outcome), SLUICE_DONE, -1, {nullptr, 0}};
                               context->report(context, &done);
                             },
                             nullptr};

}  // namespace

void Probe::step(const std::string& what) const { steps_.next(visible(what)); }

void Probe::figure(const std::string& name, std::int64_t number) const {
  steps_.tell(told_line({"figure", name, std::to_string(number)}));
}

void Probe::find(const Finding& finding) {
  const MutexLock lock(mutex_);
  if (std::find(told_.begin(), told_.end(), finding.what) == told_.end()) {
    told_.push_back(finding.what);
    steps_.tell(told_finding(finding));
  }
}

Result<Probe::Instance> Probe::create(const config::JobConfig& job, const std::string& what) {
  auto bound = plugin::bind_options(handler_, job);
  if (!bound) {
    return Error(ErrorCode::invalid, bound.error().front().message);
  }
  step("create with " + what);
  const plugin::EffectRules effects{SLUICE_STORE_SQLITE, true, &ids_, &clock_};
  const auto log = [this](sluice_log_level level, std::string_view, std::string_view, std::string_view text) {
    if (level == SLUICE_LOG_ERROR && text.starts_with(kThrewLater)) {
      find(exception_finding("what the handler has called later", std::string(text)));
    } else if (level == SLUICE_LOG_ERROR && text.ends_with(kDefect)) {
      find({"outcomes", Finding::Level::error, "it goes on with a message that has ended", std::string(text),
            "the message is another worker's by then, or another one has its place",
            "complete each message once, and let go of its context then"});
    }
  };
  const auto& options = *bound;
  auto instance = plugin::around_of(handler_) != nullptr
                      ? plugin::make_within({log, effects, health_.seat()}, kInside, job.name, {},
                                            std::array{plugin::AroundSpec{&handler_, options}})
                      : plugin::HandlerInstance::create({log, effects, health_.seat()}, handler_, job.name, options);
  if (!instance && instance.error().code() == ErrorCode::corrupt) {
    find({"", Finding::Level::error, instance.error().message(), "with " + what,
          "whoever reads the log of a job that does not start cannot learn from it what to change",
          "let `create` throw nothing, and call `fail` with a sentence that names the option and the mend"});
  }
  return instance;
}

void Probe::destroy(Instance instance) {
  step("destroy");
  instance.reset();
}

plugin::Outcome Probe::call_armed(plugin::HandlerInstance& instance, const OddMessage& odd, plugin::Attempt& attempt) {
  plugin::Outcome outcome = instance.handle({odd.message, job_.queue, job_.retry.max_attempts, attempt});
  judge(outcome, odd.what);
  return outcome;
}

void Probe::judge(const plugin::Outcome& outcome, const std::string& what) {
  if (outcome.breach != plugin::Breach::none) {
    find(breach_finding(outcome, what, async_));
  }
}

}  // namespace sluice::validate
