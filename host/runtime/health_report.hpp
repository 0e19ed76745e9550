#pragma once

#include "host/cost/cost_book.hpp"
#include "host/observe/http_endpoint.hpp"
#include "host/runtime/job_set.hpp"
#include "host/runtime/queue_probes.hpp"
#include "host/runtime/telemetry.hpp"

/// What /metrics shows of what others keep. Pure functions.
namespace sluice::runtime {

std::vector<observe::FigureFamily> depth_figures(const DepthSampler& depths, SteadyTime now);
std::vector<observe::FigureFamily> ledger_figures(bool kept);
std::vector<observe::FigureFamily> cost_figures(const cost::CostView& view, const cost::Prices& prices);

/// What /scale/QUEUE says to an autoscaler, from the numbers that are there: 200 with them, 404 for a queue that no job
/// here works on, 503 while there are none or only such as nobody should scale by. `depth`: as it was counted last,
/// once in `interval` at most.
observe::HttpReply scale_of(std::string_view queue, const JobSet& jobs, const std::optional<QueueDepth>& depth,
                            Duration interval, SteadyTime now);

/// By queue.
using Lags = std::map<std::string, DepthSampler::Lag>;

/// What the probes tell of. A value that borrows.
struct HealthSources {
  const JobSet& jobs;
  const config::HostConfig& config;
  const Telemetry* telemetry;  ///< may be null
  Lags lags;
  std::string ledger_trouble;  ///< why there is no crash ledger; empty: there is one
};

/// What /healthz and /readyz say.
///
/// Whether a host is healthy does not depend on its stores and collectors: it waits for the first, and works without
/// the second, and without a crash ledger too. All are named, each with how it fares, and so is what handlers say of
/// their brokers. It is not ready while a job's store has failed it for long, or an outbox lags by more than its
/// `lag_limit`.
observe::ProbeResult health_of(const HealthSources& sources);
observe::ProbeResult readiness_of(bool running, const HealthSources& sources);
/// The queues whose lag has a limit.
DepthSampler::Limits lag_limits_of(const config::HostConfig& config);

}  // namespace sluice::runtime
