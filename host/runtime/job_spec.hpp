#pragma once

#include <string>

#include "config/config.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/work/job.hpp"

namespace sluice::runtime {

/// What a job is made of, by its plan and by what the host file says of its queue. `host` is this host's name.
work::JobSpec job_spec(const JobPlan& plan, const config::HostConfig& config, const std::string& host);

}  // namespace sluice::runtime
