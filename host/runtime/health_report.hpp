#pragma once

#include <map>
#include <string>

#include "config/config.hpp"
#include "host/observe/http_endpoint.hpp"
#include "host/runtime/depth_sampler.hpp"
#include "host/runtime/job_set.hpp"
#include "host/runtime/telemetry.hpp"

namespace sluice::runtime {

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
