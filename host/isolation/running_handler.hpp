#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "host/isolation/crash_ledger.hpp"

namespace sluice::isolation {

/// Whose code a thread runs. Outlives every handler that is started with it.
struct HandlerFacts {
  std::string job;
  std::string plugin;  ///< its file
  std::string handler;
};

/// The handler that a thread runs, for whoever looks when it crashes. Borrows; empty when it runs none.
struct RunningHandler {
  const HandlerFacts* facts = nullptr;
  std::string_view message;
  HeldSlot slot = 0;
};

/// The calling thread runs a handler from now on. The first call of a thread gives it a stack for signals, so that one
/// that has used up its own can still say so. noexcept, and no system call after the first.
void handler_begins(const RunningHandler& running) noexcept;
/// It has returned.
void handler_returns() noexcept;
/// What the calling thread runs; async-signal-safe.
const RunningHandler& running_handler() noexcept;

}  // namespace sluice::isolation
