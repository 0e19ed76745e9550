#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/work/account.hpp"
#include "host/work/handler_times.hpp"

namespace sluice::work {

/// How operators want a job to run, beside what its file says. A value.
struct JobSteering {
  bool paused = false;        ///< nothing is claimed, no handler starts; what runs goes on
  std::uint32_t workers = 0;  ///< 0: as the file says

  friend bool operator==(const JobSteering&, const JobSteering&) = default;
};

/// A handler at work. A value.
struct RunningHandler {
  std::string message_id;
  std::uint32_t worker = 0;
  std::uint32_t attempt = 0;
  std::uint16_t part = 0;  ///< of the job's queues, the one that the message is of
  SteadyTime started_at{};
  SteadyTime times_out_at{};  ///< SteadyTime::max(): never
  SteadyTime leased_until{};
  bool stuck = false;
  bool stop_requested = false;
};

/// What a job is at. A value.
struct JobActivity {
  bool paused = false;
  std::uint32_t workers = 0;  ///< as many as there are to be
  LedgerSnapshot ledger;
  HandlerTimes times;
  std::vector<RunningHandler> running;
  std::optional<Error> trouble{};  ///< why claims or settlements fail just now
  bool cut_off = false;            ///< they have failed for long
  bool held_by_budget = false;     ///< it waits for what one of its queues may cost
};

}  // namespace sluice::work
