#pragma once

#include <ucontext.h>

#include "host/isolation/crash_record.hpp"

namespace sluice::isolation {

/// Loads what `capture_stack` needs, which must not be loaded inside a signal handler.
void prepare_stack_capture();

/// Writes the calling thread's stack into the record as modules and offsets, from the place where the signal met it.
/// `context` as the signal handler was given it; null: from the caller on. Async-signal-safe as far as the
/// compiler's unwinder is: where the stack itself is damaged it may fault.
void capture_stack(CrashRecord& record, const ucontext_t* context) noexcept;

}  // namespace sluice::isolation
