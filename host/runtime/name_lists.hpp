#pragma once

#include <string>
#include <vector>

#include "host/queue/message.hpp"
#include "host/runtime/job_plan.hpp"

/// Lists of names, as a host hands them on and tells them.
namespace sluice::runtime {

std::vector<std::string> queues_of(const std::vector<JobPlan>& plans);
std::vector<std::string> queues_of(const std::vector<queue::QueueAddress>& addresses);
/// "a, b", or "none".
std::string joined(const std::vector<std::string>& names);

}  // namespace sluice::runtime
