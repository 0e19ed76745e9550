#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "host/isolation/crash_handler.hpp"
#include "host/runtime/isolation_ward.hpp"
#include "tests/isolation/ledger_rig.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {

using isolation::HeldMessage;
using isolation::LedgerContents;

inline const queue::QueueAddress kOrders{"orders", queue::Half::standard};

inline config::JobConfig job_config(const std::string& name = "orders", std::uint32_t max_attempts = 5) {
  config::JobConfig job;
  job.name = name;
  job.queue = "orders";
  job.handler = "bomb";
  job.retry.max_attempts = max_attempts;
  return job;
}

inline HeldMessage held(const std::string& id, bool running, bool blamed = false) {
  return {"orders", kOrders, {id, 1, 0}, 1, running, blamed};
}

inline isolation::CrashReport crash_of(const std::string& id) {
  isolation::CrashReport crash;
  crash.signal = SIGSEGV;
  crash.blamed = true;
  crash.job = "orders";
  crash.handler = "bomb";
  crash.plugin = "/plugins/bomb.so";
  crash.message = id;
  crash.stack = {{"/plugins/bomb.so", 0x10, "explode()+0x4 in bomb.so"}};
  return crash;
}

}  // namespace sluice::runtime
