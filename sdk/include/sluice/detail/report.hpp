#pragma once

/// How authors' code is called for the host: what it throws does not leave it, and what it answers is reported.

#include <chrono>
#include <exception>
#include <string_view>

#include "sluice/abi.h"
#include "sluice/context.hpp"
#include "sluice/message.hpp"
#include "sluice/outcome.hpp"

namespace sluice::detail {

/// Runs `body` and hands the text of what it throws to `failed`; true when it throws nothing.
template <typename Body, typename Failed>
bool guard(Body body, Failed failed) noexcept {
  try {
    body();
    return true;
  } catch (const std::exception& error) {
    const char* what = error.what();
    failed(std::string_view(what == nullptr ? "" : what));
  } catch (...) {
    failed(std::string_view("threw something that is not a std::exception"));
  }
  return false;
}

inline void report(const sluice_context& context, sluice_status status, std::chrono::nanoseconds delay,
                   std::string_view reason) {
  const sluice_outcome outcome{sizeof(sluice_outcome), status, delay.count(), borrow(reason)};
  context.report(&context, &outcome);
}

/// The same, and stages its result.
inline void report(const sluice_context& raw_context, Context& context, const Outcome& outcome) {
  if (!outcome.result().empty()) {
    context.set_result(outcome.result());
  }
  report(raw_context, outcome.status(), outcome.delay(), outcome.reason());
}

/// Runs `body`; what it throws is reported as a fault.
template <typename Body>
void or_fault(const sluice_context& context, Body body) noexcept {
  guard(body, [&context](std::string_view why) { report(context, SLUICE_FAULT, Outcome::kByPolicy, why); });
}

}  // namespace sluice::detail
