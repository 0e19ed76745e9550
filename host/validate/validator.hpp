#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "host/isolation/trial_child.hpp"
#include "host/validate/child.hpp"
#include "host/validate/report.hpp"

namespace sluice::validate {

/// What is to be validated, and how. A value.
struct Request {
  std::string file;
  std::string handler;  ///< the only one to look at; empty: all of them
  OptionsFile options;  ///< those of `handler`, or of the plugin's only one
  std::uint64_t seed = 0;
  Duration step_limit = isolation::kStepLimit;  ///< what a call, or any other step, may take; at least 100 ms
  int interrupt = -1;  ///< can be read once the validation is to end; -1: it cannot be interrupted
};

/// Tries to break a plugin: each check in a process of its own, so that a crash or a hang is a result. `tell` hears of
/// each check as it is made; on this thread. Fails when it cannot be tried: no such file or handler, options that do
/// not fit, no process to be had; `cancelled` when it was interrupted. Waits for all of it.
Result<Report> validate(const Request& request, const std::function<void(const CheckResult&)>& tell);

}  // namespace sluice::validate
