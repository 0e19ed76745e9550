#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "host/observe/http_endpoint.hpp"
#include "host/runtime/depth_sampler.hpp"
#include "host/runtime/job_set.hpp"

namespace sluice::runtime {

/// What /scale/QUEUE says to an autoscaler, from the numbers that are there: 200 with them, 404 for a queue that no job
/// here works on, 503 while there are none or only such as nobody should scale by. `depth`: as it was counted last,
/// once in `interval` at most.
observe::HttpReply scale_of(std::string_view queue, const JobSet& jobs, const std::optional<QueueDepth>& depth,
                            Duration interval, SteadyTime now);

}  // namespace sluice::runtime
