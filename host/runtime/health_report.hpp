#pragma once

#include "config/config.hpp"
#include "host/observe/http_endpoint.hpp"
#include "host/runtime/job_set.hpp"
#include "host/runtime/telemetry.hpp"

namespace sluice::runtime {

/// What /healthz and /readyz say. `telemetry` may be null.
///
/// Whether a host is healthy or ready does not depend on its stores and collectors: it waits for the first, and works
/// without the second. Both are named, each with how it fares.
observe::ProbeResult health_of(const JobSet& jobs, const config::HostConfig& config, const Telemetry* telemetry);
observe::ProbeResult readiness_of(bool running, const JobSet& jobs, const config::HostConfig& config,
                                  const Telemetry* telemetry);

}  // namespace sluice::runtime
